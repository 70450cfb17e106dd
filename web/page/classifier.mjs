// A model that MicroPython runs: Python code that defines `logits` and tells a version.

export async function classifier(mp, code) {
  const shared = (globalThis.emberlet = {});
  await mp.runPythonAsync(`import js, jsffi${code}`);
  return {
    version: shared.version,
    adapter: null,
    classify: async (pixels) => {
      shared.pixels = pixels;
      await mp.runPythonAsync("js.emberlet.logits = jsffi.to_js(logits(js.emberlet.pixels))");
      return shared.logits;
    },
  };
}
