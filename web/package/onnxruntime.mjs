// onnxruntime-web's API in front of emberlet: change the import, and nothing else.
//
//   import * as ort from "emberlet-web/onnxruntime";
//
//   const session = await ort.InferenceSession.create("model.onnx");
//   const results = await session.run({ image: new ort.Tensor("float32", pixels, [1, 1, 8, 8]) });
//
// https://onnxruntime.ai/docs/api/js has the documentation of these names; those that are not here throw an Error.

import { prepare } from "./compiling.mjs";
import { load } from "./emberlet.mjs";
import { EmberletError, EmberletRangeError, EmberletTypeError } from "./errors.mjs";
import { kindOf, named, refusal } from "./kinds.mjs";
import { Lengths, ranged } from "./lengths.mjs";
import { Models } from "./models.mjs";
import { portsOf, withShapes } from "./ports.mjs";
import { open } from "./sources.mjs";
import { Steps } from "./steps.mjs";
import { Tensor, missing } from "./tensors.mjs";
import { version } from "./version.mjs";

export { EmberletError, Tensor };

export const env = {
  logLevel: "warning",
  debug: false,
  trace: false,
  versions: { common: "1.30.0", web: "1.30.0", emberlet: version }, // whose API this is
  // numThreads is used; the other settings have no meaning here. transformers.js downloads onnxruntime's own engine from
  // another server where wasmPaths is not a string.
  wasm: { wasmPaths: `${import.meta.url ?? ""}`.replace(/[^/]*$/, "") },
  webgl: {},
  webgpu: {},
};

prepare(); // who imports this has an ONNX file to compile

const FEW = 16; // the most integers of an input that become constants where another input has no shape
const DEVICES = { webgpu: "webgpu", wasm: "wasm", cpu: "wasm" };
const create = Symbol("create");

export class InferenceSession {
  #compile;
  #open;
  #unranked; // names of inputs without a shape
  #constants; // whether a few integers that are inputs become constants, as beside inputs without a shape
  #lengths = new Lengths();
  #models = new Models(); // by JSON of what they are compiled for
  #stepped; // () => a Steps
  #steps = null; // what runs a model whose control flow depends on other values
  #released = false;

  constructor(token, ports, compile, stepped, sizes) {
    this.#stepped = stepped;
    if (token !== create) throw new EmberletTypeError("use InferenceSession.create");
    this.#compile = compile;
    const described = ({ name, type, shape }, i) => {
      const sized = (shape ?? []).map((size, axis) => (typeof size === "string" ? sizes[size || `${name}:${axis}`] ?? size : size));
      return Object.freeze({ name: name || String(i), isTensor: true, type, shape: Object.freeze(sized) });
    };
    this.inputMetadata = Object.freeze(ports.inputs.map(described));
    this.outputMetadata = Object.freeze(ports.outputs.map(described));
    this.inputNames = Object.freeze(ports.inputs.map(({ name }) => name));
    this.outputNames = Object.freeze(ports.outputs.map(({ name }) => name));
    this.#unranked = ports.inputs.filter(({ shape }) => !shape).map(({ name }) => name);
    this.#constants = this.#unranked.length > 0;
    this.#open = this.#constants || this.inputMetadata.some(({ shape }) => shape.some((size) => typeof size === "string"));
  }

