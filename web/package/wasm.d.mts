/** Runs models that `emberlet compile model.onnx --out model.wasm` wrote, on the processor and without Python. */

import type { Port, Result, Values } from "./emberlet.mjs";

/** Load a compiled model from an address or from bytes. Throws an Error of one sentence. */
export function load(
  source: string | URL | Request | Response | ArrayBuffer | ArrayBufferView | Blob,
  options?: { signal?: AbortSignal },
): Promise<WasmModel>;

/** Whether this browser's WebAssembly has the 128-bit vectors that compiled models need. */
export function hasSimd(): boolean;

export interface WasmModel {
  readonly device: "wasm";
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** All outputs by name, each a new array; takes all inputs by name. */
  run(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result>>;
  /** `run`, at once. */
  runNow(inputs?: Readonly<Record<string, Values>>): Record<string, Result>;
  release(): Promise<void>;
}
