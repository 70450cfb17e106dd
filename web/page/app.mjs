// The page: passes drawings to the model in its worker, and the model's results to the ten bars.
import { begin, beginning, nameOf } from "./begin.mjs";
import { devices, NAMES, note, offer, told } from "./devices.mjs";
import { download } from "./download.mjs";
import { toPixels, SIZE } from "./ink.mjs";
import { keepForOffline } from "./offline.mjs";
import { Pad } from "./pad.mjs";

const $ = (id) => document.getElementById(id);
const main = document.querySelector("main");
main.dataset.started = "";
const known = devices();
const manifest = await download("manifest.json")
  .then((response) => response.json())
  .catch((error) => {
    $("status").textContent = `The page cannot start: ${error.message}. Reload it to try again.`;
    main.dataset.state = "error";
    throw error;
  });

let session = null; // the runtime in use
let wanted = null; // the newest pixels that wait for the model
let busy = false;
let times = [];
let lacking = ""; // why no GPU runs

// -- the bars --------------------------------------------------------------------------------------------------------

const bars = Array.from({ length: 10 }, (_, digit) => {
  const item = document.createElement("li");
  item.innerHTML = `<b>${digit}</b><span class="bar" role="meter" aria-label="${digit}" aria-valuemin="0"
    aria-valuemax="100" aria-valuenow="0"><i></i></span><span class="share" dir="ltr">–</span>`;
  $("bars").append(item);
  return item;
});

function show(logits) {
  const shares = logits ? softmax(logits) : new Array(10).fill(0);
  const best = logits ? shares.indexOf(Math.max(...shares)) : -1;
  for (const [digit, item] of bars.entries()) {
    item.classList.toggle("best", digit === best);
    item.querySelector(".bar").setAttribute("aria-valuenow", (100 * shares[digit]).toFixed(1));
    item.querySelector("i").style.setProperty("--share", shares[digit]);
    item.querySelector(".share").textContent = logits ? percentage(shares[digit]) : "–";
  }
  $("answer").innerHTML = logits
    ? `It reads <b>${best}</b>, ${sure(shares[best])} (<bdi dir="ltr">${percentage(shares[best])}</bdi>)`
    : "Nothing yet";
}

const softmax = (logits) => {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
};

const percentage = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const sure = (share) => (share > 0.9 ? "and is sure" : share > 0.6 ? "and is fairly sure" : "but it may be another");

// -- from drawing to reading -----------------------------------------------------------------------------------------

const pad = new Pad($("pad"), {
  drawn: (strokes) => read(toPixels(strokes)),
  example: (digit) => example(digit),
});
$("clear").onclick = () => pad.clear();
$("example").onclick = () => example(Math.floor(10 * Math.random()));

function example(digit) {
  const choices = manifest.examples[digit];
  const pixels = choices[Math.floor(choices.length * Math.random())];
  pad.show(pixels);
  read(pixels);
}

function read(pixels) {
  document.querySelector(".pad").classList.toggle("inked", Boolean(pixels));
  drawSeen(pixels);
  wanted = pixels;
  if (!pixels) show(null);
  classify();
}

async function classify() {
  $("bars").setAttribute("aria-busy", Boolean(busy || wanted));
  if (busy || !wanted || main.dataset.state !== "ready") return;
  const [pixels, asked] = [wanted, session];
  busy = true;
  wanted = null;
  try {
    const { logits, ms } = await asked.call("classify", pixels);
    if (asked !== session) return;
    if (document.querySelector(".pad").classList.contains("inked")) show(logits);
    times.push(ms);
    if (times.length === 1) performance.mark("first prediction");
    $("first").textContent = milliseconds(times[0]);
    $("steady").textContent = times.length > 1 ? milliseconds(median(times.slice(1))) : "–";
  } catch (error) {
    if (asked === session) fail(error);
  }
  if (asked !== session) return; // another runtime was chosen meanwhile
  busy = false;
  classify();
}

