// What a call of `load` may say.

const OPTIONS = ["cache", "compiler", "device", "dims", "fallback", "freeze", "onProgress", "signal", "threads", "wasm", "weights"];

// Refuses options that are misspelt, which would else be ignored.
export function checkOptions(options) {
  if (typeof options !== "object" || options === null) throw new TypeError(`load takes an object of options after the source; found: ${options}`);
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw new TypeError(`load has no option "${unknown}"; it has ${OPTIONS.join(", ")}`);
  const { device } = options;
  if (device && device !== "webgpu" && device !== "wasm") throw new TypeError(`device is "webgpu" or "wasm"; found: ${device}`);
}
