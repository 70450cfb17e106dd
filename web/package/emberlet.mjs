// Runs a model from JavaScript on this browser's GPU:
//
//   import { load } from "emberlet-web"; // or "./emberlet/emberlet.mjs"
//
//   const model = await load("model.onnx"); // or a generated module, model.py, or what `emberlet compile` wrote
//   const { logits } = await model.run({ image: new Float32Array(64) });
//
// Inputs and results are typed arrays in row-major order. Every failure is an EmberletError whose message is one sentence for
// people to read; its `cause` has the details. Inside, MicroPython runs emberlet's plan runtime. A global scope can have
// only one MicroPython, which all models of a page (or of a worker) share. emberlet.d.mts describes the public API.

import { arrayOf } from "./arrays.mjs";
import { toGpu } from "./arriving.mjs";
import { loadEither } from "./either.mjs";
import { EmberletError, EmberletTypeError } from "./errors.mjs";
import { readable, start } from "./interpreter.mjs";
import { Kept } from "./kept.mjs";
import { named, wrongInputs } from "./kinds.mjs";
import { checkOptions } from "./options.mjs";
import python from "./python.mjs"; // the build writes it: emberlet's sources
import { open } from "./sources.mjs";

export { EmberletError };

let interpreter = null;
let count = 0;
let last = Promise.resolve();
let targets = []; // GPU objects that Python passes while it opens a plan
let queue = null;

export async function load(source, options = {}) {
  checkOptions(options);
  const { fallback, device } = options;
  if (!fallback) return begun(source, options);
  const inWasm = () => begun(fallback, { ...options, device: "wasm" });
  return loadEither(() => begun(source, { ...options, device: "webgpu" }), inWasm, device);
}

async function begun(source, options) {
  try {
    try {
      return await begin(source, options);
    } catch (error) {
      if (!error.fromCache) throw error;
      return await begin(source, options); // the stored plan was damaged and has been deleted
    }
  } catch (error) {
    throw error.told ? error : told(error);
  }
}

export function prepare({ wasm, counted } = {}) {
  if (interpreter) return interpreter;
  warmUp();
  interpreter = start(python, { wasm, counted }).then((started) => {
    started.registerJsModule("emberlet_page", {
      target: (buffer) => void targets.push(buffer),
      queue: (one) => void (queue = one),
      now: () => performance.now(),
    });
    started.runPython("import emberlet_web");
    return started;
  });
  interpreter.catch(() => (interpreter = null)); // so that the next call tries again
  return interpreter;
}

