// Runs the model in a worker: loads a Python runtime, emberlet and the model, then answers "classify". The worker's
// name says what to run, so that loading starts at once.

const AHEAD = {}; // module -> those that it imports, which the build writes here: all are fetched side by side

const module = {
  pyodide: "./run_in_pyodide.mjs",
  micropython: "./run_in_micropython.mjs",
  "micropython python": "./run_plain_in_micropython.mjs",
}[globalThis.name];
for (const other of AHEAD[module] ?? []) import(other).catch(() => {}); // told of where it is needed

// Fetch the files that a runtime certainly needs before the modules that request them have arrived.
const BEFORE = {
  pyodide: ["pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "packages/emberlet.zip"],
  micropython: ["emberlet/micropython.wasm"],
  "micropython python": ["emberlet/micropython.wasm", "packages/digits.json"],
}[globalThis.name];

// Fetches files of the site and tells how far their download has come, once it is known which will be needed.
class Fetcher {
  constructor() {
    this.ahead = new Map(); // address -> { response, abort } of a download that nobody asked for yet
    this.total = 0;
    this.counts = new Map(); // address -> bytes that have arrived
    this.counted = new Set();
    this.failure = new Promise((_, reject) => (this.fail = reject));
    this.failure.catch(() => {});
    this.fetch = globalThis.fetch.bind(globalThis);
    // Count the Wasm files too, which the runtimes fetch themselves.
    globalThis.fetch = (resource, options) => this.#counting(resource, options);
  }

  begin(name) {
    const url = new URL(name, import.meta.url).href;
    const abort = new AbortController();
    const response = this.fetch(url, { signal: abort.signal });
    response.catch(() => {}); // told of where it is needed
    this.ahead.set(url, { response, abort });
  }

  #begun(resource, options) {
    const found = this.ahead.get(resource);
    if (!found) return this.fetch(resource, options);
    this.ahead.delete(resource);
    options.signal.addEventListener("abort", () => found.abort.abort(options.signal.reason));
    return found.response;
  }

  expect(sizes, names) {
    this.total = names.reduce((sum, name) => sum + sizes[name], 0);
    this.counted = new Set(names.map((name) => new URL(name, import.meta.url).href));
  }

  get done() {
    return [...this.counted].reduce((sum, url) => sum + (this.counts.get(url) ?? 0), 0);
  }

  tell(text, done = this.done / this.total) {
    postMessage({ progress: { done: Math.min(0.98, done), text } });
  }

  async bytes(name) {
    return new Uint8Array(await (await this.#counting(name)).arrayBuffer());
  }

  async #counting(resource, options) {
    const { download } = await import("./download.mjs");
    const url = new URL(resource.url ?? resource, import.meta.url).href;
    const counted = (bytes) => {
      this.counts.set(url, (this.counts.get(url) ?? 0) + bytes);
      if (this.counted.has(url)) this.tell(`Loading ${megabytes(this.done)} of ${megabytes(this.total)} MB`);
    };
    try {
      return await download(resource.url ? resource : url, { options, counted, fetcher: (...given) => this.#begun(...given) });
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

let model = null;
const fetcher = new Fetcher();
for (const name of BEFORE) fetcher.begin(name);
const loaded = import(module);
loaded.then(({ prepare }) => prepare?.()).catch(() => {}); // told of where it is needed

const commands = {
  async load({ device, files }) {
    const { load, downloads } = await loaded;
    fetcher.expect(files, downloads(files, device));
    // A runtime that waits for a failed download reports nothing, so report the failure here.
    model = await Promise.race([load(device, fetcher), fetcher.failure]);
    return { adapter: model.adapter, version: model.version };
  },

  async classify(pixels) {
    const began = performance.now();
    const logits = await model.classify(pixels);
    return { logits, ms: performance.now() - began };
  },
};

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    const { readable } = await import("./emberlet/interpreter.mjs");
    postMessage({ id, error: { ...readable(error.cause ?? error), message: readable(error).message } });
  }
};
