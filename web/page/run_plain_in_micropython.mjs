// The model in plain Python under MicroPython's Wasm build.

import { start } from "./emberlet/interpreter.mjs";
import "./emberlet/micropython.mjs"; // which the interpreter asks for later
import { classifier } from "./classifier.mjs";

const WASM = "emberlet/micropython.wasm";
const ARCHIVE = "packages/digits.json";
const MODEL = ["model/digits.py", "model/digits.bpk", "model/inference.py"];

export const downloads = () => [WASM, ARCHIVE, ...MODEL];

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
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
