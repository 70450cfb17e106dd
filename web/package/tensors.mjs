// onnxruntime's Tensor in memory of the processor: https://onnxruntime.ai/docs/api/js/interfaces/Tensor-1.html

import { ARRAYS } from "./arrays.mjs";
import { EmberletError, EmberletRangeError, EmberletTypeError } from "./errors.mjs";
import { addressOf, imageOf, valuesOf } from "./images.mjs";

const CLASSES = { ...ARRAYS, string: Array };
delete CLASSES.bfloat16;

export class Tensor {
  #data;

  // (type, data, dims) or (data, dims); dims: by default one axis.
  constructor(first, second, third) {
    const typed = typeof first === "string";
    const [given, dims] = typed ? [second, third] : [first, second];
    const type = typed ? first : typeOf(given);
    const wanted = CLASSES[type];
    if (!wanted) throw new EmberletTypeError(`unsupported tensor type: ${type}; there are ${Object.keys(CLASSES).join(", ")}`);
    this.type = type;
    this.location = "cpu";
    this.#data = values(type, wanted, given);
    this.dims = checked(dims ?? [this.#data.length]);
    this.size = this.dims.reduce((product, n) => product * n, 1);
    if (this.size !== this.#data.length) {
      throw new EmberletError(`a tensor of the shape [${this.dims}] has ${this.size} values; found: ${this.#data.length}`);
    }
  }

  get data() {
    if (this.location === "none") throw new EmberletError("the tensor is disposed");
    return this.#data;
  }

  async getData(releaseData = false) {
    const { data } = this;
    if (releaseData) this.dispose();
    return data;
  }

  dispose() {
    this.#data = undefined;
    this.location = "none";
  }

  static async fromImage(image, options) {
    const { values, dims } = await valuesOf(image, options);
    return new Tensor("float32", values, dims);
  }

  toImageData(options) {
    return imageOf(this, options);
  }

  toDataURL(options) {
    return addressOf(this, options);
  }

  reshape(dims) {
    return new Tensor(this.type, this.data, dims);
  }
}

function typeOf(given) {
  if (Array.isArray(given)) {
    if (typeof given[0] === "string") return "string";
    if (typeof given[0] === "boolean") return "bool";
    throw new EmberletTypeError("a tensor of numbers takes a typed array, or its type first: new Tensor('float32', [1, 2], [2])");
  }
  if (given instanceof Uint8ClampedArray) return "uint8";
  if (given instanceof Uint16Array) return "uint16"; // not bits of float16
  const [type] = Object.entries(CLASSES).find(([, array]) => array !== Array && given instanceof array) ?? [];
  if (!type) throw new EmberletTypeError(`a tensor takes a typed array or an array; found: ${given?.constructor?.name ?? given}`);
  return type;
}

function values(type, wanted, given) {
  if (given instanceof wanted) return given;
  if (type === "uint8" && given instanceof Uint8ClampedArray) return Uint8Array.from(given);
  if (type === "float16" && given instanceof Uint16Array) return new wanted(given.buffer, given.byteOffset, given.length); // its bits
  if (!Array.isArray(given) || wanted === Array) {
    throw new EmberletTypeError(`a tensor of ${type} takes a ${wanted.name}; found: ${given?.constructor?.name ?? given}`);
  }
  if (type === "float16" && wanted === Uint16Array) throw new EmberletTypeError("a tensor of float16 takes a Uint16Array in this browser");
  return wanted === BigInt64Array || wanted === BigUint64Array ? wanted.from(given, (n) => BigInt(n)) : wanted.from(given);
}

function checked(dims) {
  if (!Array.isArray(dims)) throw new EmberletTypeError(`the dims of a tensor are an array of numbers; found: ${dims}`);
  const wrong = dims.find((n) => !Number.isSafeInteger(n) || n < 0);
  if (wrong !== undefined) throw new EmberletRangeError(`the dims of a tensor are whole numbers of 0 or more; found: ${wrong}`);
  return Object.freeze([...dims]);
}

// What only onnxruntime has, so that a page reads which member it is.
export const missing = (name, instead) => () => {
  throw new EmberletError(`${name} is not in emberlet-web/onnxruntime${instead ? `: ${instead}` : ""}`);
};
const OURS = "put the values into a typed array, new Tensor('float32', values, dims)";
for (const name of ["fromTexture", "fromGpuBuffer", "fromMLTensor", "fromPinnedBuffer"]) {
  Object.defineProperty(Tensor, name, { value: missing(`Tensor.${name}`, OURS) });
}
for (const name of ["texture", "gpuBuffer", "mlTensor"]) {
  Object.defineProperty(Tensor.prototype, name, { get: missing(`Tensor.${name}`, "results are in memory of the processor, as data") });
}
