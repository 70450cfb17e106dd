// Runs one script under MicroPython's Wasm build: node run_in_wasm.mjs MICROPYTHON.MJS PYSTACK < job.json
// The job names the script, its arguments, the heap's size, the import path, the files to copy in, the working folder.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const job = JSON.parse(fs.readFileSync(0, "utf8"));
const { loadMicroPython } = await import(pathToFileURL(process.argv[2]).href);

// The port hands over one byte at a time.
function collector(descriptor) {
  let bytes = [];
  const flush = () => {
    const data = Buffer.from(bytes);
    bytes = [];
    for (let done = 0; done < data.length; ) done += fs.writeSync(descriptor, data, done);
  };
  return {
    flush,
    write(chunk) {
      bytes.push(...chunk);
      if (bytes.length >= 65536) flush();
    },
  };
}

const out = collector(1);
const err = collector(2);
const pystack = Number(process.argv[3]);
const mp = await loadMicroPython({ heapsize: job.heap, pystack, stdout: out.write, stderr: err.write, linebuffer: false });

function copy(from) {
  if (fs.statSync(from).isDirectory()) {
    mp.FS.mkdirTree(from);
    for (const name of fs.readdirSync(from)) if (name !== "__pycache__") copy(path.join(from, name));
  } else {
    mp.FS.mkdirTree(path.dirname(from));
    mp.FS.writeFile(from, fs.readFileSync(from));
  }
}

job.copy.forEach(copy);
mp.FS.mkdirTree(job.cwd);
mp.FS.chdir(job.cwd);

const quote = (text) => JSON.stringify(text); // what JSON writes, Python reads
const list = (texts) => `[${texts.map(quote).join(", ")}]`;
let status = 0;
try {
  mp.runPython(`
import sys
sys.argv[:] = ${list([job.script, ...job.args])}
sys.path[:] = ${list([path.dirname(job.script), ...job.path, ".frozen"])}
with open(${quote(job.script)}) as _file:
    _code = compile(_file.read(), ${quote(job.script)}, "exec")
del _file
exec(_code, {"__name__": "__main__", "__file__": ${quote(job.script)}})
`);
} catch (error) {
  if (error.name !== "PythonError") throw error;
  if (error.type === "SystemExit") {
    const said = error.message.trimEnd().split("SystemExit:").pop().trim();
    status = said === "" || said.endsWith("SystemExit") || said === "None" ? 0 : /^-?\d+$/.test(said) ? Number(said) & 255 : 1;
    if (status === 1 && said !== "1") err.write(Buffer.from(`${said}\n`));
  } else {
    status = 1;
    err.write(Buffer.from(error.message));
  }
}
out.flush();
err.flush();
process.exit(status);
