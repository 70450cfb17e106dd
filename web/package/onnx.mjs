// A model from an ONNX file or a generated Python module: compiled in the page for what runs it here, and kept by content.

import { adapterName, classesHere } from "./adapter.mjs";
import { compile } from "./compiling.mjs";
import { loadEither } from "./either.mjs";
import { EmberletError, EmberletTypeError } from "./errors.mjs";
import { faster } from "./faster.mjs";
import { Kept } from "./kept.mjs";
import { named } from "./kinds.mjs";
import { open } from "./sources.mjs";
import { version } from "./version.mjs"; // the build writes it

const storing = new Map(); // by path, promises that compiled models are kept

const LARGEST = 8 << 20; // bytes of a model that is measured

// found: what sources.mjs opened. The options of `load`, and ofPlan(file): loads a plan; progress(bytes): told of each part
// of the compiler that arrives; compiling(): called when the compiler begins.
export async function compileAndLoad(found, options) {
  const { cache, signal, threads, device, dims = {}, freeze = {}, compiler, ofPlan, progress, compiling } = options;
  const dim = words(dims, size, "dims");
  const files = await filesOf(found, options);
  const [{ name }] = files;
  const settings = { dim, freeze: words(freeze, value, "freeze"), folder: compiler, counted: progress, signal };
  const kept = cache ? await Kept.open() : null;
  const hash = kept && (await Promise.all(files.map(({ bytes }) => Kept.keyOf(bytes)))).join("-");
  const asked = encodeURIComponent(JSON.stringify([dim, settings.freeze]));
  let chosen = {};
  const made = async (kind) => {
    const classes = kind === "plan" ? await classesHere() : undefined; // a third of the work: plans for this device only
    const path = `compiled/${version}/${hash}/${asked}.${classes ? `${classes[0]}.` : ""}${kind}`;
    await storing.get(path);
    const stored = await kept?.read(path);
    if (stored) {
      chosen = JSON.parse(decodeURIComponent(stored.headers.get("chosen") ?? "{}"));
      return new Uint8Array(await stored.arrayBuffer());
    }
    compiling();
    const relaxed = kind === "wasm" && (await import("./wasm.mjs")).hasRelaxed(); // half the work: code for this browser only
    const compiled = await compile(files, { ...settings, kind, relaxed, classes });
    chosen = compiled.chosen;
    // Nobody waits for it; the next call with this file does.
    const putting = kept?.store(path, compiled.bytes, { chosen: encodeURIComponent(JSON.stringify(chosen)) });
    const others = () => kept.drop("compiled/", `compiled/${version}/`).catch(() => {}); // what other releases compiled
    if (putting) storing.set(path, putting.then(others).catch(() => {}).then(() => storing.delete(path)));
    return compiled.bytes;
  };
  const inWasm = async () => (await import("./wasm.mjs")).load(named(await made("wasm"), name), { signal, threads });
  const place = async () => `compiled/${version}/${hash}/${asked}/${encodeURIComponent(await adapterName())}`;
  const measured = async () => (await (await kept?.read(await place()))?.text()) ?? "";
  const slower = async () => ((await measured()) === "wasm" ? "a run in WebAssembly was faster here" : "");
  const model = await loadEither(async () => ofPlan(named(await made("plan"), name)), inWasm, device, slower);
  // A run in WebAssembly holds up the page for its length, so that large models are not measured.
  const total = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (kept && !device && model.device === "webgpu" && total <= LARGEST && !(await measured())) {
    whenIdle(async () => {
      const other = await inWasm().catch(() => null); // not every model runs there
      if (signal?.aborted) return void other?.release();
      const best = other ? await faster(model, other).catch(() => "webgpu").finally(() => other.release()) : "webgpu";
      await kept.store(await place(), best);
    });
  }
  return Object.assign(model, { chosen });
}

// [{ name, bytes }]: the ONNX file; or the module, then its weights, unless they are in it. They lie beside it unless
// `weights` says where.
async function filesOf(found, { cache, signal, weights, progress }) {
  const ending = found.module ? ".py" : ".onnx";
  const last = found.name.split(/[\\/]/).pop(); // a File's name may hold a path
  const name = last.endsWith(ending) ? last : `model${ending}`;
  if (found.onnx) return [{ name, bytes: found.onnx }];
  const text = new TextDecoder().decode(found.module);
  const [, beside] = text.match(/^ +WEIGHTS = "([^"/\\]+)"/m) ?? [];
  if (!beside && /^\w+\.EMBEDDED = /m.test(text)) return [{ name, bytes: found.module }];
  if (!beside) throw new EmberletError(`${name} is not a module that emberlet codegen wrote: it has no class that names its WEIGHTS`);
  const place = weights ?? (found.url && new URL(beside, found.url));
  if (!place) throw new EmberletError(`${name} needs its weights, ${beside}: pass their address or bytes, load(module, { weights })`);
  return [{ name, bytes: found.module }, { name: beside, bytes: (await open(place, { cache, signal, counted: progress, weights: true })).weights }];
}

// In the background, for the next visit: what fails here changes nothing.
function whenIdle(job) {
  const start = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 1000));
  start(() => job().catch(() => {}));
}

const words = (given, worded, what) => {
  if (typeof given !== "object" || given === null) throw new EmberletTypeError(`${what} is an object of values by name; found: ${given}`);
  return Object.entries(given).map(([name, one]) => `${name}=${worded(name, one)}`);
};

function size(name, given) {
  if (Number.isSafeInteger(given) && given >= 0) return String(given);
  const [low, high, step] = Array.isArray(given) ? given : [];
  const whole = [low, high, step ?? 1].every(Number.isSafeInteger) && low >= 0 && high > 0 && (step ?? 1) > 0;
  if (whole && low <= high) return `${low}..${high}${step ? `:${step}` : ""}`;
  throw new EmberletTypeError(`dims takes a number, or [lowest, highest] or [lowest, highest, step], for "${name}"; found: ${JSON.stringify(given)}`);
}

const value = (name, given) => (typeof given === "string" ? given : JSON.stringify(given));
