// To run before a page: its software adapter passes for a GPU. Its devices are listed in `devices`, to be destroyed, and
// refused while `refused` is true.
for (const name of ["vendor", "architecture", "device", "description"]) {
  const { get } = Object.getOwnPropertyDescriptor(GPUAdapterInfo.prototype, name);
  Object.defineProperty(GPUAdapterInfo.prototype, name, {
    get() {
      return get.call(this).replace(/swiftshader/i, "painted");
    },
  });
}
Object.defineProperty(GPUAdapterInfo.prototype, "isFallbackAdapter", { get: () => false });
const { requestDevice } = GPUAdapter.prototype;
globalThis.devices = [];
GPUAdapter.prototype.requestDevice = async function (wanted) {
  if (globalThis.refused) throw new Error("the driver is blocked");
  const device = await requestDevice.call(this, wanted);
  devices.push(device);
  return device;
};
