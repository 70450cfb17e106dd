// Runs a model that `emberlet compile model.onnx --out model.wasm` compiled, without a GPU.
//
//   import { load } from "./wasm.mjs";
//
//   const model = await load("model.wasm");
//   const { logits } = await model.run({ image: new Float32Array(64) });
//
// The file is a WebAssembly module with the weights in it; no Python is needed. Inputs and results are typed arrays, row
// by row, as those of emberlet.mjs. Every failure is an EmberletError whose message is one sentence for people to read.

import { EmberletError, EmberletRangeError, EmberletTypeError } from "./errors.mjs";
import { kindOf, refusal, wrongInputs, wrongSource } from "./kinds.mjs";

// A word of the module's memory, 32 bits or a byte, for each element; and the typed array that JavaScript gives or gets.
const DTYPES = {
  float64: [Float64Array, Float32Array],
  float32: [Float32Array, Float32Array],
  float16: [globalThis.Float16Array, Float32Array],
  int64: [BigInt64Array, Int32Array],
  uint64: [BigUint64Array, Uint32Array],
  int32: [Int32Array, Int32Array],
  uint32: [Uint32Array, Uint32Array],
  int16: [Int16Array, Int32Array],
  uint16: [Uint16Array, Uint32Array],
  int8: [Int8Array, Int32Array],
  uint8: [Uint8Array, Uint32Array],
  bool: [Uint8Array, Uint32Array],
};

export { EmberletError };

const SIZES = 256; // where the open sizes lie (wgpu_backend/wasm/addresses.py)

// Modules of one function: v128.const and drop; the same with f32x4.relaxed_madd.
const FUNCTION = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10];
const CONSTANT = [253, 12, ...Array(16).fill(0)];
const SIMD = [...FUNCTION, 23, 1, 21, 0, ...CONSTANT, 26, 11];
const RELAXED = [...FUNCTION, 62, 1, 60, 0, ...CONSTANT, ...CONSTANT, ...CONSTANT, 253, 133, 2, 26, 11];
export const hasSimd = () => supports(SIMD);
export const hasRelaxed = () => supports(RELAXED);
const supports = (bytes) => WebAssembly.validate(new Uint8Array(bytes));

/** Load a compiled model from an address or from bytes. */
export async function load(source, { signal, threads } = {}) {
  if (!hasSimd()) throw new EmberletError("this browser's WebAssembly has no SIMD, which compiled models need");
  const wrong = wrongSource(source);
  if (wrong) throw new EmberletTypeError(wrong);
  const { bytes, name } = await read(source, signal);
  const kind = kindOf(bytes);
  if (kind !== "wasm") throw new EmberletError(refusal(name, kind));
  const sections = [...sectionsOf(bytes, name)];
  const told = sections.find((one) => one.name === "emberlet");
  if (!told) throw new EmberletError(`${name} is a WebAssembly module, but not one that \`emberlet compile\` wrote`);
  let facts;
  try {
    facts = JSON.parse(new TextDecoder().decode(told.content));
  } catch (error) {
    throw new EmberletError(`${name} is damaged: what it says about the model is not JSON`, { cause: error });
  }
  verify(bytes, sections, facts?.checksum, name);
  if (![1, 2].includes(facts?.version)) throw new EmberletError(`${name} was written by another release of emberlet (version ${facts?.version})`);
  if (sections.some(({ number }) => number === 8)) throw new EmberletError(`${name} has a start function, which emberlet never writes`);
  if (facts.relaxed && !hasRelaxed()) throw new EmberletError(`${name} needs relaxed SIMD, which this browser lacks; compile it for both, as \`emberlet compile\` does`);
  const code = hasRelaxed() || facts.relaxed === false ? bytes : await withSimdOnly(bytes, sections);
  const sizes = facts.version === 2 ? new (await import("./sizes.mjs")).OpenSizes(facts.sizes) : null;
  const shared = await onThreads(code, facts, threads);
  if (shared) return new Model(shared, facts, name, sizes);
  let instance;
  try {
    ({ instance } = await WebAssembly.instantiate(code));
  } catch (error) {
    const memory = error instanceof RangeError;
    const told = memory ? `${name} needs more memory than is available` : `${name} is damaged: ${error.message}`;
    throw Object.assign(new EmberletError(told, { cause: error }), { refused: memory });
  }
  const { memory, run, expand } = instance.exports;
  expand?.(); // weights in fewer bits
  return new Model({ memory, run, threads: 1, release: () => {} }, facts, name, sizes);
}

