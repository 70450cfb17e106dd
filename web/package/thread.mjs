// A worker that runs its part of WebAssembly modules; threads.mjs starts it and imports the names that both use.

// Words of a module's memory, as threads.py lays them out.
export const LAST_RUN = 4 / 4;
const RANGES_DONE = 64 / 4;
export const STOPPED = 128 / 4;

// Words of a worker's control block. NEXT counts the commands to it, DONE those that it finished.
export const NEXT = 0;
export const DONE = 1;
export const MODEL = 2; // the number of the module to run, or LISTEN
export const THREAD = 3;
export const THREADS = 4;
export const RUN = 5; // its number, one more than the module's memory says before
export const LISTEN = -1; // return to the event loop for a message

// A worker watches NEXT for AWAKE milliseconds after a run, and then sleeps: runs in a row find it awake. To wake a thread
// takes from 50 us to some milliseconds, which is longer than a small model's run.
const AWAKE = 2;
const READS = 1000; // of NEXT between two looks at the clock

// Wake the threads that wait for ranges of a module's steps, so that they fail instead of waiting for a thread that failed.
export function stop(words) {
  Atomics.compareExchange(words, STOPPED, 0, 1);
  Atomics.add(words, RANGES_DONE, 1 << 29); // more than they wait for
  Atomics.notify(words, RANGES_DONE);
}

function serve() {
  const modules = new Map();
  let control;
  let at;
  let seen = 0;

  // Whether a command comes while NEXT is read so many times.
  const called = () => {
    for (let left = READS; left; left -= 1) if (Atomics.load(control, at + NEXT) !== seen) return true;
    return false;
  };

  const commands = () => {
    for (;;) {
      Atomics.store(control, at + DONE, seen);
      for (const end = performance.now() + AWAKE; performance.now() < end && !called(); );
      while (Atomics.load(control, at + NEXT) === seen) Atomics.wait(control, at + NEXT, seen);
      seen = (seen + 1) | 0;
      const model = control[at + MODEL];
      if (model === LISTEN) return;
      const { part, words } = modules.get(model);
      try {
        part(control[at + THREAD], control[at + THREADS], control[at + RUN]);
      } catch {
        stop(words);
      }
    }
  };

  globalThis.onmessage = ({ data }) => {
    if (data.control) {
      ({ control, at } = data);
      return;
    }
    if (data.module) {
      try {
        const { part } = new WebAssembly.Instance(data.module, { emberlet: { memory: data.memory } }).exports;
        const words = new Int32Array(data.memory.buffer, 0, 64);
        modules.set(data.number, { part, words });
        Atomics.store(words, data.ready, 1);
      } catch {
        // The other threads do its work.
      }
    } else {
      modules.delete(data.number);
    }
    commands();
  };
}

if (globalThis.name === "emberlet-threads" && typeof WorkerGlobalScope === "function") serve();