function drawSeen(pixels) {
  const context = $("seen").getContext("2d");
  const image = context.createImageData(SIZE, SIZE);
  for (let i = 0; i < SIZE * SIZE; i++) {
    const value = pixels ? (255 * pixels[i]) / 16 : 0;
    image.data.set([value, value, value, pixels ? 255 : 0], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

// -- runtimes --------------------------------------------------------------------------------------------------------

// The worker of a runtime. The first begins with what it needs while the page still asks which devices there are.
let waiting = beginning;

function workerOf(runtime, device) {
  const name = nameOf(runtime, device);
  const made = waiting?.name === name ? waiting : begin(name);
  if (waiting && made !== waiting) waiting.client.end();
  waiting = null;
  return made.client;
}

async function start() {
  const { runtime, device } = choice();
  tellDevice(device);
  session?.end();
  session = workerOf(runtime, device);
  const mine = session;
  [busy, times] = [false, []];
  main.dataset.state = "loading";
  $("error").hidden = true;
  for (const id of ["adapter", "startup", "first", "steady"]) $(id).textContent = "–";
  mine.onProgress = ({ done, text }) => mine === session && main.dataset.state === "loading" && progress(done, text);
  progress(0, "Starting…");
  const began = performance.now();
  try {
    const { adapter, version } = await mine.call("load", { device, files: manifest.files });
    if (mine !== session) return;
    $("adapter").textContent = told(device, adapter);
    $("startup").textContent = milliseconds(performance.now() - began);
    $("status").textContent = `Ready: ${version}`;
    main.dataset.state = "ready";
    failed.delete(device);
    setTimeout(keepForOffline, 1000); // after the first answer
    if (!wanted) read(pad.pixels ?? toPixels(pad.strokes));
    else classify();
  } catch (error) {
    if (mine !== session) return;
    failed.add(device);
    fallBack(error);
  }
}

// If the visitor did not choose this device, the next one runs.
function fallBack(error) {
  const { device } = choice();
  const next = other(device);
  if (asked().get("device") === device || !next) return fail(error);
  console.error(error.details || error);
  form.elements.device.value = next;
  lacking = `${NAMES[device]} failed (${error.message})`;
  start();
}

function tellDevice(device) {
  $("no-gpu").textContent = note(lacking, device);
  $("no-gpu").hidden = !$("no-gpu").textContent;
}

function progress(done, text) {
  const percent = Math.round(100 * Math.min(1, done));
  $("progress").setAttribute("aria-valuenow", percent);
  $("progress").style.setProperty("--done", `${percent}%`);
  $("status").textContent = text;
}

function fail(error) {
  main.dataset.state = "error";
  $("status").textContent = "";
  $("error-text").textContent = error.message;
  $("error-details").textContent = error.details ?? error.stack ?? "";
  $("error-details").parentElement.hidden = !$("error-details").textContent;
  const next = other(choice().device);
  $("use-other").hidden = !next;
  $("use-other").textContent = `Run it in ${NAMES[next]}`;
  $("error").hidden = false;
  console.error(error.details || error);
  show(null);
}

// -- the choice, kept in the address ---------------------------------------------------------------------------------

const form = $("choice");

function choice() {
  const data = new FormData(form);
  return { runtime: data.get("runtime"), device: data.get("device") };
}

const asked = () => new URLSearchParams(location.hash.slice(1));

// The fastest of the other devices, without those that failed.
const failed = new Set();
const other = (device) => there.find((one) => one !== device && !failed.has(one));

function chooseFromAddress() {
  for (const name of ["runtime", "device"]) {
    const inputs = [...form.elements[name]];
    const input = inputs.find(({ value, disabled }) => value === asked().get(name) && !disabled);
    (input ?? inputs.find(({ disabled, checked }) => checked && !disabled) ?? inputs.find(({ disabled }) => !disabled)).checked = true;
  }
}

form.onchange = () => {
  history.replaceState(null, "", `#${new URLSearchParams(choice())}`);
  start();
};
globalThis.onhashchange = () => {
  chooseFromAddress();
  start();
};
$("retry").onclick = start;
$("use-other").onclick = () => {
  form.elements.device.value = other(choice().device);
  form.onchange();
};

const { there, why } = await known;
offer(form, there);
lacking = why;

$("model").textContent =
  `digits.onnx: ${manifest.parameters.toLocaleString("en")} parameters; it reads ${manifest.accuracy} images it was not taught.`;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const milliseconds = (ms) => (ms >= 999.5 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toPrecision(ms < 99.5 ? 2 : 3)} ms`);

show(null);
chooseFromAddress();
const wished = asked().get("example");
if (/^[0-9]$/.test(wished ?? "")) example(Number(wished));
start();
