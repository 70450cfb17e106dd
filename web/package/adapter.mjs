// What this browser offers for WebGPU: a GPU, or software that acts as one. Models run faster in WebAssembly than on
// the latter, and start many times sooner.

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|warp\b/i;

// Why WebGPU is not the fastest way to run a model here, or "" where it is.
export async function whyNoGpu() {
  const { gpu } = globalThis.navigator ?? {};
  if (!gpu) return "this browser has no WebGPU";
  const adapter = await Promise.resolve(gpu.requestAdapter({ powerPreference: "high-performance" })).catch(() => null);
  if (!adapter) return "this browser has WebGPU, but offers no GPU to it";
  return isSoftware(adapter) ? "this browser's WebGPU runs in software, without a GPU" : "";
}

// Whether an adapter is a program that runs on the CPU.
export function isSoftware(adapter) {
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info ?? {};
  const fallback = isFallbackAdapter ?? adapter.isFallbackAdapter;
  return Boolean(fallback) || SOFTWARE.test([vendor, architecture, device, description].join(" "));
}
