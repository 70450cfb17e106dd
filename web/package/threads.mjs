// Runs one WebAssembly module on several threads: workers with an instance each and one shared memory.
//
// The module exports "part": every thread calls it with its number and their count (wgpu_backend/wasm/threads.py). The
// caller is thread 0. It sleeps while it waits, so it must be a worker too; and shared memory needs a page that is
// isolated from other origins. Elsewhere, and until the workers have started, the caller runs everything alone.

import { EmberletError } from "./errors.mjs";
import { DONE, LAST_RUN, LISTEN, MODEL, NEXT, RUN, STOPPED, THREAD, THREADS, stop } from "./thread.mjs";

const MOST = 8; // threads of a module
const READY = 192 / 4; // words of a module's memory, one for each thread (threads.py)
const CONTROL = 16; // words of a worker's control block, of which thread.mjs uses the first
const CATCHING_UP = 20000; // reads of DONE before a worker counts as busy: it has left the barrier of the last run

// The faster number of threads runs the module. The other one gets a turn of BLOCK runs to compare, at first every second
// turn, then ever more seldom, up to once in SELDOM runs; a comparison that changes the choice makes it often again, as
// other programs take and leave cores. Of the last KEPT times of each, the lower quartile counts, which few disturbances
// reach; the first run of a turn, which has to wake the workers, does not.
const BLOCK = 5;
const SELDOM = 2000;
const KEPT = 8;

/** How many threads a module may have here, at most `wanted`: 1 where memory cannot be shared or the caller must not sleep. */
export function threadsHere(wanted = Math.min(4, globalThis.navigator?.hardwareConcurrency ?? 1)) {
  if (globalThis.crossOriginIsolated !== true || typeof SharedArrayBuffer !== "function") return 1;
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0);
  } catch {
    return 1; // a page's main thread
  }
  return Math.max(1, Math.min(wanted, MOST));
}

class Workers {
  constructor(count, start) {
    this.count = count;
    this.control = new Int32Array(new SharedArrayBuffer(4 * CONTROL * count));
    this.modules = new Set();
    this.next = 0;
    this.unread = Array(count).fill(-1); // messages that no LISTEN has announced yet; the first one needs none
    this.listening = Array(count).fill(true);
    this.workers = Array.from({ length: count }, (_, i) => {
      Atomics.store(this.control, i * CONTROL + DONE, -1);
      try {
        const worker = start();
        worker.onerror = (event) => event.preventDefault?.(); // if it fails, the other threads and the caller do its work
        worker.postMessage({ control: this.control, at: i * CONTROL });
        return worker;
      } catch {
        return null; // a policy forbids it
      }
    });
  }

  add(module, memory) {
    const number = this.next++;
    this.modules.add(number);
    this.tell((i) => ({ number, module, memory, ready: READY + i + 1 }));
    return number;
  }

  forget(number) {
    if (!this.modules.delete(number)) return;
    if (this.modules.size) this.tell(() => ({ number }));
    else this.end();
  }

  // Mark all workers as busy.
  end() {
    for (const worker of this.workers) worker?.terminate();
    this.workers.fill(null);
    if (shared === this) shared = null;
  }

  tell(message) {
    for (const [i, worker] of this.workers.entries()) {
      worker?.postMessage(message(i));
      this.unread[i] += 1;
      this.free(i);
    }
  }

  // Whether a worker waits for a command; one that has a message to read gets to read it first.
  free(i) {
    if (!this.workers[i]) return false;
    const { control } = this;
    const at = i * CONTROL;
    const next = Atomics.load(control, at + NEXT);
    for (let left = this.listening[i] ? 1 : CATCHING_UP; Atomics.load(control, at + DONE) !== next; ) if (!--left) return false;
    this.listening[i] = false;
    if (!this.unread[i]) return true;
    this.unread[i] -= 1;
    this.listening[i] = true;
    this.command(i, LISTEN);
    return false;
  }

  command(i, model, thread = 0, threads = 0, run = 0) {
    const { control } = this;
    const at = i * CONTROL;
    control[at + MODEL] = model;
    control[at + THREAD] = thread;
    control[at + THREADS] = threads;
    control[at + RUN] = run;
    Atomics.add(control, at + NEXT, 1);
    Atomics.notify(control, at + NEXT);
  }
}

let shared = null; // the workers, while any module uses them
const dropped = new FinalizationRegistry(({ workers, number }) => workers.forget(number));

/** A module on up to `threads` threads. */
export class Threaded {
  #words;
  #part;
  #run;
  #workers = null;
  #number = 0;
  #most;
  #several = true; // whether several threads are faster than one
  #pause = 2 * BLOCK; // runs from one comparison to the next
  #left = 2 * BLOCK; // runs until the next one; the last BLOCK are those of the slower number
  #times = [[], []]; // of runs on one thread, and on several
  #before = null; // whether the run before had several threads

