/** Runs ONNX files, and what `emberlet compile model.onnx` writes, on WebGPU or in WebAssembly. Every error is an
 * EmberletError. */

import type { WasmModel } from "./wasm.mjs";

/** The array of a value that is passed or returned: flat, row by row. float16 is a Float16Array if the browser has one,
 * else its bits in a Uint16Array, as bfloat16's are; each bool is a byte. */
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
export type Result<V extends Values = Values> = V & { readonly shape: readonly number[] };

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
  /** A size that the plan leaves open is a string: its name in `model.sizes`, or a formula of such names. */
  readonly shape: readonly (number | string)[];
  /** The class of its values, to be constructed: `new port.array(port.length)`. */
  readonly array: { new (length: number): Values; readonly BYTES_PER_ELEMENT: number; readonly name: string };
  /** The number of elements of that array, or the largest one if a size is open. */
  readonly length: number;
}

export interface LoadOptions {
  /** Whether what is downloaded and compiled is kept in the browser's Cache, by content. Default: true. */
  cache?: boolean;
  /** Called for every part that arrives; bytes are uncompressed. `total` is known once a plan's header has arrived, and
   * for a .wasm file whose length the server says, which it does not where it compresses. For an ONNX file or a module it
   * stays undefined: the compiler, too, is counted in `loaded`. `stage` is "compile" while one of these is compiled. */
  onProgress?: (progress: { loaded: number; total: number | undefined; stage: "download" | "compile" }) => void;
  /** Aborts the download. */
  signal?: AbortSignal;
  /** The address of micropython.wasm, if a bundler moved it. Default: beside the package's modules. */
  wasm?: string;
  /** The most threads in WebAssembly, at most 8 (wasm.d.mts). */
  threads?: number;
  /** Decides instead of the browser's adapter. "wasm" takes an ONNX file, a Python module, a .wasm file or
   * a `fallback`. */
  device?: "webgpu" | "wasm";
  /** For a Python module: the address or the bytes of its weights. Default: the file that the module names, beside it. */
  weights?: Source;
  /** For an ONNX file or a module: sizes that it leaves open, by name, or as "input:axis"; in a range, which
   * may begin at 0, the model takes every size. */
  dims?: Readonly<Record<string, number | readonly [lowest: number, highest: number, step?: number]>>;
  /** For an ONNX file: inputs that become constants. */
  freeze?: Readonly<Record<string, Frozen>>;
  /** The address of the package's folder `compiler/`, if a bundler moved it. */
  compiler?: string;
}

export type Frozen = number | boolean | string | readonly Frozen[];

/** Where a model comes from: its address, or its bytes. */
export type Source = string | URL | Request | ArrayBuffer | ArrayBufferView | Blob | Response | ReadableStream<Uint8Array>;

/** The same with a file for browsers without a GPU: `fallback` is a file that
 * `emberlet compile model.onnx --out model.wasm` wrote. It runs where WebGPU is missing or is software, and where the GPU
 * is refused or lost, also later. The model's `device` says what runs it, `reason` why it is not the GPU. */
export function load(
  source: Source,
  options: LoadOptions & {
    fallback: string | URL | Request | ArrayBuffer | ArrayBufferView | Blob;
  },
): Promise<Loaded>;

/** Compile an ONNX file, or a module that emberlet codegen wrote, in a worker, and load what it becomes: a plan on the
 * GPU, WebAssembly otherwise, or where runs of both at an earlier visit showed that WebAssembly is faster.
 * `chosen`: sizes that the file leaves open and `dims` does not give, by name. */
export function load(
  source: `${string}.onnx` | `${string}.py`,
  options?: LoadOptions,
): Promise<Loaded & { readonly chosen: Readonly<Record<string, number>> }>;

/** Open the GPU and load a plan: its weights go to the GPU as they arrive, while its kernels compile. */
export function load(source: `${string}.plan`, options?: LoadOptions): Promise<Model>;

/** Load a WebAssembly module. */
export function load(source: `${string}.wasm`, options?: LoadOptions): Promise<WasmModel & { readonly reason: string }>;

/** Load any of these by its bytes, or from an address that does not end in its kind. */
export function load(
  source: Source,
  options?: LoadOptions,
): Promise<Loaded & { readonly chosen?: Readonly<Record<string, number>> }>;

/** A model: `device` says what runs it, and `reason` why that is not the GPU, else "". */
export type Loaded = (Model | WasmModel) & { readonly reason: string };

/** What this package throws: `message` is one sentence that a visitor may read, and `cause` has details. A wrong argument is
 * a TypeError or a RangeError and passes `instanceof EmberletError`, too. */
export class EmberletError extends Error {}

/** Start the interpreter early, so that `load` waits less. Resolves to MicroPython's module object. */
export function prepare(options?: Pick<LoadOptions, "wasm">): Promise<unknown>;

export interface Model {
  /** The GPU's name. */
  readonly adapter: string;
  readonly device: "webgpu";
  /** Why the GPU does not run it: "". */
  readonly reason: string;
  /** The Python that runs the plan: "MicroPython 1.27.0". */
  readonly runtime: string;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The sizes that the plan leaves open, by name, each with its range. */
  readonly sizes: Readonly<Record<string, readonly [lowest: number, highest: number]>>;
  /** The dispatches of a run. Sizes of 0 need fewer. */
  readonly dispatches: number;
  readonly kernels: number;
  /** All outputs by name, each a new array; takes all inputs by name. Calls may overlap; they run in order. Open sizes
   * follow from the lengths of the arrays, or from their `shape` property: `Object.assign(ids, { shape: [2, 7] })`.
   * Results count as float32; name another class where a model gives one: `run<BigInt64Array>(…)`. */
  run<V extends Values = Float32Array>(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result<V>>>;
  /** Runs whose states stay on the GPU; for plans without open sizes. `state`: each state's input, with the output that
   * is its next value. */
  session(options: { state: Readonly<Record<string, string>> }): Promise<Session>;
  /** The time of each dispatch alone, by the host's clock: the shortest of several runs, with the last run's inputs. */
  profile(options?: { runs?: number }): Promise<{ kernel: string; workgroups: [number, number, number]; ms: number }[]>;
  /** Free its memory on the GPU, after the runs that have begun. The garbage collector does not. */
  release(): Promise<void>;
}

/** Runs of one sequence, such as the steps of an LSTM. Its states begin as zeros. */
export interface Session {
  /** The inputs that are not states. */
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  run<V extends Values = Float32Array>(inputs?: Readonly<Record<string, Values>>): Promise<Record<string, Result<V>>>;
  /** The value of a state, by the name of its input. */
  getState(name: string): Promise<Values>;
  setState(name: string, value: Values): Promise<void>;
  /** Set all states to zeros. */
  reset(): Promise<void>;
  release(): Promise<void>;
}
