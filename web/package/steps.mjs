// A model that cannot be planned, since its control flow depends on values: Python runs it operation by operation, in the
// compiler's worker, which stays for as long as such models are in use.

import { arrayOf } from "./arrays.mjs";
import { compile, hold } from "./compiling.mjs";

let count = 0;
const dropped = new FinalizationRegistry((end) => end());

// Ask the worker for something of a session. file: { name, bytes } of the model, without bytes if the worker has it.
const ask = (session, file, folder, feeds) => compile([file], { kind: "steps", folder, session, feeds });

export class Steps {
  #number = ++count;
  #file;
  #folder;
  #end; // lets the worker forget the model

  // file: { name, bytes } of an ONNX file. folder: where the package's folder compiler/ is, if a bundler moved it.
  constructor(file, folder) {
    this.#file = { ...file, name: file.name.split(/[\\/]/).pop() }; // a File's name may hold a path
    this.#folder = folder;
    hold(1);
    const [number, name] = [this.#number, this.#file.name];
    // undefined is Python's None; null is not
    this.#end = () => ask(number, { name }, folder, undefined).catch(() => {}).finally(() => hold(-1));
    dropped.register(this, this.#end, this);
  }

  /** All outputs by name, as arrays with a shape. given: [array, dtype, shape] by the names of the inputs. */
  async run(given) {
    const feeds = Object.entries(given).map(([name, [{ buffer, byteOffset, byteLength }, dtype, shape]]) => [
      name,
      dtype,
      [...shape],
      new Uint8Array(buffer, byteOffset, byteLength),
    ]);
    const asked = (file) => ask(this.#number, file, this.#folder, feeds);
    let { outputs } = await asked({ name: this.#file.name });
    outputs ??= (await asked(this.#file)).outputs; // the worker does not have the model yet, or is a new one
    return Object.fromEntries(
      outputs.map(([name, dtype, shape, bytes]) => [name, Object.assign(new (arrayOf(dtype))(bytes.slice().buffer), { shape })]),
    );
  }

  release() {
    dropped.unregister(this);
    this.#end();
  }
}
