/** Runs models that `emberlet compile model.onnx --out model.wasm` wrote, on the processor and without Python. */

import type { Port, Result, Values } from "./emberlet.mjs";

export { EmberletError } from "./emberlet.mjs";

/**
 * Load a compiled model from an address or from bytes. Throws an EmberletError.
 *
 * threads: the most threads that a run may use, up to 8. Default: as many as the processor has, up to 4. Outside of
 * workers, and in pages that are not cross-origin isolated, a run has one thread.
 */
export function load(
  source: string | URL | Request | Response | ArrayBuffer | ArrayBufferView | Blob,
  options?: { signal?: AbortSignal; threads?: number },
): Promise<WasmModel>;

/** Whether this browser's WebAssembly has the 128-bit vectors that compiled models need. */
export function hasSimd(): boolean;

/** Whether it also has relaxed SIMD, with which compiled models are faster. */
export function hasRelaxed(): boolean;

export interface WasmModel {
  readonly device: "wasm";
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The sizes that the module leaves open, by name, each with its range. */
  readonly sizes: Readonly<Record<string, readonly [lowest: number, highest: number]>>;
  /** How many threads the next run has: 1 until the workers have started. */
  readonly threads: number;
  /** All outputs by name, each a new array; takes all inputs by name. Open sizes follow from the lengths of
   * the arrays, or from their `shape` property: `Object.assign(ids, { shape: [2, 7] })`. Results count as float32; name
   * another class where a model gives one: `run<BigInt64Array>(…)`. */
  run<V extends Values = Float32Array>(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result<V>>>;
  /** `run`, without awaiting. */
  runNow<V extends Values = Float32Array>(inputs?: Readonly<Record<string, Values>>): Record<string, Result<V>>;
  release(): Promise<void>;
}
