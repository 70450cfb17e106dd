// Runs one script in MicroPython's Wasm build, with emberlet importable; what it printed goes back.
import { loadMicroPython } from "/micropython/micropython.mjs";

globalThis.onmessage = async ({ data: source }) => {
  const lines = [];
  try {
    const files = await (await fetch("/packages/emberlet.json")).json();
    const mp = await loadMicroPython({ heapsize: 4 << 20, stdout: (line) => lines.push(line), linebuffer: true });
    for (const [name, text] of Object.entries(files)) {
      mp.FS.mkdirTree(`/lib/${name.slice(0, name.lastIndexOf("/"))}`);
      mp.FS.writeFile(`/lib/${name}`, text);
    }
    mp.runPython('import sys; sys.path.append("/lib")');
    await mp.runPythonAsync(source);
    postMessage({ printed: lines.join("\n") });
  } catch (error) {
    postMessage({ error: `${error.message}\n${lines.join("\n")}` });
  }
};