  // (address, options), (bytes, options) or (buffer, byteOffset, byteLength, options).
  static async create(source, ...more) {
    const options = more.find((one) => typeof one === "object" && one !== null) ?? {};
    const [offset, length] = more.filter((one) => typeof one === "number");
    const given = source instanceof ArrayBuffer ? new Uint8Array(source, offset ?? 0, length) : source;
    checkOptions(options);
    const found = await open(given);
    if (!found.onnx) {
      found.arriving?.cancel();
      const kind = found.compiled ? "wasm" : kindOf(found.module ?? found.header);
      throw new EmberletError(`${refusal(found.name, kind)}; a session takes an ONNX file`);
    }
    const ports = portsOf(found.onnx, found.name);
    const dims = ofInputs(options.freeDimensionOverrides ?? {}, ports.inputs);
    const device = deviceOf(options.executionProviders);
    const threads = env.wasm.numThreads || undefined;
    const compile = ({ sizes, shapes, freeze }) => {
      const bytes = Object.keys(shapes).length ? withShapes(found.onnx, shapes) : found.onnx;
      const own = { ...options.emberlet, device, threads, freeze, dims: { ...dims, ...sizes } };
      return load(named(bytes, found.name), own);
    };
    const stepped = () => new Steps({ name: found.name, bytes: found.onnx }, options.emberlet?.compiler);
    const session = new InferenceSession(create, ports, compile, stepped, dims);
    const settled = { sizes: {}, shapes: {}, freeze: {} };
    if (!session.#open) await session.#using(settled, () => {}).catch((error) => session.#branches(error, false));
    return session;
  }

  // feeds: a Tensor for each input. fetches: the names of the wanted results, an array or the keys of an object, whose
  // Tensors are filled. Options are not needed here.
  async run(feeds, fetches, options) {
    if (this.#released) throw new EmberletError("the session was released; create another");
    if (typeof feeds !== "object" || feeds === null || feeds instanceof Tensor || Array.isArray(feeds)) {
      throw new EmberletTypeError("'feeds' must be an object that has input names as keys and tensors as values");
    }
    const isOptions = options === undefined && fetches && !Array.isArray(fetches) && !Object.keys(fetches).some((name) => this.outputNames.includes(name));
    const wanted = isOptions || !fetches ? this.outputNames : Array.isArray(fetches) ? fetches : Object.keys(fetches);
    const unknown = wanted.find((name) => !this.outputNames.includes(name));
    if (unknown !== undefined) throw new EmberletRangeError(`'fetches' contains an output that the model does not have: ${unknown}; it has ${this.outputNames.join(", ")}`);
    const results = await this.#answers(feeds);
    return Object.fromEntries(
      wanted.map((name) => {
        const type = this.outputMetadata[this.outputNames.indexOf(name)].type;
        const found = new Tensor(type, results[name], [...results[name].shape]);
        const place = isOptions || Array.isArray(fetches) ? null : fetches?.[name];
        if (!place) return [name, found];
        if (place.type !== type || place.size !== found.size) throw new EmberletError(`the result ${name} is ${type} [${found.dims}]; its tensor in 'fetches' is ${place.type} [${place.dims}]`);
        place.data.set(found.data);
        return [name, place];
      }),
    );
  }

  async release() {
    this.#released = true;
    this.#steps?.release();
    this.#steps = null;
    await this.#models.release();
  }

  async #answers(feeds) {
    for (;;) {
      if (this.#steps) return this.#steps.run(this.#typed(feeds));
      const constants = this.#constants; // another run may set it meanwhile
      try {
        return await this.#results(this.#checked(feeds));
      } catch (error) {
        this.#branches(error, constants);
      }
    }
  }

  // From now on integers are constants, if that is what the compiler asks for: the model branches on one. A model that
  // branches on other values runs step by step. constants: whether they were when the model was compiled.
  #branches(error, constants) {
    if (error.branchesOn === undefined || this.#released) throw error;
    const { type } = this.inputMetadata.find(({ name }) => name === error.branchesOn) ?? {};
    if (!constants && isWhole(type)) this.#constants = true;
    else this.#steps ??= this.#stepped();
  }

  // The [array, dtype, shape] of each input by name.
  #typed(feeds) {
    this.#checked(feeds);
    return Object.fromEntries(this.inputNames.map((name) => [name, [feeds[name].data, feeds[name].type, feeds[name].dims]]));
  }

  // The arrays of the inputs by name, and what the model is compiled for: the sizes of open axes, the shapes of inputs
  // without one and, beside such inputs or where the model branches on them, integers as constants, such as the k of TopK.
  #checked(feeds) {
    const unknown = Object.keys(feeds).find((name) => !this.inputNames.includes(name));
    if (unknown !== undefined) throw new EmberletError(`invalid feed name: ${unknown}; the model has ${this.inputNames.join(", ")}`);
    const [sizes, shapes, freeze, given] = [{}, {}, {}, {}];
    for (const { name, type, shape } of this.inputMetadata) {
      const tensor = feeds[name];
      if (!(tensor instanceof Tensor)) throw new EmberletError(`input '${name}' is missing in 'feeds'; it is a Tensor of ${type} [${shape}]`);
      const unranked = this.#unranked.includes(name);
      const scalar = shape.length === 0 && tensor.size === 1 && !unranked; // onnxruntime takes any shape there
      const dims = scalar ? [] : tensor.dims;
      const wrong = () => new EmberletError(`the input ${name} takes ${type} [${shape}]; found: ${tensor.type} [${tensor.dims}]`);
      if (tensor.type !== type || (dims.length !== shape.length && !unranked)) throw wrong();
      if (this.#constants && isWhole(type) && dims.length < 2 && tensor.size <= FEW) {
        freeze[name] = dims.length ? Array.from(tensor.data, Number) : Number(tensor.data[0]);
        continue;
      }
      if (unranked) shapes[name] = dims;
      for (const [axis, size] of shape.entries()) {
        if (typeof size === "number") {
          if (size !== dims[axis]) throw wrong();
          continue;
        }
        const key = size || `${name}:${axis}`;
        if ((sizes[key] ?? dims[axis]) !== dims[axis]) throw new EmberletError(`${key} is ${sizes[key]} in one input and ${dims[axis]} in ${name}`);
        sizes[key] = dims[axis];
      }
      given[name] = Object.assign(type === "string" ? tensor.data.slice() : tensor.data.subarray(), { shape: dims });
    }
    return { given, sizes, shapes, freeze };
  }