  /**
   * module: imports its memory; pages: of 64 KiB; start: makes a worker of thread.mjs, for tests.
   */
  constructor(module, pages, threads = undefined, start = startWorker) {
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const { exports } = new WebAssembly.Instance(module, { emberlet: { memory } });
    this.memory = memory;
    this.exports = exports;
    this.#words = new Int32Array(memory.buffer, 0, 64);
    this.#part = exports.part;
    this.#run = exports.run;
    this.#most = threadsHere(threads);
    if (this.#most > 1) {
      if (!shared || shared.count < this.#most - 1) shared = new Workers(this.#most - 1, start);
      this.#workers = shared;
      this.#number = shared.add(module, memory);
      dropped.register(this, { workers: shared, number: this.#number }, this);
    }
  }

  /** How many threads the next run has. */
  get threads() {
    return this.#several ? 1 + this.#free().length : 1;
  }

  #free() {
    const found = [];
    for (let i = 0; this.#workers && i < this.#most - 1; i++) {
      if (this.#workers.free(i) && Atomics.load(this.#words, READY + i + 1) === 1) found.push(i);
    }
    return found;
  }

  run() {
    const several = this.#several === this.#left > BLOCK;
    const found = several ? this.#free() : [];
    if (several && !found.length) {
      this.#run();
      return;
    }
    const start = performance.now();
    if (several) this.#onSeveral(found);
    else this.#run();
    this.#count(several, performance.now() - start);
  }

  #count(several, took) {
    const times = this.#times[Number(several)];
    if (several === this.#before && times.push(took) > KEPT) times.shift();
    this.#before = several;
    if (--this.#left > 0) return;
    const [alone, shared] = this.#times.map((times) => [...times].sort((a, b) => a - b)[times.length >> 2]);
    const faster = shared <= alone;
    this.#pause = faster === this.#several ? Math.min(2 * this.#pause, SELDOM) : 2 * BLOCK;
    [this.#several, this.#left] = [faster, this.#pause];
  }

  #onSeveral(found) {
    const threads = 1 + found.length;
    const run = Atomics.load(this.#words, LAST_RUN) + 1;
    for (const [i, worker] of found.entries()) this.#workers.command(worker, this.#number, i + 1, threads, run);
    try {
      this.#part(0, threads, run);
    } catch (error) {
      const inVain = Atomics.load(this.#words, STOPPED) === 2;
      stop(this.#words);
      if (inVain) this.#workers.end();
      this.#leave();
      if (!inVain) throw error;
      const said = "a thread did not answer for a minute; the browser may have ended it. Run the model again: it has one thread now";
      throw new EmberletError(said, { cause: error });
    }
  }

  // From now on, one thread runs the module.
  #leave() {
    this.#workers?.forget(this.#number);
    this.#workers = null;
    dropped.unregister(this);
  }

  release() {
    this.#leave();
    this.exports = this.memory = this.#words = this.#part = this.#run = null;
  }
}

function startWorker() {
  return new Worker(new URL("./thread.mjs", import.meta.url), { type: "module", name: "emberlet-threads" });
}

/** A module that `emberlet compile` wrote, with its weights, on up to `threads` threads. */
export function ofFile(bytes, threads) {
  const { code, pages, data } = parted(bytes);
  const made = new Threaded(new WebAssembly.Module(code), pages, threads);
  const memory = new Uint8Array(made.memory.buffer);
  for (const [at, content] of data) memory.set(content, at);
  made.exports.expand?.();
  return made;
}

// The module without its weights and with an imported memory, which is filled once and not by every instance.
function parted(bytes) {
  const parts = [bytes.subarray(0, 8)];
  const data = [];
  let pages = 0;
  let code = 0; // where the parts behind the import section begin
  let at = 8;
  let last = 0;
  const number = () => {
    let out = 0;
    for (let scale = 1; ; scale *= 128) {
      last = bytes[at++];
      out += (last & 127) * scale;
      if (last < 128) return out;
    }
  };
  while (at < bytes.length) {
    const start = at;
    const kind = bytes[at++];
    const end = number() + at;
    if (kind === 5) {
      at += 2; // one memory, without a maximum
      pages = number();
    } else if (kind === 11) {
      for (let left = number(); left > 0; left--) {
        at += 2; // an active segment, i32.const
        const from = at;
        const place = number() - (last & 64 ? 128 ** (at - from) : 0);
        at += 1; // end
        const length = number();
        data.push([place >>> 0, bytes.subarray(at, at + length)]);
        at += length;
      }
    } else if (kind !== 0 && kind !== 8 && kind !== 12) {
      parts.push(bytes.subarray(start, end));
      if (kind === 1) code = parts.length;
    }
    at = end;
  }
  parts.splice(code, 0, sharedImport(pages));
  return { code: joined(parts), pages, data };
}

function sharedImport(pages) {
  const unsigned = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...unsigned(n >>> 7)]);
  const named = (text) => [text.length, ...new TextEncoder().encode(text)];
  const content = [1, ...named("emberlet"), ...named("memory"), 2, 3, ...unsigned(pages), ...unsigned(pages)];
  return new Uint8Array([2, content.length, ...content]);
}

function joined(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
