// The inputs and outputs of an ONNX file, read from its bytes: what a session must know before the file is compiled.
// Numbers of fields: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

// By number of TensorProto.DataType, as onnxruntime names them.
const TYPES = [
  ...[null, "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64"],
  ...["uint32", "uint64", "complex64", "complex128", "bfloat16"],
];

// { inputs, outputs }: lists of { name, type, shape }; an open size is the text that names it, or "" without a name.
// Throws an Error if the bytes are no ONNX file.
export function portsOf(bytes, name) {
  try {
    return graphPorts(bytes);
  } catch (error) {
    throw new Error(`${name} is not an ONNX model, or it is damaged`, { cause: error });
  }
}

function graphPorts(bytes) {
  const found = { inputs: [], outputs: [] };
  const constants = new Set();
  for (const graph of parts(bytes, 7)) {
    for (const tensor of parts(graph, 5)) for (const name of parts(tensor, 8)) constants.add(text(name));
    for (const one of parts(graph, 11)) found.inputs.push(port(one));
    for (const one of parts(graph, 12)) found.outputs.push(port(one));
  }
  return { ...found, inputs: found.inputs.filter(({ name }) => !constants.has(name)) };
}

function port(bytes) {
  const [name = new Uint8Array()] = parts(bytes, 1);
  const [type = new Uint8Array()] = parts(bytes, 2);
  const [tensor = new Uint8Array()] = parts(type, 1);
  const [dtype = 0] = parts(tensor, 1);
  const [shape = new Uint8Array()] = parts(tensor, 2);
  const sizes = [...parts(shape, 1)].map((dim) => {
    const [size] = parts(dim, 1);
    const [word] = parts(dim, 2);
    return size ?? (word ? text(word) : "");
  });
  return { name: text(name), type: TYPES[dtype] ?? "unknown", shape: sizes };
}

const text = (bytes) => new TextDecoder().decode(bytes);

// The fields of a message that have this number: numbers, or the bytes of texts and messages.
function* parts(bytes, wanted) {
  let at = 0;
  const damaged = () => new Error(`the message ends within a field, at byte ${at}`);
  const number = () => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw damaged();
  };
  while (at < bytes.length) {
    const key = number();
    const kind = key % 8;
    if (kind === 0) {
      const value = number();
      if (key >>> 3 === wanted) yield value;
      continue;
    }
    const size = { 1: 8, 2: kind === 2 ? number() : 0, 5: 4 }[kind];
    if (size === undefined || at + size > bytes.length) throw damaged();
    const start = at;
    at += size;
    if (Math.floor(key / 8) === wanted) yield bytes.subarray(start, at);
  }
}
