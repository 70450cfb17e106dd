// The page of models: passes dropped files to a worker, which loads, runs and measures them.

import { Client } from "./client.mjs";
import { devices, note, offer, told } from "./devices.mjs";
import { download } from "./download.mjs";
import { Feed, Sizes } from "./feeds.mjs";
import { keepForOffline } from "./offline.mjs";

const $ = (id) => document.getElementById(id);
const main = document.querySelector("main");
const form = $("choice");

let given = null; // { plan, wasm } or { onnx, data } or { module, weights }: { name, bytes }, of a module { name, text }
let made = null; // of an ONNX file: { module, weights, structure, ms }
let client = null; // the worker of the model that is loaded
let feeds = [];
let there = []; // the devices of this browser, once it has said
let lacking = ""; // why no GPU runs
let turn = 0; // number of the current load; answers to earlier ones are ignored

const known = devices().then((found) => {
  ({ there, why: lacking } = found);
  offer(form, there);
  tellDevice();
});

function tellDevice() {
  $("no-gpu").textContent = note(lacking, form.elements.device.value);
  $("no-gpu").hidden = !$("no-gpu").textContent;
}

// -- dropped files -------------------------------------------------------------------------------------------------

async function take(files) {
  main.dataset.state = "loading";
  $("error").hidden = true;
  const found = { data: [] }; // the files beside an ONNX file may hold its weights
  for (const file of files) {
    const kind = file.name.split(".").pop().toLowerCase();
    if (kind === "py") found.module = { name: file.name, text: await file.text() };
    else if (["onnx", "plan", "wasm", "bpk"].includes(kind)) {
      found[kind === "bpk" ? "weights" : kind] = { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
    } else found.data.push(file);
  }
  const alone = found.onnx || found.plan || found.wasm;
  if (!alone && given?.module && !found.module && found.weights) found.module = given.module;
  if (!alone && given?.weights && found.module && !found.weights) found.weights = given.weights;
  given = found;
  made = null;
  if (alone || (found.module && found.weights)) return open();
  const missing = found.module ? "its weights, a .bpk file" : found.weights ? "its module, a .py file" : null;
  fail(new Error(missing ? `Choose ${missing}, too.` : "Choose an .onnx file, a .py file with its .bpk file, a .plan or a .wasm."));
}

$("file").onchange = ({ target }) => target.files.length && take(target.files);
const drop = $("drop");
for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
addEventListener("dragleave", () => drop.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  take(event.dataTransfer.files);
});

// -- loading ---------------------------------------------------------------------------------------------------------

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
const size = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} KB` : `${megabytes(bytes)} MB`);
const milliseconds = (ms) => (ms >= 999.5 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toPrecision(ms < 99.5 ? 2 : 3)} ms`);
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function progress(mine, before = 0) {
  return ({ loaded, what }) => {
    if (mine === turn && main.dataset.state === "loading") $("status").textContent = `${what}: ${megabytes(before + loaded)} MB`;
  };
}

async function open() {
  const mine = ++turn;
  client?.end();
  client = null;
  feeds.forEach((feed) => feed.stop());
  main.dataset.state = "loading";
  $("error").hidden = true;
  for (const id of ["feed", "results", "inside"]) $(id).hidden = true;
  for (const id of ["adapter", "load", "compile", "first", "steady"]) $(id).textContent = "–";
  $("status").textContent = "Starting …";
  await known;
  if (mine !== turn) return;
  const able = runnable();
  for (const input of form.elements.runtime) input.disabled = Boolean(given.plan || given.wasm);
  for (const input of form.elements.device) input.disabled = !able.includes(input.value);
  if (able.length && !able.includes(form.elements.device.value)) form.elements.device.value = able[0];
  const [runtime, device] = [form.elements.runtime.value, form.elements.device.value];
  tellDevice();
  try {
    let facts;
    if (given.plan || given.wasm) {
      const [file, command] = device === "wgpu" ? [given.plan, "loadPlan"] : [given.wasm, "loadCompiled"];
      const shown = file ?? given.plan ?? given.wasm;
      $("name").textContent = `${shown.name}: ${size(shown.bytes.length)}. ${shown === given.plan ? "A plan runs under MicroPython, on WebGPU." : "A compiled model runs in WebAssembly, without Python."}`;
      if (!able.length) throw new Error(cannotRun());
      client = new Client("model_worker.mjs", progress(mine));
      facts = await client.call(command, file);
    } else {
      let compiler = null;
      if (given.onnx && !made) {
        $("name").textContent = `${given.onnx.name}: ${size(given.onnx.bytes.length)}`;
        compiler = new Client("model_worker.mjs", progress(mine));
        client = compiler; // to be ended where another model is chosen
        const found = await compiler.call("generate", { ...given.onnx, data: given.data });
        if (mine !== turn) return;
        made = found;
      }
      const { module, weights } = made ?? given;
      if (!given.onnx) $("name").textContent = `${module.name} and ${weights.name}: ${size(weights.bytes.length)}`;
      if (!compiler || runtime !== "pyodide") {
        compiler?.end();
        client = new Client("model_worker.mjs", progress(mine));
      }
      facts = await client.call("loadModule", { module, weights, runtime, device });
    }
    if (mine !== turn) return;
    show(facts);
  } catch (error) {
    if (mine === turn) fail(error, adviceOn(error));
  }
}