  // What a run gives, by a model that takes a range of sizes where they go on changing and the compiler can leave them
  // open.
  async #results({ given, ...settled }) {
    const changing = [settled.shapes, settled.freeze].every((named) => !Object.keys(named).length);
    const run = (sizes) => this.#using({ ...settled, sizes }, (model) => model.run(given));
    let sizes = changing ? this.#lengths.of(settled.sizes) : settled.sizes;
    for (; ranged(sizes); sizes = this.#lengths.instead(sizes, settled.sizes)) {
      try {
        return await run(sizes);
      } catch (error) {
        if (error.otherSizes) return run(settled.sizes); // the model does something else for these sizes than for others
        if (!error.refused) throw error;
      }
    }
    return run(sizes);
  }

  // What job(model) resolves to, for the model that is compiled for these settings.
  #using(settled, job) {
    if (this.#released) throw new EmberletError("the session was released; create another");
    return this.#models.use(JSON.stringify(settled), () => this.#compile(settled), job);
  }
}

for (const name of ["startProfiling", "endProfiling"]) {
  Object.defineProperty(InferenceSession.prototype, name, {
    value: missing(`InferenceSession.${name}`, 'emberlet-web\'s own models have profile()'),
  });
}

// The overrides of sizes that the inputs leave open; the words of a size such as "past + 1", too. onnxruntime ignores
// others without a word.
function ofInputs(sizes, inputs) {
  const axes = inputs.flatMap(({ name, shape }) => (shape ?? []).map((size, axis) => [size, `${name}:${axis}`]));
  const open = axes.flatMap(([size, key]) => (typeof size === "string" ? [size || key, ...size.split(/ [+*] /)] : []));
  const unknown = Object.keys(sizes).filter((name) => !open.includes(name));
  if (unknown.length) console.warn(`emberlet: freeDimensionOverrides names sizes that no input leaves open: ${unknown.join(", ")}`);
  return Object.fromEntries(Object.entries(sizes).filter(([name]) => open.includes(name)));
}

const isWhole = (type) => /^u?int(32|64)$/.test(type);

// The first provider that this package has; undefined to choose by the browser.
function deviceOf(providers) {
  if (!providers?.length) return undefined;
  const names = providers.map((one) => (typeof one === "string" ? one : one.name));
  const known = names.filter((name) => name in DEVICES).map((name) => DEVICES[name]);
  if (!known.length) throw new EmberletError(`no execution provider is available: ${names.join(", ")}; emberlet-web/onnxruntime has webgpu and wasm`);
  return known.includes("webgpu") && known.includes("wasm") && known[0] === "webgpu" ? undefined : known[0];
}

function checkOptions({ preferredOutputLocation: place, externalData, enableGraphCapture }) {
  const places = typeof place === "object" ? Object.values(place) : [place ?? "cpu"];
  if (places.some((one) => one !== "cpu")) missing("preferredOutputLocation", "results are in memory of the processor")();
  if (externalData?.length) missing("externalData", "save the model as one file, as onnx.save does below 2 GB")();
  if (enableGraphCapture) missing("enableGraphCapture", "runs are planned ahead always")();
}

export const registerBackend = missing("registerBackend");
export const listSupportedBackends = () => [
  { name: "webgpu", bundled: true },
  { name: "wasm", bundled: true },
];

export default { InferenceSession, Tensor, env, listSupportedBackends, registerBackend };
