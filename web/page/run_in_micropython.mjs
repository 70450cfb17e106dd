// The model under MicroPython's Wasm build: its plan on the GPU, its module in WebAssembly, or itself in plain Python.

import { start } from "./emberlet/interpreter.mjs";

const WASM = "emberlet/micropython.wasm";
const PLAN = "model/digits.plan";
const COMPILED = "model/digits.wasm";
const ARCHIVE = "packages/emberlet.json";
const MODEL = ["model/digits.py", "model/digits.bpk", "model/inference.py"];

const FILES = { wgpu: [PLAN], wasm: [COMPILED], python: [ARCHIVE, ...MODEL] };

export const downloads = (files, device) => [WASM, ...FILES[device]];

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
  return { wgpu: loadPlan, wasm: loadCompiled, python: loadModel }[device](fetcher);
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

async function loadCompiled(fetcher) {
  const content = fetcher.bytes(COMPILED);
  const mp = await start(import("./emberlet/python.mjs").then((python) => python.default));
  mp.FS.writeFile("/digits.wasm", await content);
  return classifier(
    mp,
    `
import sys
from array import array
from emberlet.wgpu_backend.wasm.file import load_file
compiled = load_file("/digits.wasm")
js.emberlet.version = "MicroPython " + ".".join([str(part) for part in sys.implementation.version[:3]])
def logits(pixels):
    (found,) = compiled.run(array("f", [pixel / 16 for pixel in pixels]))
    return list(array("f", found.bytes))
`,
  );
}

async function loadModel(fetcher) {
  const files = MODEL.map((name) => fetcher.bytes(name));
  const mp = await start(fetcher.bytes(ARCHIVE).then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
  for (const [i, name] of MODEL.entries()) mp.FS.writeFile(`/lib/${name.split("/")[1]}`, await files[i]);
  fetcher.tell("Loading the model", 0.98);
  return classifier(
    mp,
    `
import inference
logits = inference.load("python", "/lib/digits.bpk").logits
js.emberlet.version = inference.version()
`,
  );
}

// Of code that defines `logits` and tells a version.
async function classifier(mp, code) {
  const shared = (globalThis.emberlet = {});
  await mp.runPythonAsync(`import js, jsffi${code}`);
  return {
    version: shared.version,
    adapter: null,
    classify: async (pixels) => {
      shared.pixels = pixels;
      await mp.runPythonAsync("js.emberlet.logits = jsffi.to_js(logits(js.emberlet.pixels))");
      return shared.logits;
    },
  };
}
