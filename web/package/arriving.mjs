// Reads a plan as a stream: its header first, then the weights, part by part, directly to the GPU's memory.

import { EmberletError } from "./errors.mjs";

const MAGIC = 0x4255524e; // of a burnpack; docs/burnpack.md has the format
const HEADER = 10; // bytes before the metadata: magic, version, length of the metadata
const MOST_METADATA = 100 << 20;
const IN_FLIGHT = 64 << 20; // bytes written to the GPU's queue before waiting for it

// Reads a stream in order: a given number of bytes, or the next part.
export class Arriving {
  #reader;
  #rest = new Uint8Array();

  constructor(stream) {
    this.#reader = stream.getReader();
  }

  // The next part, or null at the end.
  async part() {
    if (this.#rest.length) {
      const part = this.#rest;
      this.#rest = new Uint8Array();
      return part;
    }
    const { value, done } = await this.#reader.read();
    return done ? null : value;
  }

  // Exactly `count` bytes, or fewer if the stream ends earlier.
  async take(count) {
    const parts = [];
    let found = 0;
    while (found < count) {
      const part = await this.part();
      if (!part) break;
      parts.push(part);
      found += part.length;
    }
    const bytes = joined(parts);
    this.#rest = bytes.subarray(count);
    return bytes.subarray(0, count);
  }

  // These first bytes and all the others.
  async whole(start, counted = () => {}) {
    const parts = [start];
    for (let part = await this.part(); part; part = await this.part()) {
      parts.push(part);
      counted(part.length);
    }
    return joined(parts);
  }

  cancel() {
    this.#reader.cancel().catch(() => {});
  }
}

// The header and the metadata of a plan in a stream. If it is not a plan, Python reports the error later.
export async function header(arriving) {
  const start = await arriving.take(HEADER);
  const view = new DataView(start.buffer, start.byteOffset, start.length);
  if (start.length < HEADER || view.getUint32(0, true) !== MAGIC) return start;
  const length = Math.min(view.getUint32(6, true), MOST_METADATA);
  const rest = await arriving.take(length);
  if (rest.length < length) throw damaged(`the file ends at byte ${HEADER + rest.length}, before its weights`);
  const whole = new Uint8Array(start.length + rest.length);
  whole.set(start);
  whole.set(rest, start.length);
  return whole;
}

// Write the rest of a file, from byte `position` on, to the GPU as it arrives. uploads: for each tensor
// { start, end, crc, name, pages: [{ buffer, size }] }. told(part) is called for every part and awaited. Throws an Error,
// which has `damaged` if the file is too short or a checksum does not match.
export async function toGpu(arriving, position, uploads, queue, told) {
  const waiting = uploads.map((upload) => ({ ...upload, sum: -1 })).sort((a, b) => a.start - b.start);
  const end = waiting.reduce((most, upload) => Math.max(most, upload.end), position);
  let first = 0; // tensors before this one are complete
  let given = 0;
  let odd = new Uint8Array();
  while (position < end) {
    let part = await arriving.part();
    if (!part) throw damaged(`the file ends ${end - position - odd.length} bytes too early`);
    await told(part);
    if (odd.length) part = joined([odd, part]);
    const even = position + part.length >= end ? part.length : part.length - ((position + part.length) % 4);
    odd = part.slice(even); // WebGPU writes multiples of 4 bytes, to multiples of 4
    part = part.subarray(0, even);
    while (first < waiting.length && waiting[first].end <= position) first++;
    for (let i = first; i < waiting.length && waiting[i].start < position + part.length; i++) {
      const upload = waiting[i];
      const from = Math.max(upload.start, position);
      const to = Math.min(upload.end, position + part.length);
      if (from >= to) continue;
      const bytes = part.subarray(from - position, to - position);
      if (upload.crc) upload.sum = crc32(bytes, upload.sum);
      write(queue, upload.pages, from - upload.start, bytes);
    }
    position += part.length;
    given += part.length;
    if (given > IN_FLIGHT) {
      await queue.onSubmittedWorkDone();
      given = 0;
    }
  }
  for (const { crc, sum, name } of waiting) {
    if (crc && crc !== (~sum >>> 0).toString(16).padStart(8, "0")) {
      throw damaged(`damaged, the bytes of tensor '${name}' have changed`);
    }
  }
}

function write(queue, pages, at, bytes) {
  for (const { buffer, size } of pages) {
    const count = Math.min(size - at, bytes.length);
    if (count > 0) {
      queue.writeBuffer(buffer, at, bytes, 0, count);
      bytes = bytes.subarray(count);
      at = 0;
    } else at -= size;
  }
}

// The bytes of these parts; without a copy if one follows the other in memory.
function joined(parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const [first] = parts;
  let end = first?.byteOffset ?? 0;
  const follow = parts.every((part) => part.buffer === first.buffer && part.byteOffset === end && ((end += part.length), true));
  if (first && follow) return new Uint8Array(first.buffer, first.byteOffset, length);
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const damaged = (message) => Object.assign(new EmberletError(message), { damaged: true });

const TABLE = Int32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

// Continues an (inverted) CRC-32, which begins with -1, with more bytes.
function crc32(bytes, sum) {
  for (let i = 0; i < bytes.length; i++) sum = TABLE[(sum ^ bytes[i]) & 255] ^ (sum >>> 8);
  return sum;
}
