// A form for each input, and its values as a typed array.

import { ARRAYS } from "./emberlet/arrays.mjs";

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// The number of a size that the visitor chose.
const chosen = (input) => Math.max(Number(input.min), Math.round(Number(input.value)) || 0);

// A size to begin with where a model leaves an axis open: 224 for a picture's sides, 16 for the length of a text or of
// another sequence, 1 for a batch and what is not known.
function firstSize({ dtype, shape }, axis) {
  if (axis && /len|seq|tok|time|step|frame|word/i.test(shape[axis] ?? "")) return 16;
  const colors = [1, 3, 4];
  const sides = colors.includes(shape[1]) ? [2, 3] : colors.includes(shape[3]) ? [1, 2] : [];
  if (shape.length === 4 && dtype !== "bool" && sides.includes(axis)) return 224;
  return axis && /int/.test(dtype) ? 16 : 1;
}

// The sizes that a model leaves open under a name, each to be chosen once for all inputs. known: { name: [lowest, highest] }
// for a compiled file; a module has no ranges, and may take 0, as of a decoder's empty cache.
export class Sizes {
  #inputs = new Map();

  constructor(ports, known = {}) {
    const texts = ports.flatMap(({ shape }) => shape.filter((size) => typeof size === "string"));
    const names = new Set([...Object.keys(known), ...texts.filter((text) => factorsOf(text, known) === null)]);
    for (const name of names) {
      const [low, high] = known[name] ?? [0, undefined];
      const firsts = ports.flatMap((port) => port.shape.flatMap((size, axis) => (size === name ? [firstSize(port, axis)] : [])));
      const value = Math.min(Math.max(low, 1, ...firsts), high ?? Infinity);
      this.#inputs.set(name, element("input", { type: "number", min: low, value, ...(high === undefined ? {} : { max: high }) }));
    }
    const labels = [...this.#inputs].map(([name, input]) => {
      const range = name in known ? ` (${known[name][0]} to ${known[name][1]})` : "";
      return element("label", {}, `${name}${range} `, input);
    });
    this.element = element("fieldset", { id: "sizes", hidden: !labels.length }, element("legend", { textContent: "Sizes" }), ...labels);
    this.known = known;
  }

  // The number of a size from its text: a name, or a formula of names such as "2 * past + 1".
  of(text) {
    if (this.#inputs.has(text)) return chosen(this.#inputs.get(text));
    const product = (factors) => factors.reduce((a, factor) => a * (typeof factor === "number" ? factor : this.of(factor)), 1);
    return factorsOf(text, this.known).reduce((sum, factors) => sum + product(factors), 0);
  }
}

// The factors of each product in a sum of products of numbers and known names; null for any other text.
function factorsOf(text, known) {
  const terms = text.split(" + ").map((term) => term.split(" * ").map((one) => (/^-?\d+$/.test(one) ? Number(one) : one)));
  return terms.flat().every((one) => typeof one === "number" || one in known) ? terms : null;
}

export class Feed {
  // port: { name, dtype, shape }, where an open size is a string or null; sizes: those with a name; client: the
  // worker that turns images into tensors.
  constructor(port, sizes, client) {
    this.port = port;
    this.named = sizes;
    this.client = client;
    this.stop = () => {};
    const id = `input-${port.name.replace(/\W/g, "-")}`;
    this.sizes = port.shape.map((size, axis) =>
      size === null ? element("input", { type: "number", min: 0, value: firstSize(port, axis), ariaLabel: `${port.name}, axis ${axis} (open)` }) : null,
    );
    this.kind = element("select", { id });
    for (const [value, text] of this.#kinds()) this.kind.append(element("option", { value, textContent: text }));
    this.kind.onchange = () => this.#show();
    this.body = element("div");
    this.said = element("p", { className: "said" });
    const axes = this.sizes.flatMap((input, axis) =>
      input ? [element("label", {}, `axis ${axis} `, input)] : [],
    );
    const shape = port.shape.map((size) => size ?? "?").join(" × ") || "one number";
    this.element = element(
      "div",
      { className: "input" },
      element("h3", { textContent: port.name }),
      element("p", { className: "said", textContent: `${port.dtype}, ${shape}` }),
      ...axes,
      element("label", { htmlFor: id }, "Feed ", this.kind),
      this.body,
      this.said,
    );
    this.#show();
  }

  get shape() {
    return this.port.shape.map((size, axis) => {
      if (size === null) return chosen(this.sizes[axis]);
      return typeof size === "string" ? this.named.of(size) : size;
    });
  }

  #kinds() {
    const { dtype, shape } = this.port;
    const kinds = [["zeros", "zeros"], ["random", "random numbers"], ["numbers", "numbers"]];
    const channels = [shape.at(1), shape.at(-1)];
    if (dtype === "float32" && shape.length === 4 && channels.some((c) => c === 1 || c === 3)) {
      kinds.push(["image", "an image"], ["camera", "the camera"]);
    }
    if (/int/.test(dtype)) kinds.push(["text", "text, as bytes"]);
    if (dtype === "float32" && shape.length <= 3) kinds.push(["microphone", "the microphone"]);
    return kinds;
  }

