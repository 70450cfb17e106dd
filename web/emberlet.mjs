// A model of yours in JavaScript, on the GPU that this browser has:
//
//   import { load } from "./emberlet/emberlet.mjs";
//
//   const model = await load("model.plan"); // what `emberlet compile model.onnx` wrote: its address, or its bytes
//   const { logits } = await model.run({ image: new Float32Array(64) });
//
// Inputs and results are typed arrays, row by row. What goes wrong is an Error with one sentence for a person; its
// `cause` has the rest. Beneath is MicroPython with emberlet's plan runtime, whose files lie beside this one. A global
// scope bears one MicroPython, which all models of a page (or of a worker) share.

import { download } from "./download.mjs";
import { readable, start } from "./interpreter.mjs";

const ARRAYS = {
  float64: Float64Array,
  float32: Float32Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  bfloat16: Uint16Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int8: Int8Array,
};

const GLUE = `
import json
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.device import open_device_async

plans = {}

def _told(ports):
    return [{"name": p.name, "dtype": p.dtype.name, "shape": p.shape, "bytes": p.dtype.nbytes(p.count)} for p in ports]

async def load(path):
    device = await open_device_async()
    plan = plan_file.load(path, device)
    try:
        await plan.program.prepare_async()
    except BaseException:
        plan.release()
        raise
    plans[path] = plan
    adapter = device.raw.adapter.summary
    return json.dumps({"adapter": adapter, "inputs": _told(plan.inputs), "outputs": _told(plan.outputs)})

def release(path):
    if path in plans:
        plans.pop(path).release()

async def run(path):
    plan = plans[path]
    inputs = []
    for i in range(len(plan.inputs)):
        with open("/in{}".format(i), "rb") as file:
            inputs.append(file.read())
    outputs = await plan.run_async(*inputs)
    for i in range(len(outputs)):
        with open("/out{}".format(i), "wb") as file:
            file.write(outputs[i].bytes)
`;

let interpreter = null;
let count = 0;
let last = Promise.resolve();

// Load a plan (its address, an ArrayBuffer or a Uint8Array), open the GPU and compile the plan's kernels. Resolves to a model that tells `adapter` (the GPU's name)
// and, of `inputs` and `outputs`, each one's { name, dtype, shape, array, length }.
export function load(url) {
  return inTurn(async () => {
    const given = url instanceof ArrayBuffer || ArrayBuffer.isView(url);
    const content = given ? new Uint8Array(url.buffer ?? url, url.byteOffset ?? 0, url.byteLength).slice() : bytesAt(url);
    interpreter ??= start(bytesAt(new URL("emberlet.json", import.meta.url))).then(async (python) => {
      await python.runPythonAsync(GLUE);
      return python;
    });
    interpreter.catch(() => (interpreter = null)); // to be tried again
    const [python, plan] = await Promise.all([interpreter, content]);
    const path = `/${++count}-${given ? "plan" : String(url).split("/").pop()}`;
    python.FS.writeFile(path, plan, { canOwn: true }); // read part by part, straight to the GPU
    try {
      await python.runPythonAsync(`answer = await load(${JSON.stringify(path)})`);
    } finally {
      python.FS.unlink(path);
    }
    return new Model(python, path, JSON.parse(python.globals.get("answer")));
  });
}

class Model {
  #python;
  #path;
  #released = false;

  constructor(python, path, { adapter, inputs, outputs }) {
    this.#python = python;
    this.#path = path;
    this.adapter = adapter;
    this.inputs = inputs.map(port);
    this.outputs = outputs.map(port);
  }

  // Resolves to the outputs by name, each a new typed array; takes an object of the inputs by name.
  async run(given = {}) {
    const names = this.inputs.map(({ name }) => name);
    const unknown = Object.keys(given).find((name) => !names.includes(name));
    if (unknown !== undefined) throw new Error(`the model has no input "${unknown}"; it takes ${names.join(", ")}`);
    const inputs = this.inputs.map((input) => bytesOf(input, given[input.name]));
    return inTurn(async () => {
      if (this.#released) throw new Error("the model was released; load it again");
      const { FS } = this.#python;
      for (const [i, bytes] of inputs.entries()) FS.writeFile(`/in${i}`, bytes);
      await this.#python.runPythonAsync(`await run(${JSON.stringify(this.#path)})`);
      return Object.fromEntries(this.outputs.map(({ name, array }, i) => [name, new array(FS.readFile(`/out${i}`).buffer)]));
    });
  }

  // Give the model's memory on the GPU back, after the runs that were begun. A page that loads one model after the other
  // should: no garbage collector does. Resolves when it is done; a released model cannot run.
  release() {
    return inTurn(async () => {
      this.#released = true;
      await this.#python.runPythonAsync(`release(${JSON.stringify(this.#path)})`);
    });
  }
}

function port({ name, dtype, shape, bytes }) {
  const array = ARRAYS[dtype] ?? Uint8Array; // bool: a byte each; 4-bit integers: two a byte
  return { name, dtype, shape, array, length: bytes / array.BYTES_PER_ELEMENT };
}

function bytesOf({ name, dtype, shape, array, length }, value) {
  if (!(value instanceof array) || value.length !== length) {
    const kind = value?.constructor?.name ?? String(value);
    const found = value?.length === undefined ? kind : `${kind} of ${value.length}`;
    const wanted = `${array.name} of ${length} (${dtype}, ${shape.join("×") || "one number"})`;
    throw new Error(`the input "${name}" takes a ${wanted}; found: ${found}`);
  }
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice(); // as it is now
}

// One after the other: the interpreter does one thing at a time.
function inTurn(job) {
  const result = last.then(job).catch((error) => {
    throw new Error(readable(error).message, { cause: error });
  });
  last = result.catch(() => {});
  return result;
}

async function bytesAt(url) {
  return new Uint8Array(await (await download(url)).arrayBuffer());
}
