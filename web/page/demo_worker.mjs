// Runs the model of a demo, outside of the page's thread. The files are those that web/build_demos.py writes.

import { download } from "./download.mjs";
import { load } from "./emberlet/emberlet.mjs";
import { readable } from "./emberlet/interpreter.mjs";

const at = (file) => new URL(`demos/${file}`, import.meta.url).href;
let [model, words] = [null, null];

async function run(inputs) {
  const began = performance.now();
  const results = await model.run(inputs);
  const ms = performance.now() - began;
  return { results, told: { ms, device: model.device, reason: model.reason ?? "", adapter: model.adapter } };
}

const commands = {
  // The fallback is downloaded only where it runs.
  async load({ name, device }) {
    const onProgress = (progress) => postMessage({ progress });
    const other = name === "search" ? download(at("words.txt")) : null;
    model = await load(at(`${name}.plan`), { fallback: at(`${name}.wasm`), device, onProgress });
    if (other) {
      const { WordPiece } = await import("./wordpiece.mjs");
      words = new WordPiece(await (await other).text());
    }
  },

  // bitmap: a square picture of the size that the model takes.
  async see(bitmap) {
    const { width: side } = bitmap;
    const context = new OffscreenCanvas(side, side).getContext("2d");
    context.fillStyle = "white"; // behind what is transparent
    context.fillRect(0, 0, side, side);
    context.drawImage(bitmap, 0, 0);
    bitmap.close();
    const { data } = context.getImageData(0, 0, side, side);
    const picture = new Float32Array(3 * side * side);
    for (let i = 0; i < side * side; i++) {
      for (let c = 0; c < 3; c++) picture[c * side * side + i] = (data[4 * i + c] - 127) / 128;
    }
    const { results, told } = await run({ picture });
    return { shares: results.shares, told };
  },

  // A vector of length 1: the mean of what the model says of each token.
  async embed({ text, most }) {
    const ids = words.encode(text, most);
    const ones = new BigInt64Array(ids.length).fill(1n);
    const input_ids = BigInt64Array.from(ids, BigInt);
    const inputs = { input_ids, attention_mask: ones, token_type_ids: new BigInt64Array(ids.length) };
    for (const array of Object.values(inputs)) array.shape = [1, ids.length];
    const { results, told } = await run(inputs);
    const { states } = results;
    const vector = new Float32Array(states.length / ids.length);
    for (let i = 0; i < states.length; i++) vector[i % vector.length] += states[i];
    const length = Math.hypot(...vector);
    return { vector: vector.map((value) => value / length), told };
  },

  // samples: a block of sound; before: the samples that came before it; state: null at the beginning.
  async hear({ samples, before, state }) {
    const input = new Float32Array(before.length + samples.length);
    input.set(before);
    input.set(samples, before.length);
    const { results, told } = await run({ input, state: state ?? new Float32Array(256) });
    return { voice: results.voice[0], state: results.next, told };
  },
};

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    postMessage({ id, error: readable(error) });
  }
};
