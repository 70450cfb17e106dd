// Trains in a worker: MicroPython runs training.py, which trains on the GPU.

import { download } from "./download.mjs";
import { readable, start } from "./emberlet/interpreter.mjs";

const FILES = ["step.plan", "network.plan", "digits.json"];
const bytesAt = async (name) => new Uint8Array(await (await download(new URL(name, import.meta.url).href)).arrayBuffer());

let python = null;

async function asked(call) {
  await python.runPythonAsync(`answer = json.dumps(await training.${call})`);
  return JSON.parse(python.globals.get("answer"));
}

const commands = {
  async begin() {
    if (!navigator.gpu) throw new Error("this browser has no WebGPU");
    const files = FILES.map((name) => bytesAt(`training/${name}`));
    const code = bytesAt("model/training.py");
    python = await start(bytesAt("packages/emberlet.json").then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
    python.FS.mkdirTree("/data");
    for (const [i, name] of FILES.entries()) python.FS.writeFile(`/data/${name}`, await files[i]);
    python.FS.writeFile("/lib/training.py", await code);
    python.runPython("import json, training");
    return asked('begin("/data")');
  },

  async epoch() {
    const began = performance.now();
    return { ...(await asked("epoch()")), ms: performance.now() - began };
  },

  async weights() {
    await asked('save("/data/trained.bpk")');
    return python.FS.readFile("/data/trained.bpk");
  },
};

globalThis.onmessage = async ({ data: { id, name, argument } }) => {
  try {
    postMessage({ id, value: await commands[name](argument) });
  } catch (error) {
    postMessage({ id, error: readable(error) });
  }
};
