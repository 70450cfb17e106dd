// The model under MicroPython's Wasm build: half a megabyte, there at once.

const FILES = ["packages/emberlet.json", "model/digits.py", "model/digits.bpk", "model/inference.py"];
const HEAP = 4 << 20;

export const downloads = () => ["micropython/micropython.wasm", ...FILES];

export async function load(device, fetcher) {
  fetcher.tell("Loading MicroPython");
  const { loadMicroPython } = await import("./micropython/micropython.mjs");
  const files = FILES.map((name) => fetcher.bytes(name));
  const mp = await loadMicroPython({
    url: new URL("micropython/micropython.wasm", import.meta.url).href,
    heapsize: HEAP,
    stdout: (line) => console.log(line),
    stderr: (line) => console.error(line),
  });
  const [bundle, ...model] = await Promise.all(files);
  const sources = Object.entries(JSON.parse(new TextDecoder().decode(bundle)));
  for (const folder of new Set(sources.map(([name]) => name.slice(0, name.lastIndexOf("/"))))) {
    mp.FS.mkdirTree(`/lib/${folder}`);
  }
  for (const [name, source] of sources) mp.FS.writeFile(`/lib/${name}`, source);
  for (const [i, name] of FILES.slice(1).entries()) mp.FS.writeFile(`/lib/${name.split("/")[1]}`, model[i]);

  fetcher.tell(device === "wgpu" ? "Opening the GPU" : "Loading the model", 0.98);
  const shared = (globalThis.emberlet = { device });
  await mp.runPythonAsync(`
import sys
sys.path.append("/lib")
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
