// The model under Pyodide: CPython in WebAssembly, wgpu-py for the GPU.

import { loadPyodide } from "./pyodide/pyodide.mjs";
import webgpu from "./pyodide/webgpu.mjs";

const PACKAGES = (device) => ["packages/emberlet.zip", ...(device === "wgpu" ? ["packages/wgpu.zip"] : [])];
const MODEL = ["model/digits.py", "model/digits.bpk", "model/inference.py"];

export const downloads = (files, device) => [
  ...Object.keys(files).filter((name) => /^pyodide\/.*\.(wasm|zip)$/.test(name)),
  ...PACKAGES(device),
  ...MODEL,
];

export async function load(device, fetcher) {
  fetcher.tell("Loading Pyodide");
  const packages = PACKAGES(device).map((name) => fetcher.bytes(name));
  const model = MODEL.map((name) => fetcher.bytes(name));
  const pyodide = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  const site = pyodide.runPython("import site; site.getsitepackages()[0]");
  pyodide.registerJsModule("emberlet_webgpu", webgpu); // without eval, which the page's policy forbids
  for (const archive of packages) pyodide.unpackArchive(await archive, "zip", { extractDir: site });
  for (const [i, name] of MODEL.entries()) pyodide.FS.writeFile(`${site}/${name.split("/")[1]}`, await model[i]);

  fetcher.tell(device === "wgpu" ? "Opening the GPU" : "Loading the model", 0.98);
  const inference = pyodide.pyimport("inference");
  // Called this way Python can be suspended while the browser works.
  const classifier = await inference.load.callPromising(device, `${site}/digits.bpk`);
  return {
    version: `Pyodide ${pyodide.version}, ${inference.version()}`,
    adapter: classifier.adapter(),
    classify: async (pixels) => {
      const logits = await classifier.logits.callPromising(pixels);
      const list = logits.toJs();
      logits.destroy();
      return list;
    },
  };
}