// What to do about a file that does not load, by what is said of it.
const ADVICE = [
  [/\bits data (file|lies)\b/, "Choose the .onnx file and the file of its weights together."],
  [/memory/i, "Compile the model on a computer, emberlet compile model.onnx --out model.wasm, and choose the .wasm file."],
  [/is not an ONNX model|damaged|\bmagic\b|the file ends/, "Download or export the file again."],
  [/could not download|Failed to fetch|could not be started/, "Reload the page, and look at the connection."],
  [/ModelError|UnsupportedError/, "The command emberlet inspect model.onnx lists what the model uses."],
];

function adviceOn({ message, details }) {
  return ADVICE.find(([said]) => said.test(`${message} ${details ?? ""}`))?.[1];
}

// The devices of this browser that can run the dropped files.
function runnable() {
  if (!given.plan && !given.wasm) return there;
  return there.filter((device) => (device === "wgpu" && given.plan) || (device === "wasm" && given.wasm));
}

function cannotRun() {
  if (!given.wasm) return "A plan needs WebGPU, which this browser does not offer: compile the model to a .wasm file, or drop the .onnx file.";
  if (!given.plan) return "A compiled model needs WebAssembly's SIMD, which this browser does not have: drop the .onnx file.";
  return "This browser offers neither WebGPU nor WebAssembly's SIMD: drop the .onnx file.";
}

function show(facts) {
  $("adapter").textContent = `${told(form.elements.device.value, facts.adapter)}; ${facts.version}`;
  $("load").textContent = milliseconds(facts.ms.load);
  if (made) $("compile").textContent = `${milliseconds(made.ms.generate)} to generate`;
  $("structure").textContent = made?.structure ?? facts.structure ?? "An .onnx file shows its graph here.";
  const source = made?.module.text ?? given.module?.text;
  $("source-part").hidden = !source;
  $("source").textContent = source ?? "";
  const sizes = new Sizes(facts.inputs, facts.sizes);
  feeds = facts.inputs.map((port) => new Feed(port, sizes, () => client));
  $("inputs").replaceChildren(sizes.element, ...feeds.map((feed) => feed.element));
  $("outputs").textContent = "Nothing yet";
  $("kernels").hidden = true;
  for (const id of ["feed", "results", "inside"]) $(id).hidden = false;
  $("status").textContent = facts.parameters ? `Ready: ${facts.parameters.toLocaleString("en")} parameters` : "Ready";
  main.dataset.state = "ready";
}

function fail(error, advice = "") {
  main.dataset.state = "error";
  $("status").textContent = "";
  $("error-text").textContent = advice ? `${error.message.replace(/\.?$/, ".")} ${advice}` : error.message;
  $("error-details").textContent = error.details ?? "";
  $("error-details").parentElement.hidden = !error.details;
  $("error").hidden = false;
  console.info(error.details || error.message);
}

// -- running ---------------------------------------------------------------------------------------------------------