  #show() {
    this.stop();
    this.stop = () => {};
    this.said.textContent = "";
    this.body.replaceChildren();
    this[`_${this.kind.value}`]?.();
  }

  _numbers() {
    this.text = element("textarea", { ariaLabel: `numbers of ${this.port.name}`, placeholder: "1, 2.5, -3 …" });
    this.body.append(this.text);
  }

  _text() {
    this.text = element("textarea", { ariaLabel: `text of ${this.port.name}`, placeholder: "its UTF-8 bytes, then zeros" });
    this.body.append(this.text);
  }

  #scale() {
    this.scale = element("select", { ariaLabel: "values of a pixel" });
    const kinds = [["1", "0 to 1"], ["255", "0 to 255"], ["imagenet", "ImageNet's mean and deviation"]];
    for (const [value, text] of kinds) this.scale.append(element("option", { value, textContent: text }));
    this.body.append(element("label", {}, "Pixels as ", this.scale));
  }

  _image() {
    this.file = element("input", { type: "file", accept: "image/*", ariaLabel: `image of ${this.port.name}` });
    this.body.append(this.file);
    this.#scale();
  }

  _camera() {
    this.video = element("video", { muted: true, playsInline: true, ariaLabel: "the camera" });
    this.body.append(this.video);
    this.#scale();
    this.#media({ video: true }, (stream) => {
      this.video.srcObject = stream;
      return this.video.play();
    });
  }

  _microphone() {
    this.sound = null;
    const rate = element("input", { type: "number", value: 16000, min: 4000, max: 96000 });
    const record = element("button", { type: "button", textContent: "Record" });
    record.onclick = () => this.#record(Number(rate.value));
    this.body.append(element("label", {}, "Samples a second ", rate), record);
  }

  async #media(wanted, use) {
    try {
      const stream = await navigator.mediaDevices.getUserMedia(wanted);
      this.stop = () => stream.getTracks().forEach((track) => track.stop());
      await use(stream);
    } catch (error) {
      this.said.textContent = `It cannot be used: ${error.message}`;
    }
  }

  // Records as many samples as the input takes.
  #record(sampleRate) {
    const count = this.shape.reduce((a, b) => a * b, 1);
    return this.#media({ audio: true }, async (stream) => {
      this.said.textContent = "Recording …";
      const context = new AudioContext({ sampleRate });
      await context.audioWorklet.addModule(new URL("recorder.mjs", import.meta.url));
      const node = new AudioWorkletNode(context, "recorder", { processorOptions: { count } });
      context.createMediaStreamSource(stream).connect(node);
      this.sound = await new Promise((resolve) => (node.port.onmessage = ({ data }) => resolve(data)));
      this.stop();
      await context.close();
      this.said.textContent = `${count} samples recorded.`;
    });
  }

  // Resolves to the values; throws an Error that says what is missing.
  async values() {
    const { name, dtype } = this.port;
    const array = ARRAYS[dtype];
    if (!array || (/float/.test(dtype) && array === Uint16Array)) throw new Error(`the page cannot feed ${dtype}, which ${name} takes`);
    const count = this.shape.reduce((a, b) => a * b, 1);
    const values = new array(count);
    const big = array === BigInt64Array || array === BigUint64Array;
    const put = (i, number) => (values[i] = big ? BigInt(Math.round(number)) : number);
    switch (this.kind.value) {
      case "random":
        for (let i = 0; i < count; i++) put(i, /float/.test(dtype) ? Math.random() : Math.floor(2 * Math.random()));
        return values;
      case "numbers": {
        const numbers = this.text.value.split(/[\s,;[\]]+/).filter(Boolean).map(Number);
        if (numbers.some(Number.isNaN)) throw new Error(`${name}: these are not all numbers`);
        if (numbers.length !== count) throw new Error(`${name} takes ${count} numbers; there are ${numbers.length}`);
        numbers.forEach((number, i) => put(i, number));
        return values;
      }
      case "text":
        for (const [i, byte] of [...new TextEncoder().encode(this.text.value)].slice(0, count).entries()) put(i, byte);
        return values;
      case "image":
      case "camera": {
        const source = this.kind.value === "camera" ? this.video : this.file.files[0];
        if (!source || (source === this.video && !source.videoWidth)) throw new Error(`${name}: there is no image yet`);
        const bitmap = await createImageBitmap(source);
        return this.client().call("image", { bitmap, shape: this.shape, scale: this.scale.value }, [bitmap]);
      }
      case "microphone":
        if (!this.sound) throw new Error(`${name}: nothing is recorded yet`);
        values.set(this.sound.subarray(0, count));
        return values;
      default:
        return values;
    }
  }
}
