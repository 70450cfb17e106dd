// ONNX files and Python modules to plans and WebAssembly modules, in a worker that holds the compiler. It ends after some seconds without
// work, which frees its memory.

const IDLE = 10000; // ms
const SILENCE = 120000; // ms in which a compiler that starts downloads nothing

let worker = null;
let ending = 0;
let waiting = 0; // while the worker starts
let count = 0;
const jobs = new Map();

// { bytes, chosen }: the compiled model, and the sizes that nobody gave, by name. kind: "plan" or "wasm".
// files: [{ name, bytes }], the model first, then what it reads. folder: where the package's folder compiler/ is, if a bundler moved it. counted(bytes): told of each download's part.
export function compile(files, { kind, dim, freeze, folder, counted, signal }) {
  const id = ++count;
  const [{ name }] = files;
  return new Promise((resolve, reject) => {
    const end = (how, value) => {
      if (!jobs.delete(id)) return;
      signal?.removeEventListener("abort", abort);
      if (!jobs.size && worker) ending = setTimeout(stop, IDLE);
      how(value);
    };
    const abort = () => {
      end(reject, new Error(`compiling ${name} was aborted`, { cause: signal.reason }));
      if (!jobs.size) stop(); // Python cannot be interrupted from outside
    };
    if (signal?.aborted) return reject(new Error(`compiling ${name} was aborted`, { cause: signal.reason }));
    signal?.addEventListener("abort", abort, { once: true });
    jobs.set(id, { name, counted, done: (value) => end(resolve, value), failed: (error) => end(reject, error) });
    clearTimeout(ending);
    try {
      worker ??= started(folder);
      worker.postMessage({ id, files, kind, dim, freeze });
    } catch (error) {
      end(reject, notStarted(name, error.message));
    }
  });
}

function started(folder) {
  const made = folder
    ? new Worker(new URL("worker.mjs", new URL(folder.replace(/\/?$/, "/"), globalThis.location?.href)), { type: "module" })
    : new Worker(new URL("./compiler/worker.mjs", import.meta.url), { type: "module" });
  watch();
  made.onmessage = ({ data: { id, counted, ready, value, error } }) => {
    const job = jobs.get(id);
    clearTimeout(waiting);
    if (ready) return;
    if (counted) watch();
    if (counted) job?.counted?.(counted);
    else if (error) job?.failed(Object.assign(new Error(error.message, { cause: error.details }), { told: true, branchesOn: error.branchesOn }));
    else job?.done(value);
  };
  made.onerror = (event) => {
    event.preventDefault();
    fail(event.message || "are the files of the package's folder compiler/ there?");
  };
  return made;
}

// Give up a worker that starts if it gives no sign for long.
function watch() {
  clearTimeout(waiting);
  waiting = setTimeout(() => fail(`it gave no sign for ${SILENCE / 60000} minutes; reload the page.`), SILENCE);
}

function fail(why) {
  stop();
  for (const job of [...jobs.values()]) job.failed(notStarted(job.name, why));
}

const notStarted = (name, why) =>
  new Error(
    `${name} is not compiled, and the compiler could not start: ${why} Or compile the model ahead, with emberlet compile ` +
      `${name} --out ${name.replace(/\.(onnx|py)$/, "")}.plan`,
  );

function stop() {
  clearTimeout(waiting);
  worker?.terminate();
  worker = null;
}
