// ONNX files and Python modules to plans and WebAssembly modules, in a worker that holds the compiler. It ends after some seconds without
// work, which frees its memory.

import { EmberletError } from "./errors.mjs";
import { Kept } from "./kept.mjs";
import { version } from "./version.mjs";
import { Watch } from "./watch.mjs";

const IDLE = 1000; // ms; it starts again in half a second
const EARLY = 60000; // ms that a compiler which started early waits for its first job

let worker = null;
let place = ""; // the folder of its files that was asked for
let ending = 0;
let held = 0; // models that need the worker after their job
let ready = false; // whether the worker's Python has started
const watch = new Watch((why) => fail(`it ${why}.`));
let count = 0;
const jobs = new Map();

/** Start the compiler before there is a job, where this browser keeps nothing that it compiled: it takes seconds, and
 * what a page shows first is waiting for it. What fails here is told with the first job. */
export async function prepare(folder) {
  if (typeof Worker !== "function" || worker || (await (await Kept.open())?.has(`compiled/${version}/`).catch(() => true))) return;
  if (worker) return;
  try {
    worker = started(folder);
    worker.postMessage({ early: true });
    ending = setTimeout(stop, EARLY);
  } catch {
    stop();
  }
}

/** Keep the worker, also when it has no job: once for each model that runs in it. change: 1, or -1 when it is released. */
export function hold(change) {
  held += change;
  rest();
}

function rest() {
  clearTimeout(ending);
  if (worker && !jobs.size && !held) ending = setTimeout(stop, IDLE);
}

// { bytes, chosen }: the compiled model, and the sizes that nobody gave, by name. kind: "plan" or "wasm".
// files: [{ name, bytes }], the model first, then what it reads. folder: where the package's folder compiler/ is, if a
// bundler moved it. counted(bytes): told of each download's part. more: what else the worker is told (steps.mjs).
export function compile(files, { folder, counted, signal, ...more }) {
  const id = ++count;
  const [{ name }] = files;
  return new Promise((resolve, reject) => {
    const end = (how, value) => {
      if (!jobs.delete(id)) return;
      signal?.removeEventListener("abort", abort);
      rest();
      how(value);
    };
    const abort = () => {
      end(reject, new EmberletError(`compiling ${name} was aborted`, { cause: signal.reason }));
      if (!jobs.size) stop(); // Python cannot be interrupted from outside
    };
    if (signal?.aborted) return reject(new EmberletError(`compiling ${name} was aborted`, { cause: signal.reason }));
    signal?.addEventListener("abort", abort, { once: true });
    jobs.set(id, { name, counted, done: (value) => end(resolve, value), failed: (error) => end(reject, error) });
    clearTimeout(ending);
    try {
      if (worker && jobs.size === 1 && place !== (folder ?? "")) stop(); // it started early, from elsewhere
      worker ??= started(folder);
      worker.postMessage({ id, files, ...more });
      if (!ready) watch.sign(); // Python starts with this job, also where it could not start with another
    } catch (error) {
      end(reject, notStarted(name, error.message));
    }
  });
}

function started(folder) {
  place = folder ?? "";
  const made = folder
    ? new Worker(new URL("worker.mjs", new URL(folder.replace(/\/?$/, "/"), globalThis.location?.href)), { type: "module" })
    : new Worker(new URL("./compiler/worker.mjs", import.meta.url), { type: "module" });
  made.onmessage = ({ data: { id, counted, ready: begun, value, error } }) => {
    const job = jobs.get(id);
    ready ||= Boolean(begun);
    if (counted) job?.counted?.(counted);
    else if (error) job?.failed(refusal(error));
    else if (!begun) job?.done(value);
    if (ready || !jobs.size) watch.stop();
    else watch.sign();
  };
  made.onerror = (event) => {
    event.preventDefault();
    fail(event.message || "are the files of the package's folder compiler/ there?");
  };
  return made;
}

// refused: the compiler refuses the model with these sizes, rather than that it could not start.
const refusal = ({ message, details, branchesOn }) => Object.assign(new EmberletError(message, { cause: details }), { told: true, refused: ready, branchesOn });

function fail(why) {
  stop();
  for (const job of [...jobs.values()]) job.failed(notStarted(job.name, why));
}

const notStarted = (name, why) =>
  new EmberletError(
    `${name} is not compiled, and the compiler could not start: ${why} Or compile the model ahead, with emberlet compile ` +
      `${name} --out ${name.replace(/\.(onnx|py)$/, "")}.plan`,
  );

function stop() {
  clearTimeout(ending); // it would end the next worker, in the middle of its job
  watch.stop();
  worker?.terminate();
  worker = null;
  ready = false;
}
