// Runs the model beside the page: loads a Python runtime, emberlet and the model, then answers "classify".

import { download } from "./download.mjs";
import { readable } from "./emberlet/interpreter.mjs";

const runtimes = {
  pyodide: () => import("./run_in_pyodide.mjs"),
  micropython: () => import("./run_in_micropython.mjs"),
};

let model = null;

const commands = {
  async load({ runtime, device, files }) {
    const { load, downloads } = await runtimes[runtime]();
    const fetcher = new Fetcher(files, downloads(files, device));
    // A runtime that waits for a file that failed says nothing: the failure itself does.
    model = await Promise.race([load(device, fetcher), fetcher.failure]);
    return { adapter: model.adapter, version: model.version };
  },

  async classify(pixels) {
    const began = performance.now();
    const logits = await model.classify(pixels);
    return { logits, ms: performance.now() - began };
  },
};

// Fetches files of the site and tells how far their download has come.
class Fetcher {
  constructor(sizes, names) {
    this.total = names.reduce((sum, name) => sum + sizes[name], 0);
    this.done = 0;
    this.counted = new Set(names.map((name) => new URL(name, import.meta.url).href));
    this.failure = new Promise((_, reject) => (this.fail = reject));
    this.failure.catch(() => {});
    this.fetch = globalThis.fetch.bind(globalThis);
    // The runtimes fetch their Wasm themselves; this way that is counted too.
    globalThis.fetch = (resource, options) => this.#counting(resource, options);
  }

  tell(text, done = this.done / this.total) {
    postMessage({ progress: { done: Math.min(0.98, done), text } });
  }

  async bytes(name) {
    return new Uint8Array(await (await this.#counting(name)).arrayBuffer());
  }

  async #counting(resource, options) {
    const url = new URL(resource.url ?? resource, import.meta.url).href;
    const counted = (bytes) => {
      if (!this.counted.has(url)) return;
      this.done += bytes;
      this.tell(`Loading ${megabytes(this.done)} of ${megabytes(this.total)} MB`);
    };
    try {
      return await download(resource.url ? resource : url, { options, counted, fetcher: this.fetch });
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    postMessage({ id, error: { ...readable(error.cause ?? error), message: readable(error).message } });
  }
};
