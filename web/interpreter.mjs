// MicroPython's Wasm build: its start, and what its errors say.

import webgpu from "./webgpu.mjs"; // the build writes it: JavaScript that emberlet.wgpu_backend calls

// MicroPython, its import path holding the sources of an archive (bytes of JSON, or a promise of them: name -> source).
export async function start(archive) {
  const { loadMicroPython } = await import("./micropython.mjs");
  const [python, bytes] = await Promise.all([
    loadMicroPython({
      url: new URL("micropython.wasm", import.meta.url).href,
      heapsize: 4 << 20, // to begin with
      stdout: (line) => console.log(line),
      stderr: (line) => console.error(line),
    }),
    archive,
  ]);
  for (const [name, source] of Object.entries(JSON.parse(new TextDecoder().decode(bytes)))) {
    python.FS.mkdirTree(`/lib/${name.slice(0, name.lastIndexOf("/"))}`);
    python.FS.writeFile(`/lib/${name}`, source);
  }
  python.runPython('import sys; sys.path.append("/lib")');
  python.registerJsModule("emberlet_webgpu", webgpu); // without eval, which a strict content security policy forbids
  return python;
}

// Python's exceptions carry their traceback in the message; its last line is the one for a person.
export function readable(error) {
  const text = String(error?.message ?? error).trim();
  const lines = text.split("\n").filter((line) => line.trim());
  const last = lines.findLast((line) => /^[\w.]+(Error|Exception|Exit|Interrupt)\b/.test(line));
  if (text.startsWith("Traceback") && last) {
    const from = lines.lastIndexOf(last);
    return { message: lines.slice(from).join(" ").replace(/^[\w.]*?(\w+): /, ""), details: text };
  }
  return { message: text, details: error?.stack ?? "" };
}
