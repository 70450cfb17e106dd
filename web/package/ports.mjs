// The inputs and outputs of an ONNX file, read from its bytes: what a session must know before the file is compiled.
// Numbers of fields: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

// By number of TensorProto.DataType, as onnxruntime names them.
import { EmberletError } from "./errors.mjs";

const TYPES = [
  ...[null, "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64"],
  ...["uint32", "uint64", "complex64", "complex128", "bfloat16"],
];

const NAME = /^[A-Za-z_][A-Za-z0-9_ .+*/()-]{0,39}$/; // what counts as the name of a size; codegen/reader/values.py

// { inputs, outputs }: lists of { name, type, shape }; an open size is the text that names it, or "" without a name. A
// shape of which the file tells nothing is null.
// Throws an Error if the bytes are no ONNX file.
export function portsOf(bytes, name) {
  try {
    return graphPorts(bytes);
  } catch (error) {
    throw new EmberletError(`${name} is not an ONNX model, or it is damaged`, { cause: error });
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

// The same file with these shapes, arrays of numbers by name, for inputs of which it tells none.
export function withShapes(bytes, shapes) {
  const shaped = (dims) => field(2, joined(dims.map((n) => field(1, joined([varint(8), varint(n)])))));
  const port = (one) => {
    const dims = shapes[text(parts(one, 1).next().value)];
    return dims ? changed(one, 2, (type) => changed(type, 1, (tensor) => joined([tensor, shaped(dims)]))) : one;
  };
  return changed(bytes, 7, (graph) => changed(graph, 11, port));
}

function port(bytes) {
  const [name = new Uint8Array()] = parts(bytes, 1);
  const [type = new Uint8Array()] = parts(bytes, 2);
  const [tensor = new Uint8Array()] = parts(type, 1);
  const [dtype = 0] = parts(tensor, 1);
  const [shape] = parts(tensor, 2);
  const sizes = [...parts(shape ?? new Uint8Array(), 1)].map((dim) => {
    const [size] = parts(dim, 1);
    const [word] = parts(dim, 2);
    if (size !== undefined) return size < 2 ** 63 ? size : ""; // a negative number, which means open
    return word && NAME.test(text(word)) ? text(word) : "";
  });
  return { name: text(name), type: TYPES[dtype] ?? "unknown", shape: shape ? sizes : null };
}

const text = (bytes) => new TextDecoder().decode(bytes);

// The fields of a message that have this number: numbers, or the bytes of texts and messages.
function* parts(bytes, wanted) {
  for (const { number, value } of fields(bytes)) if (number === wanted) yield value;
}

// The same message with each message of this number changed.
function changed(bytes, wanted, change) {
  return joined(
    Array.from(fields(bytes), ({ number, value, start, end }) =>
      number === wanted ? field(number, change(value)) : bytes.subarray(start, end),
    ),
  );
}

const field = (number, content) => joined([varint(number * 8 + 2), varint(content.length), content]);

function varint(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) + 128);
  return Uint8Array.of(...bytes, n);
}

function joined(arrays) {
  const out = new Uint8Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    out.set(array, at);
    at += array.length;
  }
  return out;
}

// { number, value, start, end } of each field of a message: its number, or the bytes of a text or message, and its place.
function* fields(bytes) {
  let at = 0;
  const damaged = () => new EmberletError(`the message ends within a field, at byte ${at}`);
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
    const start = at;
    const key = number();
    const kind = key % 8;
    let value;
    if (kind === 0) value = number();
    else {
      const size = { 1: 8, 2: kind === 2 ? number() : 0, 5: 4 }[kind];
      if (size === undefined || at + size > bytes.length) throw damaged();
      value = bytes.subarray(at, at + size);
      at += size;
    }
    yield { number: Math.floor(key / 8), value, start, end: at };
  }
}