// The module on several threads, or null: in a worker of a page that is isolated from other origins (threads.mjs).
async function onThreads(code, facts, wanted) {
  if (!(facts.threads > 1) || wanted === 1 || !globalThis.crossOriginIsolated) return null;
  try {
    const { ofFile, threadsHere } = await import("./threads.mjs");
    if (threadsHere(wanted) > 1) return ofFile(code instanceof ArrayBuffer ? new Uint8Array(code) : code, wanted);
  } catch {
    // One thread needs less memory and no second file.
  }
  return null;
}

class Model {
  #program;
  #placed;
  #sizes; // an OpenSizes, or null
  #values = null; // those of its atoms in the last run

  constructor(program, { inputs, outputs, indices, computed_indices: computed = [] }, name, sizes) {
    this.#program = program;
    this.#sizes = sizes;
    this.device = "wasm";
    const size = program.memory.buffer.byteLength;
    const port = ([port, dtype, lengths, address, bytes]) => {
      const [array, words] = DTYPES[dtype] ?? [];
      if (!array) throw new EmberletError(`${name}: "${port}" is ${dtype}, which this browser has no typed array for`);
      if (address < 0 || address + bytes > size) throw new EmberletError(`${name} is damaged: "${port}" lies outside of its memory`);
      const shape = sizes ? lengths.map((length) => sizes.text(length)) : lengths;
      return { told: { name: port, dtype, shape, array }, lengths, address, words, bytes };
    };
    const narrow = (one) => (one.told.array.BYTES_PER_ELEMENT === 1 ? { ...one, words: one.told.array } : one);
    this.#placed = {
      inputs: inputs.map(port).map(narrow),
      outputs: outputs.map(port),
      computed: computed.map(([dtype, address, length, fromEnd, message, axis]) => {
        if (!(address >= 0 && address + 8 <= size)) throw new EmberletError(`${name} is damaged: a computed index lies outside of its memory`);
        return { words: dtype.startsWith("u") ? Uint32Array : Int32Array, address, length, fromEnd, message, axis };
      }),
    };
    for (const [input, length] of indices) this.#placed.inputs[input].axis = length;
    const ports = [...this.#placed.inputs, ...this.#placed.outputs];
    for (const { told, lengths, words, bytes } of ports) {
      const open = lengths.some((length) => typeof length !== "number");
      told.length = open ? Math.floor(bytes / words.BYTES_PER_ELEMENT) : lengths.reduce((product, n) => product * n, 1);
    }
    this.inputs = this.#placed.inputs.map(({ told }) => told);
    this.outputs = this.#placed.outputs.map(({ told }) => told);
    this.sizes = sizes?.ranges ?? {};
  }

  /** All outputs by name, each a new array; takes all inputs by name. */
  async run(given = {}) {
    return this.runNow(given);
  }

