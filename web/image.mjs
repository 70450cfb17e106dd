// The memory of Pyodide's Python once it has imported the compiler: { files: { name: base64 }, modules, model } from stdin,
// to the file that is named. Pyodide in a browser goes on from there (package/compiler/worker.mjs).
import crypto from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { loadPyodide } from "./node_modules/pyodide/pyodide.mjs";

// The same sources give the same memory: it holds times, what was drawn, and the path of this script.
let tick = 0;
Date.now = () => 1e12 + tick++;
performance.now = () => tick++;
crypto.randomFillSync = (array) => array.map((_, i) => (array[i] = i));

const [, , out] = process.argv;
process.argv.splice(1, 2, "image.mjs");

const { files, modules, model } = JSON.parse(readFileSync(0, "utf8"));
const env = { PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" }; // tracebacks tell lines, not columns
const python = await loadPyodide({ _makeSnapshot: true, env, stdout: (text) => console.error(text) });
const site = python.runPython("import site; site.getsitepackages()[0]");
for (const [name, content] of Object.entries(files)) {
  python.FS.mkdirTree(`${site}/${name}`.replace(/\/[^/]*$/, ""));
  python.FS.writeFile(`${site}/${name}`, Buffer.from(content, "base64"));
}
python.FS.mkdirTree("/models");
python.FS.writeFile("/models/model.onnx", Buffer.from(model, "base64"));
python.globals.set("modules", modules.join(" "));
python.runPython(`
import gc
import importlib
import json
import random
import sys

import emberlet_compile

for name in modules.split():
    importlib.import_module(name)
for path, kind in (("model.onnx", "wasm"), ("model.onnx", "plan"), ("none.onnx", "wasm")):  # the last is refused
    told = json.loads(emberlet_compile.compile("/models/" + path, "/models/compiled." + kind, '{"dim": [], "freeze": [], "relaxed": true}'))
    assert ("error" in told) == (path == "none.onnx"), told
emberlet_compile.late()
random.seed(0)  # the compiler draws from os.urandom
del modules, name, path, kind, told
for _ in range(3):
    gc.collect()
gc.freeze()  # none of this is garbage later
`);
clearFreed(python._module);
writeFileSync(out, python.makeMemorySnapshot());
process.exit(0);

// Set what was freed to zero, half a megabyte of what was last there. All free blocks are allocated, the largest first,
// until the memory in use would grow.
function clearFreed(module) {
  const { HEAPU8, HEAPU32, _malloc, _malloc_usable_size, _free } = module;
  const end = () => HEAPU32[module._emscripten_get_sbrk_ptr() >> 2];
  const taken = [];
  for (let size = 1 << 16; size >= 16; size >>= 1) {
    for (;;) {
      const before = end();
      const at = _malloc(size);
      if (end() !== before) {
        _free(at);
        break;
      }
      HEAPU8.fill(0, at, at + _malloc_usable_size(at));
      taken.push(at);
    }
  }
  for (const at of taken.reverse()) _free(at);
}
