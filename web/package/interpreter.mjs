// Starts MicroPython's Wasm build and shortens its errors.

import { download } from "./download.mjs";
import webgpu from "./webgpu.mjs"; // written by the build: JavaScript that emberlet.wgpu_backend calls

// MicroPython with the sources of an object (or of a promise of it: name -> source) on its import path.
// wasm: the address of micropython.wasm, beside this file unless given; counted(bytes): told of each part of it.
export async function start(sources, { wasm, counted } = {}) {
  wasm ??= new URL("micropython.wasm", import.meta.url).href;
  const [python, archive] = await Promise.all([load(wasm, counted), sources]);
  write(python.FS, archive);
  python.runPython('import sys; sys.path.append("/lib")');
  python.registerJsModule("emberlet_webgpu", webgpu); // avoids eval, which a strict content security policy forbids
  return python;
}

// Put the files of an object, name -> content, on the import path.
function write(FS, files) {
  const made = new Set();
  for (const [name, content] of Object.entries(files)) {
    const folder = `/lib/${name.slice(0, Math.max(0, name.lastIndexOf("/")))}`;
    if (!made.has(folder)) FS.mkdirTree(folder);
    made.add(folder);
    FS.writeFile(`/lib/${name}`, content);
  }
}

// MicroPython fetches its Wasm itself, twice if that fails, and without a time limit. Give it our downloads instead.
async function load(wasm, counted) {
  let failure = null;
  const begin = () => {
    const file = download(wasm, { counted });
    file.catch((error) => (failure = error));
    return file;
  };
  let first = begin();
  const { loadMicroPython } = await import("./micropython.mjs");
  const { fetch } = globalThis;
  const ours = (resource, options) => {
    if (resource !== wasm) return fetch(resource, options);
    const file = first ?? begin();
    first = null;
    return file;
  };
  globalThis.fetch = ours;
  try {
    return await loadMicroPython({
      url: wasm,
      heapsize: 4 << 20, // initial size
      pystack: 32 << 10, // words; the default of 2048 ends in the planning of a large model
      stdout: (line) => console.log(line),
      stderr: (line) => console.error(line),
    });
  } catch (error) {
    throw failure ?? error;
  } finally {
    if (globalThis.fetch === ours) globalThis.fetch = fetch;
  }
}

// The message of a Python exception contains the traceback; its last line is for people to read.
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
