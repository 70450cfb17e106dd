// The devices of this browser, fastest first: a GPU, vectorized WebAssembly, or plain Python.

import { isSoftware } from "./emberlet/adapter.mjs";
import { hasSimd } from "./emberlet/wasm.mjs";

export const NAMES = { wgpu: "WebGPU", wasm: "WebAssembly", python: "plain Python" };

// How the page names the device that runs: the name of the GPU, if it has one.
export const told = (device, adapter) => adapter ?? `the CPU, in ${NAMES[device]}`;

// A sentence: what runs in place of a GPU, and why; "" if a GPU runs. why: from `devices`, or that a device failed.
export function note(why, device) {
  return why && device !== "wgpu" ? `${why}: the CPU runs the model, in ${NAMES[device]}.` : "";
}

// { there: names of devices, why: what is missing, or "" }. A browser may have navigator.gpu but no
// adapter, so an adapter is requested.
export async function devices() {
  const adapter = await Promise.resolve(navigator.gpu?.requestAdapter()).catch(() => null);
  const simd = hasSimd() ? ["wasm"] : [];
  if (adapter && isSoftware(adapter)) {
    const why = "The WebGPU of this browser runs in software, without a GPU";
    return { there: [...simd, "wgpu", "python"], why: simd.length ? why : "" };
  }
  const there = [...(adapter ? ["wgpu"] : []), ...simd, "python"];
  if (adapter) return { there, why: "" };
  const no = navigator.gpu ? "This browser has WebGPU, but offers no GPU to it" : "This browser has no WebGPU";
  const what = there[0] === "wasm" ? "" : ", and its WebAssembly has no SIMD";
  return { there, why: no + what };
}

// Offer the devices in a form whose radio buttons are called "device", and choose the fastest.
export function offer(form, there) {
  for (const input of form.elements.device) {
    input.disabled = !there.includes(input.value);
    input.checked = input.value === there[0];
  }
}
