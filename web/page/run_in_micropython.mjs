// The model under MicroPython's Wasm build: its plan on the GPU, or its module in WebAssembly.

import { load as loadOnGpu, prepare } from "./emberlet/emberlet.mjs";
import "./emberlet/micropython.mjs"; // which the interpreter asks for later
import { classifier } from "./classifier.mjs";

const WASM = "emberlet/micropython.wasm";
const FILES = { wgpu: "model/digits.plan", wasm: "model/digits.wasm" };

export { prepare };
export const downloads = (files, device) => [WASM, FILES[device]];

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
  return device === "wgpu" ? loadPlan() : loadCompiled(fetcher);
}

async function loadPlan() {
  const model = await loadOnGpu(new URL(FILES.wgpu, import.meta.url), { cache: false }); // the service worker keeps it
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
  const content = fetcher.bytes(FILES.wasm);
  const mp = await prepare();
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