async function begin(source, options) {
  const { cache = true, onProgress = () => {}, signal, wasm, threads, device } = options;
  const arrived = { interpreter: 0, plan: 0 };
  let total; // bytes of the file: of a plan by its header, of a WebAssembly module by the server's answer
  let stage = "download";
  const progress = (what) => (bytes) => {
    arrived[what] += bytes;
    onProgress({ loaded: arrived.interpreter + arrived.plan, total: total && total + arrived.interpreter, stage });
  };
  const starting = device === "wasm" ? null : prepare({ wasm, counted: progress("interpreter") });
  starting?.catch(() => {});
  const expected = (bytes) => (total = bytes);
  const opening = open(source, { cache, signal, counted: progress("plan"), expected });
  opening.catch(() => {});
  const isOnnx = /\.onnx([?#]|$)/i.test(source?.url ?? source?.name ?? (ArrayBuffer.isView(source) ? "" : source));
  if (isOnnx) import("./compiling.mjs").then((compiling) => compiling.prepare(options.compiler));
  const plan = await opening;
  if (plan.compiled) {
    if (device === "webgpu") throw new EmberletTypeError(`${plan.name} is a WebAssembly module: device: "webgpu" needs an ONNX file or a plan`);
    try {
      const model = await (await import("./wasm.mjs")).load(named(plan.compiled, plan.name), { threads });
      return Object.assign(model, { reason: `${plan.name} is a WebAssembly module` });
    } catch (error) {
      if (plan.stored) await (await Kept.open())?.forget(plan.stored);
      throw plan.stored ? Object.assign(error, { fromCache: true }) : error;
    }
  }
  if (plan.onnx || plan.module) {
    const compiling = () => {
      stage = "compile";
      progress("plan")(0);
    };
    const ofPlan = (bytes) => begun(bytes, { cache: false, signal, wasm });
    const { compileAndLoad } = await import("./onnx.mjs");
    return compileAndLoad(plan, { ...options, cache, ofPlan, progress: progress("plan"), compiling });
  }
  if (device === "wasm") {
    plan.arriving.cancel();
    throw new EmberletTypeError(`${plan.name} is a plan, for the GPU: device: "wasm" needs a fallback, a .wasm file`);
  }
  const mp = await starting;
  const key = ++count;
  const counted = progress("plan");
  counted(plan.header.length);
  try {
    const { uploads, ...facts } = await allocate(mp, key, plan);
    total = uploads.reduce((most, { end }) => Math.max(most, end), plan.header.length);
    const compiled = call(mp, `await emberlet_web.compile_plan(${key})`);
    compiled.catch(() => {});
    await toGpu(plan.arriving, plan.header.length, uploads, facts.queue, async (part) => {
      counted(part.length);
      if (signal?.aborted) throw new EmberletError(`the download of ${plan.name} was aborted`, { cause: signal.reason });
      await plan.keeping?.write(part);
    });
    plan.keeping?.close();
    await compiled;
    await call(mp, `emberlet_web.fill_plan(${key})`);
    return new Model(mp, key, facts);
  } catch (error) {
    plan.arriving.cancel();
    plan.keeping?.abort();
    await call(mp, `emberlet_web.release_plan(${key})`).catch(() => {});
    if (error.damaged) {
      const fromCache = Boolean(plan.key);
      if (fromCache) await (await Kept.open())?.forget(`plan/${plan.key}`);
      throw Object.assign(new EmberletError(`${plan.name}: ${error.message}`, { cause: error }), { fromCache });
    }
    throw Object.assign(error, { refused: error.ofGpu && !error.lost }); // such as its buffers
  }
}

// The first request for an adapter starts the browser's GPU process; downloads continue meanwhile.
function warmUp() {
  try {
    globalThis.navigator?.gpu?.requestAdapter({ powerPreference: "high-performance" }).catch(() => {});
  } catch {
    // Python requests it again and reports the error
  }
}

// Allocate the plan's memory on the GPU: what Python tells of the plan, and where its weights go.
function allocate(mp, key, plan) {
  return inTurn(async () => {
    const path = `/${key}-plan`;
    mp.FS.writeFile(path, plan.header, { canOwn: true });
    targets = [];
    try {
      await mp.runPythonAsync(
        `answer = await emberlet_web.open_plan(${key}, ${JSON.stringify(path)}, ${JSON.stringify(plan.name)})`,
      );
    } finally {
      mp.FS.unlink(path);
    }
    const found = JSON.parse(mp.globals.get("answer"));
    let next = 0;
    const buffers = targets;
    const uploads = found.uploads.map(([start, end, crc, name, sizes]) => {
      const pages = sizes.map((size) => ({ buffer: buffers[next++], size }));
      return { start, end, crc, name, pages };
    });
    targets = [];
    return { ...found, uploads, queue };
  });
}

class Model {
  #python;
  #key;
  #released = false;

  constructor(mp, key, { adapter, runtime, inputs, outputs, sizes, dispatches, kernels }) {
    this.#python = mp;
    this.#key = key;
    this.adapter = adapter;
    this.device = "webgpu";
    this.reason = ""; // why it is not the GPU
    this.runtime = runtime;
    this.inputs = inputs.map(port);
    this.outputs = outputs.map(port);
    this.sizes = Object.fromEntries(sizes.map(([name, ...range]) => [name, range]));
    this.dispatches = dispatches;
    this.kernels = kernels;
  }

  async run(given = {}) {
    const bytes = checked(this.inputs, given);
    return inTurn(() => this.#run(bytes, this.outputs));
  }

  async session({ state }) {
    const pairs = Object.entries(state).map(([input, output]) => {
      const places = [indexOf(this.inputs, input, "input"), indexOf(this.outputs, output, "output")];
      return { input, output, places };
    });
    const number = ++count;
    const model = {
      run: (bytes, outputs) => this.#run(bytes, outputs, number),
      call: (code) => this.#call(code),
      files: this.#python.FS,
      inputs: this.inputs,
      outputs: this.outputs,
    };
    return inTurn(async () => {
      const places = JSON.stringify(pairs.map((pair) => pair.places));
      await this.#call(`emberlet_web.open_session(${this.#key}, ${number}, ${places})`);
      return new Session(model, number, pairs);
    });
  }

  async profile({ runs = 3 } = {}) {
    return inTurn(async () => {
      await this.#call(`answer = await emberlet_web.profile_plan(${this.#key}, ${Math.max(1, Math.floor(runs))})`);
      const rows = JSON.parse(this.#python.globals.get("answer"));
      return rows.map(([kernel, workgroups, ms]) => ({ kernel, workgroups, ms }));
    });
  }

  release() {
    return inTurn(async () => {
      if (!this.#released) await this.#call(`emberlet_web.release_plan(${this.#key})`);
      this.#released = true;
    });
  }

  async #call(code) {
    if (this.#released) throw new EmberletError("the model was released; load it again");
    await this.#python.runPythonAsync(code);
  }

  async #run(bytes, outputs, session) {
    const { FS } = this.#python;
    for (const [i, { content }] of bytes) FS.writeFile(`/in${i}`, content);
    const given = JSON.stringify(JSON.stringify(bytes.map(([i, { content, shape }]) => [i, content.length, shape])));
    const results = `await emberlet_web.run_plan(${this.#key}, ${given}, ${session ?? "None"})`;
    await this.#call(`answer = ${results}`);
    const shapes = JSON.parse(this.#python.globals.get("answer"));
    return Object.fromEntries(
      outputs.map(({ name, array }, i) => {
        const values = new array(FS.readFile(`/out${i}`).buffer);
        return [name, Object.assign(values, { shape: shapes[i] })];
      }),
    );
  }
}

class Session {
  #model;
  #number;
  #pairs;
  #released = false;

  constructor(model, number, pairs) {
    this.#model = model;
    this.#number = number;
    this.#pairs = pairs;
    this.inputs = model.inputs.filter(({ name }) => !pairs.some(({ input }) => input === name));
    this.outputs = model.outputs.filter(({ name }) => !pairs.some(({ output }) => output === name));
  }

  async run(given = {}) {
    const { inputs } = this.#model;
    const bytes = checked(this.inputs, given).map(([i, one]) => [inputs.indexOf(this.inputs[i]), one]);
    return this.#inTurn(() => this.#model.run(bytes, this.outputs));
  }

  async setState(name, value) {
    const place = this.#place(name);
    const { content } = bytesOf(this.#model.inputs[place], value);
    return this.#inTurn(() => {
      this.#model.files.writeFile(`/in${place}`, content);
      return this.#model.call(`emberlet_web.set_state(${this.#number}, ${place})`);
    });
  }

  async getState(name) {
    const place = this.#place(name);
    const { array } = this.#model.inputs[place];
    return this.#inTurn(async () => {
      await this.#model.call(`await emberlet_web.read_state(${this.#number}, ${place})`);
      return new array(this.#model.files.readFile(`/out${place}`).buffer);
    });
  }

  reset() {
    return this.#inTurn(() => this.#model.call(`emberlet_web.reset_session(${this.#number})`));
  }

  release() {
    return inTurn(async () => {
      if (!this.#released) await this.#model.call(`emberlet_web.release_session(${this.#number})`);
      this.#released = true;
    });
  }

  #place(name) {
    const pair = this.#pairs.find(({ input }) => input === name);
    if (!pair) throw new EmberletError(`the session has no state "${name}"; it has ${this.#pairs.map(({ input }) => input).join(", ")}`);
    return pair.places[0];
  }

  #inTurn(job) {
    return inTurn(() => {
      if (this.#released) throw new EmberletError("the session was released");
      return job();
    });
  }
}

function indexOf(ports, name, what) {
  const found = ports.findIndex((one) => one.name === name);
  if (found < 0) throw new EmberletError(`the model has no ${what} "${name}"; it has ${ports.map((one) => one.name).join(", ")}`);
  return found;
}

function port({ name, dtype, shape, bytes }) {
  const array = arrayOf(dtype);
  return { name, dtype, shape, array, length: bytes / array.BYTES_PER_ELEMENT };
}

// [position, its bytes and shape] of every input.
function checked(inputs, given) {
  const wrong = wrongInputs(given, inputs);
  if (wrong) throw new EmberletTypeError(wrong);
  const names = inputs.map(({ name }) => name);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new EmberletError(`the model has no input "${unknown}"; it takes ${names.join(", ")}`);
  return inputs.map((input, i) => [i, bytesOf(input, given[input.name])]);
}

function bytesOf({ name, dtype, shape, array, length }, value) {
  const open = shape.some((size) => typeof size === "string");
  if (!(value instanceof array) || (value.length !== length && !open)) {
    const kind = value?.constructor?.name ?? String(value);
    const found = value?.length === undefined ? kind : `${kind} of ${value.length}`;
    const wanted = `${array.name}${open ? "" : ` of ${length}`} (${dtype}, ${shape.join("×") || "one number"})`;
    throw new EmberletError(`the input "${name}" takes a ${wanted}; found: ${found}`);
  }
  const content = new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice(); // as it is now
  if (!open || value.shape?.length !== shape.length) return { content }; // Python derives the sizes from the number of bytes
  if (value.shape.reduce((product, n) => product * n, 1) !== value.length) {
    throw new EmberletError(`the input "${name}" has ${value.length} values, and its shape is ${value.shape.join("×")}`);
  }
  return { content, shape: [...value.shape] };
}

const call = (mp, code) => inTurn(() => mp.runPythonAsync(code));

// Calls are queued, since the interpreter runs one at a time.
function inTurn(job) {
  const result = last.then(job).catch((error) => {
    throw told(error);
  });
  last = result.catch(() => {});
  return result;
}

function told(error) {
  // MicroPython names the class of its exceptions; BackendError is what the GPU refuses and its loss.
  const ofGpu = error.ofGpu || error.type === "BackendError";
  const { refused, otherSizes = error.type === "OtherSizesError" } = error;
  const { message } = readable(error);
  const lost = ofGpu && /device (was|is) lost/i.test(message); // with everything on it, whatever the sizes
  const Kind = error instanceof EmberletError ? error.constructor : EmberletError;
  return Object.assign(new Kind(message, { cause: error }), { told: true, ofGpu, lost, refused, otherSizes });
}
