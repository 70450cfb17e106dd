// What this browser offers for WebGPU: a GPU, or software that acts as one. Models run faster in WebAssembly than on
// the latter, and start many times sooner.

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|warp\b/i;

const requested = async () =>
  (await Promise.resolve(globalThis.navigator?.gpu?.requestAdapter({ powerPreference: "high-performance" })).catch(() => null)) ?? null;

// What the browser says of its GPU, to know it again; "" without one.
export async function adapterName() {
  const { vendor, architecture, device, description } = (await requested())?.info ?? {};
  return [vendor, architecture, device, description].filter(Boolean).join(" ");
}

// For which classes of devices a plan is made here (wgpu_backend/plan/writer.py).
export async function classesHere() {
  const adapter = await requested();
  return adapter && isSoftware(adapter) ? ["software", "subgroups"] : ["gpu"];
}

// Why WebGPU is not the fastest way to run a model here, or "" where it is.
export async function whyNoGpu() {
  if (!globalThis.navigator?.gpu) return "this browser has no WebGPU";
  const adapter = await requested();
  if (!adapter) return "this browser has WebGPU, but offers no GPU to it";
  return isSoftware(adapter) ? "this browser's WebGPU runs in software, without a GPU" : "";
}

// Whether an adapter is a program that runs on the CPU.
export function isSoftware(adapter) {
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info ?? {};
  const fallback = isFallbackAdapter ?? adapter.isFallbackAdapter;
  return Boolean(fallback) || SOFTWARE.test([vendor, architecture, device, description].join(" "));
}
