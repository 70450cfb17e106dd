// What a file is by its first bytes, and what to do with one that is no compiled model.

const MAGICS = { plan: [0x4e, 0x52, 0x55, 0x42], wasm: [0x00, 0x61, 0x73, 0x6d] };

// "plan", "weights" (of a module), "wasm", "html", "onnx", "module" (Python) or "unknown".
export function kindOf(bytes) {
  for (const [kind, magic] of Object.entries(MAGICS)) {
    if (!magic.every((byte, i) => bytes[i] === byte)) continue;
    if (kind !== "plan" || metadata(bytes).includes("emberlet.plan")) return kind;
    return "weights";
  }
  if (/^\s*</.test(new TextDecoder().decode(bytes.subarray(0, 64)))) return "html";
  // An ONNX file begins with field 1, the format's version, and goes on with another field of its message.
  if (bytes[0] === 0x08 && bytes[1] < 0x40 && [0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42].includes(bytes[2])) return "onnx";
  return /^\s*(#|"""|'''|import |from |class )/.test(new TextDecoder().decode(bytes.subarray(0, 64))) ? "module" : "unknown";
}

// The text of a burnpack's metadata, whose length stands before it.
function metadata(bytes) {
  const length = bytes.length < 10 ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(6, true);
  return new TextDecoder("latin1").decode(bytes.subarray(10, 10 + length));
}

// A sentence about a file of that kind where a compiled model was expected.
export function refusal(name, kind) {
  const sentences = {
    plan: `${name} is a plan, for the GPU: load it with "emberlet-web"`,
    weights: `${name} has weights and no model: load the module or the ONNX file that they belong to, or compile it`,
    wasm: `${name} is a WebAssembly module: load it with "emberlet-web/wasm"`,
    html: `${name} is a web page, not a model; is the path right?`,
    onnx: `${name} is an ONNX model: load it with "emberlet-web"`,
    module: `${name} is a Python module: load it with "emberlet-web"`,
  };
  return sentences[kind] ?? `${name} is not a compiled model, or it is damaged`;
}

// The sentence for what is no source at all, or null.
export function wrongSource(source) {
  if (source === "") return "load takes the address of a model or its bytes; found an empty address";
  const known = [ArrayBuffer, Blob, Response, ReadableStream, URL, Request];
  if (typeof source === "string" || ArrayBuffer.isView(source) || known.some((one) => source instanceof one)) return null;
  return `load takes the address of a model or its bytes; found: ${described(source)}`;
}

// Bytes that know the name of their file. A File would do, too, but its bytes go through the browser's other process.
export const named = (bytes, name) => Object.assign(bytes.subarray(), { name });

// The sentence for what is no object of inputs, or null.
export function wrongInputs(given, inputs) {
  if (typeof given === "object" && given !== null && !ArrayBuffer.isView(given) && !Array.isArray(given)) return null;
  const example = inputs.map(({ name, array, length }) => `${name}: new ${array.name}(${length})`).join(", ");
  return `run takes an object with a typed array for each input, { ${example} }; found: ${described(given)}`;
}

const described = (value) => (value === null || typeof value !== "object" ? String(value) : value.constructor?.name ?? "an object");
