// What a call of `load` may say.

import { EmberletTypeError } from "./errors.mjs";

const OPTIONS = ["cache", "compiler", "device", "dims", "fallback", "freeze", "onProgress", "signal", "threads", "wasm", "weights"];

// Refuses options that are misspelt, which would otherwise be ignored.
export function checkOptions(options) {
  if (typeof options !== "object" || options === null) throw new EmberletTypeError(`load takes an object of options after the source; found: ${options}`);
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new EmberletTypeError(`load has no option "${unknown}"; it has ${OPTIONS.join(", ")}`);
  const { device } = options;
  if (device && device !== "webgpu" && device !== "wasm") throw new EmberletTypeError(`device is "webgpu" or "wasm"; found: ${device}`);
}
