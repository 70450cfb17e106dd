/** onnxruntime-web's API in front of emberlet; https://onnxruntime.ai/docs/api/js documents the names. What is not here
 * throws an Error that names it. */

import type { LoadOptions } from "./emberlet.mjs";

export { EmberletError } from "./emberlet.mjs";

interface TypedArrays {
  float32: Float32Array;
  float64: Float64Array;
  /** A Float16Array where the browser has one, else its bits. */
  float16: Uint16Array;
  int8: Int8Array;
  uint8: Uint8Array;
  int16: Int16Array;
  uint16: Uint16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
  bool: Uint8Array;
  string: string[];
}

export interface Tensor {
  readonly type: Tensor.Type;
  readonly data: Tensor.DataType;
  readonly dims: readonly number[];
  /** The number of values. */
  readonly size: number;
  /** "cpu", or "none" once it is disposed. */
  readonly location: Tensor.DataLocation;
  getData(releaseData?: boolean): Promise<Tensor.DataType>;
  dispose(): void;
  /** The same values in another shape. */
  reshape(dims: readonly number[]): Tensor;
  /** The first image of a tensor of four dims: (value - bias) * mean. */
  toImageData(options?: ToImageOptions): ImageData;
  /** That image as the address of a PNG file; not in a worker. */
  toDataURL(options?: ToImageOptions): string;
}

export type OnnxValue = Tensor;
export type OnnxValueDataLocation = Tensor.DataLocation;

export type ImageFormat = "RGB" | "RGBA" | "BGR" | "RBG";

interface ImageOptions {
  /** Default: "NCHW". */
  tensorLayout?: "NCHW" | "NHWC";
  /** A number, or one for each color. Default: mean 255, bias 0. */
  norm?: { mean?: number | readonly number[]; bias?: number | readonly number[] };
}

export interface ToImageOptions extends ImageOptions {
  /** Default: "RGB", or "RGBA" of four channels. */
  format?: ImageFormat;
}

export interface FromImageOptions extends ImageOptions {
  /** Default: "RGB"; "RGBA" of an image element. */
  tensorFormat?: ImageFormat;
  /** Only "float32" is given, as by onnxruntime. */
  dataType?: "float32" | "uint8";
  /** Both cut an ImageData or an image element, or add transparent pixels. They do not scale it. */
  resizedHeight?: number;
  resizedWidth?: number;
}

export namespace Tensor {
  type DataLocation = "none" | "cpu" | "cpu-pinned" | "texture" | "gpu-buffer" | "ml-tensor";
  type Type = keyof TypedArrays;
  type DataTypeMap = TypedArrays;
  type DataType = TypedArrays[Type];
}

export interface TypedTensor<T extends Tensor.Type> extends Tensor {
  readonly type: T;
  readonly data: TypedArrays[T];
  getData(releaseData?: boolean): Promise<TypedArrays[T]>;
  reshape(dims: readonly number[]): TypedTensor<T>;
}

export const Tensor: {
  new <T extends Tensor.Type>(
    type: T,
    data: TypedArrays[T] | readonly number[] | readonly bigint[] | readonly boolean[],
    dims?: readonly number[],
  ): TypedTensor<T>;
  new (data: Float32Array, dims?: readonly number[]): TypedTensor<"float32">;
  new (data: BigInt64Array, dims?: readonly number[]): TypedTensor<"int64">;
  /** A float32 tensor of an image, or of the image at an address: (color + bias) / mean. */
  fromImage(
    image: ImageData | HTMLImageElement | ImageBitmap | string,
    options?: FromImageOptions,
  ): Promise<TypedTensor<"float32">>;
  new (data: Exclude<Tensor.DataType, string[]> | readonly string[] | readonly boolean[], dims?: readonly number[]): Tensor;
};

export interface InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** A size that the model leaves open is the text that names it. */
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  /** `feeds` has a Tensor for each input. `fetches` are the names of the wanted results, or an object whose Tensors are
   * filled. */
  run(
    feeds: InferenceSession.FeedsType,
    fetches: InferenceSession.FetchesType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  run(feeds: InferenceSession.FeedsType, options?: InferenceSession.RunOptions): Promise<InferenceSession.ReturnType>;
  release(): Promise<void>;
  /** Throws: use `profile` of emberlet-web's own models. */
  startProfiling(): void;
  /** Throws. */
  endProfiling(): void;
}

export namespace InferenceSession {
  type OnnxValueMapType = Readonly<Record<string, OnnxValue>>;
  type NullableOnnxValueMapType = Readonly<Record<string, OnnxValue | null>>;
  type FeedsType = OnnxValueMapType;
  type FetchesType = readonly string[] | NullableOnnxValueMapType;
  type ReturnType = OnnxValueMapType;
  type ExecutionProviderConfig = string | { readonly name: string };
  interface ValueMetadata {
    readonly name: string;
    readonly isTensor: true;
    readonly type: Tensor.Type;
    readonly shape: readonly (number | string)[];
  }
  interface SessionOptions {
    /** "webgpu", "wasm" or both: both, or none, leave the choice to emberlet. */
    executionProviders?: readonly ExecutionProviderConfig[];
    /** Sizes that the model leaves open, by name. */
    freeDimensionOverrides?: Readonly<Record<string, number>>;
    /** Options of emberlet's `load`: the addresses of files that a bundler moved, for example. */
    emberlet?: LoadOptions;
    /** Others of onnxruntime's options are accepted; they do not change the results. */
    readonly [other: string]: unknown;
  }
  interface RunOptions {
    readonly logSeverityLevel?: number;
    readonly logVerbosityLevel?: number;
    readonly tag?: string;
  }
}

export const InferenceSession: {
  create(source: string | URL | Uint8Array | ArrayBuffer, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  create(
    buffer: ArrayBuffer,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
};

export interface Env {
  logLevel: "verbose" | "info" | "warning" | "error" | "fatal";
  debug: boolean;
  trace: boolean;
  readonly versions: { readonly common: string; readonly web: string; readonly emberlet: string };
  /** `numThreads` is the most threads of a run in WebAssembly. Other settings are accepted and have no effect. */
  wasm: { numThreads?: number; [other: string]: unknown };
  webgl: Record<string, unknown>;
  webgpu: Record<string, unknown>;
}

export const env: Env;

export function listSupportedBackends(): { name: string; bundled: boolean }[];

declare const ort: {
  InferenceSession: typeof InferenceSession;
  Tensor: typeof Tensor;
  env: Env;
  listSupportedBackends: typeof listSupportedBackends;
};
export default ort;
