// Does a job of classify.py in MicroPython's Wasm build, in Node and in a tab alike.

// files: path -> bytes or text, to be there; job: the path of the job; path: where imports are looked for.
// Resolves to the answer as JSON. Each image is a call of its own: only between calls does this build collect garbage.
export async function classify(loadMicroPython, files, job, path, await_) {
  const mp = await loadMicroPython({ heapsize: 64 * 1024 });
  for (const [name, content] of Object.entries(files)) {
    mp.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")) || "/");
    mp.FS.writeFile(name, content);
  }
  mp.runPython(`
import json, sys
sys.path[:] = ${JSON.stringify(path)}
import classify
with open(${JSON.stringify(job)}) as file:
    run = classify.Run(json.load(file))
count = len(run.images)
`);
  for (let i = 0; i < mp.globals.get("count"); i++) {
    if (await_) await mp.runPythonAsync("await run.step_async()");
    else mp.runPython("run.step()");
  }
  mp.runPython("answer = run.answer()");
  return mp.globals.get("answer");
}