async function run(again) {
  const mine = turn;
  for (const id of ["run", "repeat", "profile"]) $(id).disabled = true;
  $("error").hidden = true;
  try {
    const values = [];
    for (const feed of feeds) values.push(await feed.values());
    const found = await client.call("run", { values, shapes: feeds.map((feed) => feed.shape), again });
    if (mine !== turn) return;
    if (found.compile !== null) {
      $("compile").textContent = `${made ? `${milliseconds(made.ms.generate)} to generate, ` : ""}${milliseconds(found.compile)} to plan`;
    }
    if ($("first").textContent === "–" || found.compile !== null) $("first").textContent = milliseconds(found.times[0]);
    const later = found.times.slice(1);
    if (later.length) {
      const threads = found.threads > 1 ? `, ${found.threads} threads` : "";
      $("steady").textContent = `${milliseconds(Math.min(...later))} at best, ${milliseconds(median(later))} median${threads}`;
    }
    $("outputs").replaceChildren(...found.outputs.flatMap(output));
  } catch (error) {
    if (mine === turn) {
      const open = document.querySelector("#sizes input, .input label > input[type=number]");
      fail(error, open && /ShapeError/.test(error.details) ? "Other sizes may do: they are set above the values." : "");
      main.dataset.state = "ready"; // another input may do
    }
  } finally {
    for (const id of ["run", "repeat", "profile"]) $(id).disabled = false;
  }
}

const number = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(5));

function output({ name, dtype, shape, count, low, high, mean, best, first }) {
  const title = document.createElement("h3");
  title.textContent = name;
  const facts = document.createElement("p");
  facts.textContent = `${dtype}, ${shape.join(" × ") || "one number"}`;
  if (count > 1) facts.textContent += `: from ${number(low)} to ${number(high)}, mean ${number(mean)}`;
  const parts = [title, facts];
  if (best.length) {
    const highest = document.createElement("p");
    highest.textContent = `Highest: ${best.map(([index, value]) => `[${index}] ${number(value)}`).join(", ")}`;
    parts.push(highest);
  }
  const values = document.createElement("pre");
  values.tabIndex = 0;
  values.textContent = `${first.map(number).join("  ")}${count > first.length ? `  … ${count - first.length} more` : ""}`;
  return [...parts, values];
}

async function profile() {
  $("profile").disabled = true;
  try {
    const rows = await client.call("profile");
    const kernels = new Map();
    for (const [name, , ms] of rows) {
      const [runs, spent] = kernels.get(name) ?? [0, 0];
      kernels.set(name, [runs + 1, spent + ms]);
    }
    const all = rows.reduce((sum, [, , ms]) => sum + ms, 0) || 1;
    const body = $("kernels").tBodies[0];
    body.replaceChildren();
    for (const [name, [runs, ms]] of [...kernels].sort((a, b) => b[1][1] - a[1][1])) {
      const row = body.insertRow();
      for (const text of [name, runs, ms.toFixed(2), `${((100 * ms) / all).toFixed(0)} %`]) row.insertCell().textContent = text;
    }
    $("kernels").hidden = false;
    $("kernels-note").textContent = "The time of each dispatch alone, by the host's clock, without the time of an empty submission.";
  } catch (error) {
    $("kernels-note").textContent = error.message;
  }
  $("profile").disabled = false;
}

$("run").onclick = () => run(0);
$("repeat").onclick = () => run(20);
$("profile").onclick = profile;
$("retry").onclick = () => given && open();
form.onchange = () => {
  tellDevice();
  if (given) open();
};

// -- examples, and what this browser has ------------------------------------------------------------------------------

async function openExample(example) {
  try {
    const response = await download(`examples/${example.file}`);
    await take([new File([await response.blob()], example.file)]);
  } catch (error) {
    fail(error);
  }
}

const examples = await download("gallery.json")
  .then((response) => response.json())
  .catch(() => []);
for (const example of examples) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = example.title;
  button.onclick = () => openExample(example);
  $("examples").append(button);
}

await known;
const asked = new URLSearchParams(location.hash.slice(1));
for (const name of ["runtime", "device"]) {
  const input = form.querySelector(`[name="${name}"][value="${CSS.escape(asked.get(name) ?? "")}"]`);
  if (input && !input.disabled) input.checked = true;
}
const named = examples.find(({ file }) => file === asked.get("example"));
if (named) openExample(named);
main.dataset.started = "";
setTimeout(keepForOffline, 1000);
