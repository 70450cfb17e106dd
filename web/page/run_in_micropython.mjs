// The model under MicroPython's Wasm build: its plan on the GPU, or the model itself in plain Python.

import { start } from "./emberlet/interpreter.mjs";

const WASM = "emberlet/micropython.wasm";
const PLAN = "model/digits.plan";
const ARCHIVE = "packages/emberlet.json";
const MODEL = ["model/digits.py", "model/digits.bpk", "model/inference.py"];

export const downloads = (files, device) => (device === "wgpu" ? [WASM, PLAN] : [WASM, ARCHIVE, ...MODEL]);

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
  return device === "wgpu" ? loadPlan() : loadModel(fetcher);
}

async function loadPlan() {
  const { load } = await import("./emberlet/emberlet.mjs");
  const model = await load(new URL(PLAN, import.meta.url), { cache: false }); // the service worker keeps it
  return {
    version: model.runtime,
    adapter: model.adapter,
    classify: async (pixels) => {
      const { logits } = await model.run({ image: Float32Array.from(pixels, (pixel) => pixel / 16) });
      return [...logits];
    },
  };
}

async function loadModel(fetcher) {
  const files = MODEL.map((name) => fetcher.bytes(name));
  const mp = await start(fetcher.bytes(ARCHIVE).then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
  for (const [i, name] of MODEL.entries()) mp.FS.writeFile(`/lib/${name.split("/")[1]}`, await files[i]);
  fetcher.tell("Loading the model", 0.98);
  const shared = (globalThis.emberlet = {});
  await mp.runPythonAsync(`
import js, jsffi
import inference
classifier = inference.load("python", "/lib/digits.bpk")
js.emberlet.version = inference.version()
`);
  return {
    version: shared.version,
    adapter: null,
    classify: async (pixels) => {
      shared.pixels = pixels;
      await mp.runPythonAsync("js.emberlet.logits = jsffi.to_js(classifier.logits(js.emberlet.pixels))");
      return shared.logits;
    },
  };
}
