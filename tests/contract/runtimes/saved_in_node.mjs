// Runs compiled models (.wasm) with the package's own loader: node saved_in_node.mjs WASM.MJS
// Each line of the input is a job of tests/contract/runtimes/__init__.py, each line of the output its answer.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { load } = await import(pathToFileURL(process.argv[2]).href);
const models = new Map();

async function answer({ key, file, inputs }) {
  if (file) {
    const model = await load(new Uint8Array(Buffer.from(file, "base64")));
    models.set(key, model);
    return {};
  }
  const model = models.get(key);
  const given = model.inputs.map(({ name, array }, i) => {
    const bytes = Uint8Array.from(Buffer.from(inputs[i].data, "base64"));
    return [name, new array(bytes.buffer)];
  });
  const found = await model.run(Object.fromEntries(given));
  for (const [, array] of given) array.fill(array instanceof BigInt64Array || array instanceof BigUint64Array ? 113n : 113);
  const outputs = model.outputs.map(({ name, dtype, shape }) => {
    const { buffer, byteOffset, byteLength } = found[name];
    return { dtype, shape, data: Buffer.from(buffer, byteOffset, byteLength).toString("base64") };
  });
  return { outputs };
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  let found;
  try {
    found = await answer(job);
  } catch (error) {
    found = { error: error.constructor.name, words: error.message };
  }
  console.log(JSON.stringify({ ...found, number: job.number }));
}
