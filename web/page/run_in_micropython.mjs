// The model under MicroPython's Wasm build: half a megabyte, there at once.

import { start } from "./micropython/interpreter.mjs";

const ARCHIVE = "packages/emberlet.json";
const MODEL = ["model/digits.py", "model/digits.bpk", "model/inference.py"];

export const downloads = () => ["micropython/micropython.wasm", ARCHIVE, ...MODEL];

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
  const files = MODEL.map((name) => fetcher.bytes(name));
  const mp = await start(fetcher.bytes(ARCHIVE).then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
  for (const [i, name] of MODEL.entries()) mp.FS.writeFile(`/lib/${name.split("/")[1]}`, await files[i]);

  fetcher.tell(device === "wgpu" ? "Opening the GPU" : "Loading the model", 0.98);
  const shared = (globalThis.emberlet = { device });
  await mp.runPythonAsync(`
import js, jsffi
import inference
if js.emberlet.device == "wgpu":
    await inference.open_gpu()
classifier = inference.load(js.emberlet.device, "/lib/digits.bpk")
js.emberlet.adapter = classifier.adapter()
js.emberlet.version = inference.version()
`);
  return {
    version: shared.version,
    adapter: shared.adapter,
    classify: async (pixels) => {
      shared.pixels = pixels;
      await mp.runPythonAsync("js.emberlet.logits = jsffi.to_js(await classifier.logits_async(js.emberlet.pixels))");
      return shared.logits;
    },
  };
}
