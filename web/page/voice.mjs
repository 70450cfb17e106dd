// The demo with sound: a lamp is on while somebody speaks into the microphone, or in the example.

import { $, Demo, percent, say } from "./demo.mjs";

const RATE = 16000; // samples a second
const BLOCK = 512; // samples of a window
const CONTEXT = 64; // samples before it that the model takes, too
const SHOWN = 250; // windows of the curve, eight seconds
const [ON, OFF] = [0.5, 0.35]; // the lamp goes on above, and off below
const HOLD = 8; // windows of quiet until it goes off
// A window takes less than a millisecond in WebAssembly; a GPU would only add its waiting.
const demo = new Demo("voice", "wasm");
let stop = null; // ends what is heard
let turns = []; // { second, on }: when the lamp changed

function draw(voices) {
  const [left, high] = [40, 150];
  const at = (voice, i) => `${(left + ((390 - left) * i) / (SHOWN - 1)).toFixed(1)},${(high - 140 * voice).toFixed(1)}`;
  const line = (voice, text) =>
    `<line x1="${left}" x2="390" y1="${high - 140 * voice}" y2="${high - 140 * voice}" /><text x="34" y="${high + 4 - 140 * voice}">${text}</text>`;
  $("curve").innerHTML = `${line(1, "100 %")}${line(ON, "50 %")}${line(0, "0 %")}<polyline points="${voices.map(at).join(" ")}" />`;
}

function light(on, second) {
  $("lamp").dataset.on = on ? "yes" : "no";
  $("answer").textContent = on ? "On" : "Off";
  turns.push({ second, on });
}

// Listens to blocks, an async iterable of BLOCK samples each, until they end or `stop` is called.
async function listen(blocks) {
  let [state, before, quiet, on, stopped] = [null, new Float32Array(CONTEXT), 0, false, false];
  const voices = []; // the last SHOWN
  let [count, most] = [0, 0];
  turns = [];
  stop = () => (stopped = true);
  for await (const samples of blocks) {
    if (stopped) break;
    const { voice, state: next } = await demo.call("hear", { samples, before, state });
    [state, before] = [next, samples.slice(-CONTEXT)];
    voices.push(voice);
    if (voices.length > SHOWN) voices.shift();
    count++;
    most = Math.max(most, voice);
    quiet = voice < OFF ? quiet + 1 : 0;
    const second = (count * BLOCK) / RATE;
    if (!on && voice > ON) light((on = true), second);
    if (on && quiet > HOLD) light((on = false), second);
    draw(voices);
  }
  if (on) light(false, (count * BLOCK) / RATE);
  $("curve").setAttribute("aria-label", `How sure it was that somebody spoke: ${percent(most)} at most, ${count} windows`);
  const times = turns.map(({ second, on }) => `${on ? "on" : "off"} at ${second.toFixed(1)} s`);
  $("turns").textContent = times.length ? `The lamp went ${times.join(", ")}.` : "The lamp stayed off.";
  main.dataset.state = "done";
}

// The example's blocks at the pace of its sound, which plays where the browser has a loudspeaker.
async function* played(sound) {
  const context = new AudioContext();
  const source = context.createBufferSource();
  const buffer = context.createBuffer(1, sound.length, RATE);
  buffer.copyToChannel(sound, 0);
  source.buffer = buffer;
  source.connect(context.destination);
  source.start();
  const began = performance.now();
  try {
    for (let i = 0; i + BLOCK <= sound.length; i += BLOCK) {
      const wait = began + (1000 * (i + BLOCK)) / RATE - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      yield sound.slice(i, i + BLOCK);
    }
  } finally {
    context.close();
  }
}

// The microphone's blocks.
async function* heard(stream) {
  const context = new AudioContext({ sampleRate: RATE });
  const waiting = [];
  let arrived = () => {};
  try {
    await context.audioWorklet.addModule(new URL("recorder.mjs", import.meta.url));
    const node = new AudioWorkletNode(context, "recorder", { processorOptions: { count: BLOCK, again: true } });
    context.createMediaStreamSource(stream).connect(node);
    node.port.onmessage = ({ data }) => {
      waiting.push(data);
      arrived();
    };
    for (;;) {
      while (waiting.length) yield waiting.shift();
      await new Promise((resolve) => (arrived = resolve));
    }
  } finally {
    for (const track of stream.getTracks()) track.stop();
    context.close();
  }
}

// 16-bit samples of a WAV file, whose data is its last part.
function samplesOf(file) {
  const data = new Int16Array(file, 44);
  return Float32Array.from(data, (value) => value / 32768);
}

const main = document.querySelector("main");
const buttons = (busy) => {
  $("stop").disabled = !busy;
  $("microphone").disabled = $("example").disabled = busy;
};

async function begin(what, blocks) {
  buttons(true);
  main.dataset.state = "running";
  say(what);
  try {
    await listen(await blocks());
    say("Done.");
  } catch (error) {
    if (main.dataset.state !== "error") say(`It cannot listen: ${error.message}. Try the example instead.`);
    main.dataset.state = "done";
  }
  buttons(false);
}

$("example").onclick = () =>
  begin("Playing the example …", async () => {
    const response = await fetch("demos/voice.wav");
    if (!response.ok) throw new Error(`the example is missing (the server answered ${response.status})`);
    return played(samplesOf(await response.arrayBuffer()));
  });
$("microphone").onclick = () =>
  begin("Listening. Say something.", async () => {
    if (!navigator.mediaDevices) throw new Error("the browser gives no microphone to this page");
    return heard(await navigator.mediaDevices.getUserMedia({ audio: true }));
  });
$("stop").onclick = () => stop?.();

draw([]);
try {
  await demo.load();
  say("Ready. Speak into the microphone, or play the example.");
  buttons(false);
} catch (error) {
  console.info(error.details ?? error.message);
}
