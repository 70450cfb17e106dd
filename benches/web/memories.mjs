// Keeps the memory of WebAssembly modules in view: the browser counts it only while a script holds its buffer.

const memories = new Set();
const { instantiate, instantiateStreaming, Memory } = WebAssembly;

function seen(made) {
  for (const one of Object.values((made.instance ?? made).exports ?? {})) if (one instanceof Memory) memories.add(one);
  return made;
}

WebAssembly.instantiate = async (...given) => seen(await instantiate.apply(WebAssembly, given));
WebAssembly.instantiateStreaming = async (...given) => seen(await instantiateStreaming.apply(WebAssembly, given));
WebAssembly.Memory = class extends Memory {
  constructor(...given) {
    super(...given);
    memories.add(this);
  }
};

// Call it before the memory is measured.
export const hold = () => void (globalThis.held = [...memories].map((memory) => memory.buffer));
