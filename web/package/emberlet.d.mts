/** Runs plans, which `emberlet compile model.onnx` writes, on WebGPU. Every error is an Error of one sentence. */

import type { WasmModel } from "./wasm.mjs";

/** What a value is given and returned as: flat, row by row. float16 is a Float16Array where the browser has one, else
 * its bits in a Uint16Array, as bfloat16's; bool is a byte each. */
export type Values =
  | Float64Array
  | Float32Array
  | Uint16Array
  | BigInt64Array
  | BigUint64Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Int8Array
  | Uint8Array;

/** Values that `run` returns. postMessage drops the shape: send it beside them. */
export type Result = Values & { readonly shape: readonly number[] };

export type DType =
  | "float64"
  | "float32"
  | "float16"
  | "bfloat16"
  | "int64"
  | "uint64"
  | "int32"
  | "uint32"
  | "int16"
  | "uint16"
  | "int8"
  | "uint8"
  | "int4"
  | "uint4"
  | "int2"
  | "uint2"
  | "bool";

/** An input or an output. */
export interface Port {
  readonly name: string;
  readonly dtype: DType;
  /** A size that the plan leaves open is a text: its name in `model.sizes`, or what it is worked out from. */
  readonly shape: readonly (number | string)[];
  /** The class of its values, to be constructed: `new port.array(port.length)`. */
  readonly array: { new (length: number): Values; readonly BYTES_PER_ELEMENT: number; readonly name: string };
  /** Elements of that array; the most, where a size is open. */
  readonly length: number;
}

export interface LoadOptions {
  /** Whether a plan that is downloaded is kept in the browser's Cache, by content. Default: true. */
  cache?: boolean;
  /** Hears of every part that arrives. `total` is known once the plan's header has arrived. Bytes, uncompressed. */
  onProgress?: (progress: { loaded: number; total: number | undefined }) => void;
  /** Aborts the download. */
  signal?: AbortSignal;
  /** The address of micropython.wasm, where a bundler moved it. Default: beside the package's modules. */
  wasm?: string;
  /** The most threads of the fallback, at most 8 (wasm.d.mts). */
  threads?: number;
}

/** Where a plan comes from: its address, or its bytes. */
export type Source = string | URL | Request | ArrayBuffer | ArrayBufferView | Blob | Response | ReadableStream<Uint8Array>;

/** The same with a file for browsers without WebGPU, or without a GPU: `fallback` is what
 * `emberlet compile model.onnx --out model.wasm` wrote. `device` of the model tells which it is. */
export function load(
  source: Source,
  options: LoadOptions & { fallback: string | URL | Request | ArrayBuffer | ArrayBufferView | Blob },
): Promise<Model | WasmModel>;

/** Open the GPU and load a plan: its weights go to the GPU as they arrive, while its kernels compile. */
export function load(source: Source, options?: LoadOptions): Promise<Model>;

/** Start the interpreter before a model is asked for: `load` then waits less. Resolves to MicroPython's module object. */
export function prepare(options?: Pick<LoadOptions, "wasm">): Promise<unknown>;

export interface Model {
  /** The GPU's name. */
  readonly adapter: string;
  readonly device: "webgpu";
  /** Of Python: "MicroPython 1.27.0". */
  readonly runtime: string;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The sizes that the plan leaves open, by name, each with its range. */
  readonly sizes: Readonly<Record<string, readonly [lowest: number, highest: number]>>;
  /** Of a run. Sizes of 0 need fewer. */
  readonly dispatches: number;
  readonly kernels: number;
  /** All outputs by name, each a new array; takes all inputs by name. Calls may overlap; they run in order. Open sizes
   * follow from the lengths of the arrays, or from a `shape` that they have: `Object.assign(ids, { shape: [2, 7] })`. */
  run(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result>>;
  /** Runs whose states stay on the GPU; for plans without open sizes. `state`: names of inputs, each with the output that is its next value. */
  session(options: { state: Readonly<Record<string, string>> }): Promise<Session>;
  /** The time of each dispatch alone, by the host's clock, the shortest of several runs; inputs are those of the last run. */
  profile(options?: { runs?: number }): Promise<{ kernel: string; workgroups: [number, number, number]; ms: number }[]>;
  /** Give its memory on the GPU back, once the runs that were begun have ended. No garbage collector does. */
  release(): Promise<void>;
}

/** Runs of one sequence, such as the steps of an LSTM. Its states begin as zeros. */
export interface Session {
  /** Those that are no states. */
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  run(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result>>;
  /** Of a state, by the name of its input. */
  getState(name: string): Promise<Values>;
  setState(name: string, value: Values): Promise<void>;
  /** All states to zeros. */
  reset(): Promise<void>;
  release(): Promise<void>;
}