  /** `run`, without awaiting. */
  runNow(given = {}) {
    if (!this.#program) throw new EmberletError("the model was released; load it again");
    const { memory } = this.#program;
    const wrong = wrongInputs(given, this.inputs);
    if (wrong) throw new EmberletTypeError(wrong);
    const names = this.inputs.map(({ name }) => name);
    const unknown = Object.keys(given).find((name) => !names.includes(name));
    if (unknown !== undefined) throw new EmberletError(`the model has no input "${unknown}"; it takes ${names.join(", ")}`);
    const { inputs, outputs, computed } = this.#sizes ? this.#fitted(given) : this.#placed;
    const values = inputs.map((port) => checked(port, given[port.told.name]));
    for (const [i, { told, address, words }] of inputs.entries()) {
      const view = new words(memory.buffer, address, told.length);
      if (told.dtype.endsWith("int64")) for (let k = 0; k < told.length; k++) view[k] = Number(values[i][k]);
      else view.set(values[i]);
    }
    this.#program.run();
    for (const index of computed) checkComputed(index, memory.buffer);
    return Object.fromEntries(
      outputs.map(({ told, address, words }) => {
        const view = new words(memory.buffer, address, told.length);
        const wide = told.dtype.endsWith("int64");
        const values = wide ? told.array.from(view, (n) => BigInt(n)) : new told.array(view);
        return [told.name, Object.assign(values, { shape: told.shape })];
      }),
    );
  }

  // What is placed where, with the sizes of these inputs, which the module then has.
  #fitted(given) {
    const sizes = this.#sizes;
    const arrays = this.#placed.inputs.map(({ told }) => typed(told, given[told.name]));
    const values = sizes.of(this.#placed.inputs.map(({ told, lengths }) => ({ name: told.name, lengths })), arrays);
    if (values.some((value, i) => value !== this.#values?.[i])) {
      const block = sizes.block(values);
      new Int32Array(this.#program.memory.buffer, SIZES, block.length).set(block);
      this.#values = values;
    }
    const fitted = (one) => {
      const shape = one.lengths.map((length) => sizes.at(length, values));
      const length = shape.reduce((product, n) => product * n, 1);
      if (length > one.told.length) throw new EmberletError(`"${one.told.name}" does not fit its memory: the module is damaged`);
      const axis = one.axis === undefined ? undefined : sizes.at(one.axis, values);
      return { ...one, axis, told: { ...one.told, shape, length } };
    };
    const { inputs, outputs, computed } = this.#placed;
    return {
      inputs: inputs.map(fitted),
      outputs: outputs.map(fitted),
      computed: computed.map((one) => ({ ...one, length: sizes.at(one.length, values) })),
    };
  }

  /** How many threads the next run has; more than 1 once the workers have started (threads.mjs). */
  get threads() {
    return this.#program?.threads ?? 0;
  }

  async release() {
    this.#program?.release();
    this.#program = null;
  }
}

// Refuse an index that the module computed outside of its axis: two words are the lowest and the highest.
function checkComputed({ words, address, length, fromEnd, message, axis }, buffer) {
  const [low, high] = new words(buffer, address, 2);
  const lowest = fromEnd ? -length : 0;
  if (low > high || (low >= lowest && high < length)) return;
  const values = { index: low < lowest ? low : high, low, high, axis, end: length, last: length - 1 };
  throw new EmberletRangeError(Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), message));
}

// A value, if it is an array of the right class; with `count`, if it also has so many elements.
function typed({ name, dtype, shape, array }, value, count) {
  if (value instanceof array && (count === undefined || value.length === count)) return value;
  const kind = value?.constructor?.name ?? String(value);
  const found = value?.length === undefined ? kind : `${kind} of ${value.length}`;
  const wanted = `${array.name}${count === undefined ? "" : ` of ${count}`} (${dtype}, ${shape.join("×") || "one number"})`;
  throw new EmberletError(`the input "${name}" takes a ${wanted}; found: ${found}`);
}

function checked({ told, words, axis }, value) {
  const { name, dtype } = told;
  typed(told, value, told.length);
  if (dtype.endsWith("int64")) {
    const [low, high] = words === Int32Array ? [-(2n ** 31n), 2n ** 31n - 1n] : [0n, 2n ** 32n - 1n];
    const beyond = value.find((n) => n < low || n > high);
    if (beyond !== undefined) throw new EmberletError(`the input "${name}" takes no integers beyond 32 bits; found: ${beyond}`);
  }
  if (axis !== undefined) {
    const outside = value.find((n) => n < -axis || n >= axis);
    if (outside !== undefined) throw new EmberletRangeError(`the index ${outside} of "${name}" is outside an axis of length ${axis}`);
  }
  return value;
}

async function read(source, signal) {
  if (source instanceof ArrayBuffer) return { bytes: new Uint8Array(source), name: "the file" };
  if (ArrayBuffer.isView(source)) {
    return { bytes: new Uint8Array(source.buffer, source.byteOffset, source.byteLength), name: source.name ?? "the file" };
  }
  if (source instanceof Blob) return { bytes: new Uint8Array(await source.arrayBuffer()), name: source.name ?? "the file" };
  const name = String(source.url ?? source).split(/[?#]/)[0].split("/").pop() || "the file";
  let response;
  try {
    response = source instanceof Response ? source : await fetch(source, { signal });
  } catch (error) {
    throw new EmberletError(signal?.aborted ? `the download of ${name} was aborted` : `${name} could not be downloaded`, { cause: error });
  }
  if (!response.ok) throw new EmberletError(`${name} could not be downloaded: the server says ${response.status}`);
  try {
    return { bytes: new Uint8Array(await response.arrayBuffer()), name };
  } catch (error) {
    throw new EmberletError(signal?.aborted ? `the download of ${name} was aborted` : `the download of ${name} broke off`, { cause: error });
  }
}

// The sections of a module: { number, name, content, start, end }, the name and content of custom ones.
function* sectionsOf(bytes, name) {
  const damaged = () => new EmberletError(`${name} is not a compiled model, or it is damaged`);
  const magic = [0, 97, 115, 109, 1, 0, 0, 0];
  if (bytes.length < 8 || magic.some((byte, i) => bytes[i] !== byte)) throw damaged();
  let at = 8;
  const number = () => {
    let out = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      if (at >= bytes.length) throw damaged();
      const byte = bytes[at++];
      out += (byte & 127) * 2 ** shift;
      if (byte < 128) return out;
    }
    throw damaged();
  };
  while (at < bytes.length) {
    const start = at;
    const kind = bytes[at++];
    const size = number();
    const end = at + size;
    if (end > bytes.length) throw damaged();
    if (kind === 0) {
      const length = number();
      const text = new TextDecoder().decode(bytes.subarray(at, at + length));
      yield { number: kind, name: text, content: bytes.subarray(at + length, end), start, end };
    } else {
      yield { number: kind, start, end };
    }
    at = end;
  }
}

// The last section holds the CRC-32 of all bytes before it; files of earlier releases have none.
function verify(bytes, sections, promised, name) {
  const at = sections.findIndex((one) => one.name === "emberlet.crc32");
  const { start, content } = sections[at] ?? {};
  if (!content && !promised) return;
  const damaged = !content || at !== sections.length - 1 || content.length !== 4;
  if (!damaged && crc32(bytes.subarray(0, start)) === new DataView(content.buffer, content.byteOffset).getUint32(0, true)) return;
  throw new EmberletError(`${name} is damaged: its bytes do not match its checksum; download or compile it again`);
}

function crc32(bytes) {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit++) byte = (byte >>> 1) ^ (byte & 1 ? 0xedb88320 : 0);
    return byte;
  });
  let sum = -1;
  for (let i = 0; i < bytes.length; i++) sum = (sum >>> 8) ^ table[(sum ^ bytes[i]) & 255];
  return ~sum >>> 0;
}

// The module with the code for browsers without relaxed SIMD.
function withSimdOnly(bytes, sections) {
  const simple = sections.find(({ name }) => name === "emberlet.simd");
  const parts = sections.map(({ number, start, end }) => (number === 10 ? simple.content : bytes.subarray(start, end)));
  return new Blob([bytes.subarray(0, 8), ...parts]).arrayBuffer();
}
