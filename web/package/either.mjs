// A model that runs on the GPU, and in WebAssembly where the GPU is missing, refused, in software or lost.

import { whyNoGpu } from "./adapter.mjs";
import { EmberletError } from "./errors.mjs";

// onGpu(): loads the plan; inWasm(): the fallback. device: "webgpu" or "wasm" to decide, also when the GPU is lost, else
// what is faster here; slower(): why the GPU is known to be slower, or "".
export async function loadEither(onGpu, inWasm, device, slower = () => "") {
  const refused = device === "wasm" ? "the page asked for WebAssembly" : device ? "" : await whyNoGpu();
  const reason = refused || (device ? "" : await slower());
  if (reason) return new Either(await inWasm(), null, reason, refused ? "" : '; load it with device: "webgpu"');
  try {
    return new Either(await onGpu(), device ? null : inWasm, "");
  } catch (error) {
    if (!error.ofGpu || device) throw error;
    const model = new Either(await inWasm(), null, error.message);
    warn(error);
    return model;
  }
}

// A session of onnxruntime's API has no property that tells it.
const warn = ({ message }) => console.warn(`emberlet: WebAssembly runs the model from now on, since the GPU fails: ${message}`);

class Either {
  #model;
  #inWasm;
  #changing = null;
  #wayOut; // for what only the GPU does, while it was merely slower

  constructor(model, inWasm, reason, wayOut = "") {
    this.#model = model;
    this.#inWasm = inWasm;
    this.#wayOut = wayOut;
    this.reason = reason; // why WebAssembly runs the model; "" while the GPU does
    for (const name of ["adapter", "device", "runtime", "inputs", "outputs", "sizes", "dispatches", "kernels", "threads"]) {
      Object.defineProperty(this, name, { enumerable: true, get: () => this.#model[name] });
    }
  }

  async run(given = {}) {
    const model = this.#model;
    try {
      return await model.run(given);
    } catch (error) {
      if (!error.ofGpu || !this.#inWasm) throw error;
      this.#changing ??= this.#change(model, error); // runs may overlap
      await this.#changing;
      return this.#model.run(given);
    }
  }

  runNow(given) {
    if (this.device !== "wasm") throw new EmberletError("runNow needs WebAssembly, and the GPU runs this model: use run");
    return this.#model.runNow(given);
  }

  session(options) {
    if (this.device === "wasm") throw new EmberletError(`sessions need WebGPU, and WebAssembly runs this model${this.#wayOut}`);
    return this.#model.session(options);
  }

  profile(options) {
    if (this.device === "wasm") throw new EmberletError(`profiles need WebGPU, and WebAssembly runs this model${this.#wayOut}`);
    return this.#model.profile(options);
  }

  release() {
    return this.#model.release();
  }

  async #change(model, error) {
    try {
      this.#model = await this.#inWasm();
    } catch (failure) {
      this.#changing = null; // the next run tries again
      throw failure;
    }
    this.reason = error.message;
    warn(error);
    await Promise.resolve(model.release()).catch(() => {}); // its memory is gone with the device
  }
}
