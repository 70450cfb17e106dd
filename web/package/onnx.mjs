// A model from an ONNX file: compiled in the page for what runs it here, and kept by content.

import { adapterName } from "./adapter.mjs";
import { compile } from "./compiling.mjs";
import { loadEither } from "./either.mjs";
import { faster } from "./faster.mjs";
import { Kept } from "./kept.mjs";
import { version } from "./version.mjs"; // the build writes it

const LARGEST = 8 << 20; // bytes of a model that is measured

// found: what sources.mjs opened. The options of `load`, and ofPlan(file): loads a plan; progress(bytes): told of each part
// of the compiler that arrives; compiling(): called when the compiler begins.
export async function loadOnnx(found, options) {
  const { cache, signal, threads, device, dims = {}, freeze = {}, compiler, ofPlan, progress, compiling } = options;
  const dim = words(dims, size, "dims");
  const file = found.name.split(/[\\/]/).pop(); // a File's name may hold a path
  const name = file.endsWith(".onnx") ? file : "model.onnx";
  const settings = { name, dim, freeze: words(freeze, value, "freeze"), folder: compiler, counted: progress, signal };
  const kept = cache ? await Kept.open() : null;
  const hash = kept && (await Kept.keyOf(found.onnx));
  const asked = encodeURIComponent(JSON.stringify([dim, settings.freeze]));
  let chosen = {};
  const made = async (kind) => {
    const path = `compiled/${version}/${hash}/${asked}.${kind}`;
    const stored = await kept?.read(path);
    if (stored) {
      chosen = JSON.parse(stored.headers.get("chosen") ?? "{}");
      return new Uint8Array(await stored.arrayBuffer());
    }
    compiling();
    const compiled = await compile(found.onnx, { ...settings, kind });
    chosen = compiled.chosen;
    await kept?.store(path, compiled.bytes, { chosen: JSON.stringify(chosen) });
    await kept?.drop("compiled/", `compiled/${version}/`); // what other releases compiled
    return compiled.bytes;
  };
  const named = (bytes) => new File([bytes], name);
  const inWasm = async () => (await import("./wasm.mjs")).load(named(await made("wasm")), { signal, threads });
  const place = async () => `compiled/${version}/${hash}/${asked}/${encodeURIComponent(await adapterName())}`;
  const measured = async () => (await (await kept?.read(await place()))?.text()) ?? "";
  const slower = async () => ((await measured()) === "wasm" ? "a run in WebAssembly was faster here" : "");
  const model = await loadEither(async () => ofPlan(named(await made("plan"))), inWasm, device, slower);
  // A run in WebAssembly holds up the page for its length, so that large models are not measured.
  if (kept && !device && model.device === "webgpu" && found.onnx.length <= LARGEST && !(await measured())) {
    whenIdle(async () => {
      const other = await inWasm().catch(() => null); // not every model runs there
      if (signal?.aborted) return void other?.release();
      const best = other ? await faster(model, other).catch(() => "webgpu").finally(() => other.release()) : "webgpu";
      await kept.store(await place(), best);
    });
  }
  return Object.assign(model, { chosen });
}

// In the background, for the next visit: what fails here changes nothing.
function whenIdle(job) {
  const start = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 1000));
  start(() => job().catch(() => {}));
}

const words = (given, worded, what) => {
  if (typeof given !== "object" || given === null) throw new TypeError(`${what} is an object of values by name; found: ${given}`);
  return Object.entries(given).map(([name, one]) => `${name}=${worded(name, one)}`);
};

function size(name, given) {
  if (Number.isSafeInteger(given) && given > 0) return String(given);
  const [low, high, step] = Array.isArray(given) ? given : [];
  const whole = [low, high, step ?? 1].every((n) => Number.isSafeInteger(n) && n > 0);
  if (whole && low <= high) return `${low}..${high}${step ? `:${step}` : ""}`;
  throw new TypeError(`dims takes a number, or [lowest, highest] or [lowest, highest, step], for "${name}"; found: ${JSON.stringify(given)}`);
}

const value = (name, given) => (typeof given === "string" ? given : JSON.stringify(given));
