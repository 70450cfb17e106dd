// The slow work of the page of models: Python, the compiler, converting images to tensors.

import { download } from "./download.mjs";
import { arrayOf } from "./emberlet/arrays.mjs";
import { readable } from "./emberlet/interpreter.mjs";
import { Watch } from "./emberlet/watch.mjs";

let python = null; // { run(code), FS } of the runtime that this worker has
let model = null; // { run, profile }, for a model of any kind
const fetchAny = globalThis.fetch.bind(globalThis);
let arrived = 0;

// All downloads, including those of the runtimes, are counted and have a time limit.
globalThis.fetch = (resource, options) => download(resource, { options, counted, fetcher: fetchAny });

let signs = () => {}; // to be called while a runtime gives signs of life

function counted(bytes) {
  arrived += bytes;
  signs();
  postMessage({ progress: { loaded: arrived, what } });
}

let what = "";
const tell = (text) => postMessage({ progress: { loaded: arrived, what: (what = text) } });
const bytesAt = async (name) => new Uint8Array(await (await fetch(new URL(name, import.meta.url).href)).arrayBuffer());

const runtimes = {
  async micropython() {
    tell("Loading MicroPython");
    const { start } = await import("./emberlet/interpreter.mjs");
    const sources = bytesAt("packages/emberlet.json").then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
    const mp = await start(sources);
    mp.registerJsModule("emberlet_threads", await import("./emberlet/threads.mjs"));
    mp.FS.mkdirTree("/model");
    mp.runPython('sys.path.append("/model")');
    return { FS: mp.FS, run: (code) => mp.runPythonAsync(code) };
  },

  async pyodide() {
    tell("Loading Pyodide");
    const { loadPyodide } = await import("./pyodide/pyodide.mjs");
    const archives = ["emberlet", "compiler", "wgpu"].map((name) => bytesAt(`packages/${name}.zip`));
    const pyodide = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
    const webgpu = await import("./pyodide/webgpu.mjs");
    pyodide.registerJsModule("emberlet_webgpu", webgpu.default);
    pyodide.registerJsModule("emberlet_threads", await import("./emberlet/threads.mjs"));
    const site = pyodide.runPython("import site; site.getsitepackages()[0]");
    for (const archive of archives) pyodide.unpackArchive(await archive, "zip", { extractDir: site });
    pyodide.FS.mkdirTree("/model");
    pyodide.runPython('import sys; sys.path.append("/model")');
    return { FS: pyodide.FS, run: (code) => pyodide.runPythonAsync(code) };
  },
};

async function ready(runtime) {
  if (python) return;
  python = await inTime(runtimes[runtime](), runtime === "pyodide" ? "Pyodide" : "MicroPython");
  python.FS.writeFile("/model/lab.py", await bytesAt("model/lab.py"));
  await python.run("import lab");
}

// What `starting` resolves to, unless it gives no sign of life.
async function inTime(starting, name) {
  let watch;
  const late = new Promise((_, fail) => (watch = new Watch((why) => fail(new Error(`${name} has not started, and ${why}`)))));
  signs = () => watch.sign();
  signs();
  try {
    return await Promise.race([starting, late]);
  } finally {
    watch.stop();
    signs = () => {};
  }
}

async function asked(code) {
  await python.run(code);
  return JSON.parse(python.FS.readFile("/answer.json", { encoding: "utf8" }));
}

const port = ({ name, dtype, shape }) => ({ name, dtype, shape });

const portLines = ({ inputs, outputs }) => [
  ...inputs.map((p) => `input   ${p.name}: ${p.dtype} (${p.shape.join(", ")})`),
  ...outputs.map((p) => `output  ${p.name}: ${p.dtype} (${p.shape.join(", ")})`),
];

// `run` of a model that JavaScript runs.
const ofJavaScript = (compiled) => ({
  async run(values, shapes, again) {
    const given = {};
    for (const [i, input] of compiled.inputs.entries()) {
      given[input.name] = Object.assign(new input.array(values[i].buffer), { shape: shapes[i] });
    }
    const times = [];
    let found;
    for (let i = 0; i <= again; i++) {
      const start = performance.now();
      found = await compiled.run(given);
      times.push(performance.now() - start);
    }
    const outputs = compiled.outputs.map(({ name, dtype }) => ({ name, dtype, shape: found[name].shape, values: found[name] }));
    return { outputs, compile: null, times, threads: compiled.threads };
  },
});

