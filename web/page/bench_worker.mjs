// One engine and one workload: prepared once, then called on request.

const at = (path) => new URL(path, import.meta.url).href;
const bytes = async (path) => {
  const response = await fetch(at(path));
  if (!response.ok) throw new Error(`could not download ${path}: the server answered ${response.status}`);
  return response.arrayBuffer();
};

const engines = {
  async emberlet({ plan }) {
    const { load } = await import("./emberlet/emberlet.mjs");
    const model = await load(await bytes(plan));
    return async (inputs) => Object.values(await model.run(inputs))[0];
  },

  async "onnxruntime-web"({ model, shapes }) {
    const ort = await import("./peers/onnxruntime-web/ort.webgpu.bundle.min.mjs");
    ort.env.wasm.wasmPaths = at("peers/onnxruntime-web/");
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = "error";
    const session = await ort.InferenceSession.create(await bytes(model), { executionProviders: ["webgpu"] });
    return async (inputs) => {
      const feeds = {};
      for (const name in inputs) feeds[name] = new ort.Tensor("float32", inputs[name], shapes[name]);
      return (await session.run(feeds))[session.outputNames[0]].getData();
    };
  },

  async "jax-js"({ shapes, names }) {
    if (names.length !== 2) throw new Error("jax-js has no reader for this model");
    const { init, defaultDevice, numpy: np } = await import("./peers/jax-js/index.js");
    await init("webgpu");
    defaultDevice("webgpu");
    return async (inputs) => {
      const [a, b] = names.map((name) => np.array(inputs[name], { shape: shapes[name] }));
      return np.matmul(a, b).data();
    };
  },
};

let call = null;
let inputs = null;

const commands = {
  async prepare({ engine, work, values }) {
    const began = performance.now();
    inputs = values;
    call = await engines[engine](work);
    const result = await call(inputs);
    return { start: performance.now() - began, result: Float32Array.from(result) };
  },

  async measure({ calls }) {
    const times = [];
    for (let i = 0; i < calls; i++) {
      const began = performance.now();
      await call(inputs);
      times.push(performance.now() - began);
    }
    return times;
  },
};

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    postMessage({ id, error: { message: String(error?.message ?? error).split("\n")[0] } });
  }
};
