// One prepare function an engine, each of which resolves to { run, threads }; run() runs once and resolves to a Float32Array.
// All start from bytes and end with the result in JavaScript; all compute with WebAssembly.
import { bytesOfModules } from "./memories.mjs";

const bytes = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());
const floats = (u8) => new Float32Array(u8.buffer, u8.byteOffset, u8.byteLength / 4);
const given = (inputs) => Promise.all(inputs.map(async (url) => floats(await bytes(url))));

const engines = {
  async emberlet({ module, inputs, threads }) {
    const { load } = await import("/package/wasm.mjs");
    const model = await load(module, { threads });
    const data = await given(inputs);
    const feeds = Object.fromEntries(model.inputs.map(({ name }, i) => [name, data[i]]));
    const [{ name }] = model.outputs;
    return { run: async () => (await model.run(feeds))[name], threads: () => model.threads };
  },

  async onnxruntime({ model, names, shapes, inputs, constants, threads }) {
    const ort = await import("/ort/ort.wasm.bundle.min.mjs");
    ort.env.wasm.wasmPaths = "/ort/";
    ort.env.wasm.numThreads = threads;
    ort.env.logLevel = "error";
    const session = await ort.InferenceSession.create(await bytes(model), { executionProviders: ["wasm"] });
    const data = await given(inputs);
    const run = async () => {
      const feeds = {};
      names.forEach((name, i) => (feeds[name] = new ort.Tensor("float32", data[i], shapes[i])));
      for (const [name, value] of Object.entries(constants)) feeds[name] = new ort.Tensor("int64", [BigInt(value)], []);
      return (await session.run(feeds))[session.outputNames[0]].getData();
    };
    return { run, threads: () => ort.env.wasm.numThreads };
  },

  // jax-js: a product of two matrices. It starts a worker for each processor if memory can be shared, and computes
  // without any if it cannot, which is faster than with one.
  async jax({ shapes, inputs, threads }) {
    if (threads === 1) delete globalThis.SharedArrayBuffer;
    Object.defineProperty(navigator, "hardwareConcurrency", { value: threads });
    const used = new Set();
    globalThis.Worker = class extends Worker {
      postMessage(message) {
        if (message.type === "kernel") used.add(this);
        super.postMessage(message);
      }
    };
    const { init, defaultDevice, numpy: np } = await import("/jax/index.js");
    await init("wasm");
    defaultDevice("wasm");
    const data = await given(inputs);
    const run = async () => {
      const [a, b] = data.map((values, i) => np.array(values, { shape: shapes[i] }));
      return np.matmul(a, b).data();
    };
    return { run, threads: () => used.size || 1 };
  },

  // As many multiply-adds as the product has, in registers, and nothing else.
  async ceiling() {
    const { instance } = await WebAssembly.instantiate(await bytes("/work/ceiling.wasm"));
    const run = async () => {
      instance.exports.run();
      return [];
    };
    return { run, threads: () => 1 };
  },
};

const ready = {};
const tasks = {
  async prepare({ engine, key, job }) {
    const start = performance.now();
    ready[key] = await engines[engine](job);
    const result = await ready[key].run();
    const took = performance.now() - start;
    if (job.visit) {
      const loaded = performance.getEntriesByType("resource").filter(({ name }) => !/\.input\d+$/.test(name));
      return { start: took, memory: bytesOfModules(), bytes: loaded.reduce((sum, one) => sum + one.encodedBodySize, 0) };
    }
    await new Promise((next) => setTimeout(next, 200)); // threads start
    for (let i = 0; i < 3; i++) await ready[key].run();
    return { start: took, result: Array.from(result), threads: ready[key].threads() };
  },

  // After a pause: onnxruntime's threads keep a processor busy for some 15 ms after a run.
  async measure({ key, calls }) {
    const times = [];
    await new Promise((next) => setTimeout(next, 50));
    for (let i = 0; i < calls; i++) {
      const start = performance.now();
      await ready[key].run();
      times.push(performance.now() - start);
    }
    return times;
  },
};

onmessage = async ({ data: { number, task, given } }) => {
  try {
    postMessage({ number, value: await tasks[task](given) });
  } catch (error) {
    postMessage({ number, failed: error.stack });
  }
};
