// Which device runs a model faster here, by runs of both on zeros; remembered beside what was compiled, for later visits.

const RUNS = 3; // the first compiles and warms up

// "webgpu" or "wasm"; throws where the models do not run on zeros.
export async function faster(gpu, wasm) {
  const theirs = await quickest(gpu, Infinity);
  return (await quickest(wasm, theirs)) < theirs ? "wasm" : "webgpu";
}

// The least ms of some runs; it stops after one that takes several times `limit`.
async function quickest(model, limit) {
  const given = Object.fromEntries(model.inputs.map(({ name, array, length }) => [name, new array(length)]));
  let least = Infinity;
  for (let i = 0, took = 0; i < RUNS && took <= 4 * limit; i++) {
    const begun = performance.now();
    await model.run(given);
    took = performance.now() - begun;
    if (i || took > 4 * limit) least = Math.min(least, took);
  }
  return least;
}
