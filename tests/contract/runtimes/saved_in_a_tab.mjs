// Runs compiled models (.wasm) in a Python of a tab, under Node:
//   node saved_in_a_tab.mjs micropython|pyodide LOADER.MJS PACKAGES.JSON SAVED_IN_A_TAB.PY
// Each line of the input is a job of tests/contract/runtimes/__init__.py, each line of the output its answer.
import fs from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [which, loader, packages, script] = process.argv.slice(2);
const { loadMicroPython, loadPyodide } = await import(pathToFileURL(loader).href);
const say = (line) => process.stderr.write(`${line}\n`);
const python =
  which === "micropython"
    ? await loadMicroPython({ heapsize: 16 << 20, stdout: say, linebuffer: true })
    : await loadPyodide({ indexURL: path.dirname(loader) + path.sep, stdout: say });
for (const [name, text] of Object.entries(JSON.parse(fs.readFileSync(packages, "utf8")))) {
  python.FS.mkdirTree(`/lib/${path.posix.dirname(name)}`);
  python.FS.writeFile(`/lib/${name}`, text);
}
python.runPython('import sys\nsys.path.append("/lib")');
python.runPython(fs.readFileSync(script, "utf8"));
const said = python.globals.get("said");
for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${said(line)}\n`);