const commands = {
  // Python and weights from an ONNX file, under Pyodide.
  async generate({ name, bytes, data }) {
    const began = performance.now();
    await ready("pyodide");
    const loaded = performance.now();
    tell("Generating Python");
    const path = `/${name}`;
    python.FS.writeFile(path, bytes);
    for (const file of data) python.FS.writeFile(`/${file.name}`, new Uint8Array(await file.arrayBuffer()));
    const made = await asked(`lab.generate(${JSON.stringify(path)})`);
    for (const file of [path, ...data.map((one) => `/${one.name}`)]) python.FS.unlink(file);
    const weights = python.FS.readFile(made.weights);
    return {
      module: { name: made.module.split("/").pop(), text: python.FS.readFile(made.module, { encoding: "utf8" }) },
      weights: { name: made.weights.split("/").pop(), bytes: weights },
      structure: made.structure,
      ms: { load: loaded - began, generate: performance.now() - loaded },
    };
  },

  async loadModule({ module, weights, runtime, device }) {
    const began = performance.now();
    await ready(runtime);
    tell(device === "wgpu" ? "Opening the GPU" : "Loading the model");
    const stem = module.name.replace(/\.py$/, "");
    const unique = `given_${stem}`; // a model may be called model, as this folder, or math
    python.FS.writeFile(`/model/${unique}.py`, module.text);
    python.FS.writeFile(`/model/${weights.name}`, weights.bytes);
    if (!/^[A-Za-z_]\w*$/.test(stem)) throw new Error(`${module.name} cannot be imported: its name is not a Python name`);
    const code = `await lab.load(${JSON.stringify(unique)}, ${JSON.stringify(`/model/${weights.name}`)}, ${JSON.stringify(device)})`;
    const facts = await asked(code);
    model = {
      async run(values, shapes, again) {
        for (const [i, value] of values.entries()) python.FS.writeFile(`/in${i}`, asBytes(value));
        const told = await asked(`await lab.run(${JSON.stringify(shapes)}, ${again})`);
        const outputs = told.outputs.map((output, i) => ({
          name: facts.outputs[i] ?? `output ${i}`,
          ...output,
          values: typed(output.dtype, python.FS.readFile(`/out${i}`)),
        }));
        return { outputs, compile: told.compile, times: told.times, threads: told.threads };
      },
      profile: () => asked("await lab.profile()"),
    };
    return { ...facts, ms: { load: performance.now() - began } };
  },

  async loadPlan({ name, bytes }) {
    const began = performance.now();
    tell("Loading the plan");
    const { load } = await import("./emberlet/emberlet.mjs");
    const plan = await load(new File([bytes], name), { cache: false });
    model = {
      ...ofJavaScript(plan),
      profile: async () => (await plan.profile()).map(({ kernel, workgroups, ms }) => [kernel, workgroups, ms]),
    };
    const lines = [...portLines(plan), `${plan.dispatches} dispatches of ${plan.kernels} kernels`];
    return {
      name,
      adapter: plan.adapter,
      version: plan.runtime,
      inputs: plan.inputs.map(port),
      sizes: plan.sizes,
      outputs: plan.outputs.map((p) => p.name),
      structure: lines.join("\n"),
      ms: { load: performance.now() - began },
    };
  },

  // A compiled model, which runs without Python.
  async loadCompiled({ name, bytes }) {
    const began = performance.now();
    tell("Loading the model");
    const { load } = await import("./emberlet/wasm.mjs");
    const compiled = await load(new File([bytes], name));
    model = ofJavaScript(compiled);
    return {
      name,
      adapter: null,
      version: "JavaScript",
      inputs: compiled.inputs.map(port),
      sizes: compiled.sizes,
      outputs: compiled.outputs.map((p) => p.name),
      structure: portLines(compiled).join("\n"),
      ms: { load: performance.now() - began },
    };
  },

  async run({ values, shapes, again }) {
    const found = await model.run(values, shapes, again);
    return { ...found, outputs: found.outputs.map(shown) };
  },

  async profile() {
    if (!model.profile) throw new Error("only kernels on the GPU are measured");
    return model.profile();
  },

  // An image as the values of an input: channels first or last, stretched to the input's size.
  image({ bitmap, shape, scale }) {
    const [channels, height, width, last] = pictureShape(shape);
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0, width, height);
    bitmap.close();
    const { data } = context.getImageData(0, 0, width, height);
    const values = new Float32Array(channels * height * width);
    const mean = scale === "imagenet" ? [0.485, 0.456, 0.406] : [0, 0, 0];
    const deviation = scale === "imagenet" ? [0.229, 0.224, 0.225] : [1, 1, 1];
    for (let at = 0; at < width * height; at++) {
      const rgb = [data[4 * at], data[4 * at + 1], data[4 * at + 2]];
      const found = channels === 1 ? [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]] : rgb;
      for (let c = 0; c < channels; c++) {
        const value = scale === "255" ? found[c] : (found[c] / 255 - mean[c]) / deviation[c];
        values[last ? at * channels + c : c * width * height + at] = value;
      }
    }
    return values;
  },
};

// [channels, height, width, whether the channels are last] of (1, C, H, W) or (1, H, W, C).
function pictureShape(shape) {
  const [, a, b, c] = shape;
  return c === 1 || c === 3 ? [c, a, b, true] : [a, b, c, false];
}

const SHOWN = 200; // values of an output that the page shows

function shown({ name, dtype, shape, values }) {
  const numbers = values instanceof BigInt64Array || values instanceof BigUint64Array ? [...values].map(Number) : values;
  let [low, high, sum] = [Infinity, -Infinity, 0];
  for (const value of numbers) {
    if (value < low) low = value;
    if (value > high) high = value;
    sum += value;
  }
  const best = numbers.length > 1 && numbers.length <= 10000 ? top(numbers) : [];
  const first = Array.from(numbers.slice(0, SHOWN));
  return { name, dtype, shape, count: numbers.length, low, high, mean: sum / numbers.length, best, first };
}

function top(numbers) {
  const order = Array.from(numbers, (value, index) => [index, value]).filter(([, value]) => !Number.isNaN(value));
  return order.sort((a, b) => b[1] - a[1]).slice(0, 5);
}

const typed = (dtype, bytes) => new (arrayOf(dtype))(bytes.slice().buffer);
const asBytes = (value) => new Uint8Array(value.buffer, value.byteOffset, value.byteLength);

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    postMessage({ id, error: { ...readable(error.cause ?? error), message: readable(error).message } });
  }
};
