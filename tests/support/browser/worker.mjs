// Loads Pyodide with emberlet and wgpu-py and runs one piece of Python; the value of its last line goes back as JSON.
import { loadPyodide } from "/pyodide/pyodide.mjs";

globalThis.onmessage = async ({ data: code }) => {
  try {
    const pyodide = await loadPyodide({ indexURL: "/pyodide/" });
    for (const name of ["emberlet.zip", "wgpu.zip"]) {
      const response = await fetch(`/packages/${name}`);
      pyodide.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/lib/python3.14/site-packages" });
    }
    const value = await pyodide.runPythonAsync(code);
    postMessage({ value: value?.toJs ? value.toJs() : value });
  } catch (error) {
    postMessage({ error: String(error.stack ?? error) });
  }
};
