// Compiles what a session of onnxruntime's API and `emberlet compile` import, with Pyodide's own Python: { files: { name:
// [source, what to compile in its place] }, model } from stdin to { name: base64 of a .pyc } in the file that is named.
import { readFileSync, writeFileSync } from "node:fs";
import { loadPyodide } from "./node_modules/pyodide/pyodide.mjs";

const { files, model } = JSON.parse(readFileSync(0, "utf8"));
const env = { PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" }; // the same bytes each time; tracebacks tell lines, not columns
const python = await loadPyodide({ env, stdout: (text) => console.error(text) });
const site = python.runPython("import site; site.getsitepackages()[0]");
for (const [name, [source]] of Object.entries(files)) {
  python.FS.mkdirTree(`${site}/${name.slice(0, name.lastIndexOf("/"))}`);
  python.FS.writeFile(`${site}/${name}`, source);
}
python.FS.writeFile("/model.onnx", Buffer.from(model, "base64"));
const used = python.runPython(`
import sys
from emberlet import onnxruntime

session = onnxruntime.InferenceSession("/model.onnx")
(x,) = session.get_inputs()

def zeros(shape):
    return [zeros(shape[1:]) for _ in range(shape[0])] if shape else 0.0

session.run(None, {x.name: zeros([d if isinstance(d, int) else 1 for d in x.shape])})
try:
    from emberlet.host.cli.compile import write
except ImportError:  # the package has no commands
    pass
else:
    for kind in ("wasm", "plan"):
        write("/model.onnx", f"/compiled.{kind}", [], [], None)
"\\n".join(m.__file__ for name, m in sys.modules.items() if name.split(".")[0] == "emberlet" and getattr(m, "__file__", None))
`);
const compile = python.runPython(`
import base64
from importlib import _bootstrap_external, util

def compiled(name, source):
    code = compile(source, name, "exec", dont_inherit=True)
    data = _bootstrap_external._code_to_hash_pyc(code, util.source_hash(source.encode()), False)
    return base64.b64encode(data).decode()

compiled
`);
const out = {};
for (const path of used.split("\n")) {
  const name = path.slice(site.length + 1);
  if (name in files) out[name] = compile(name, files[name][1]);
}
writeFileSync(process.argv[2], JSON.stringify(out));
process.exit(0);
