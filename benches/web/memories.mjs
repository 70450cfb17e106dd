// Finds the memory of WebAssembly modules, which performance.measureUserAgentSpecificMemory does not count.

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

export const bytesOfModules = () => [...memories].reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
