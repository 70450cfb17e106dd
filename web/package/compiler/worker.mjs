// Compiles ONNX files and Python modules in a worker: emberlet's compiler under Pyodide, with nothing fetched from
// elsewhere. Takes { early }, to start before there is a job; { id, files, kind, dim, freeze, relaxed, classes }, to compile; and
// { id, files, kind: "steps", session, feeds }, to run a model operation by operation. Answers { ready } once Python has
// started, { id, counted } for each part that is downloaded, and { id, value } or { id, error } for each job.

import { lockFileContents } from "./lock.mjs"; // the build writes it: which Python this Pyodide is

// One by one, as bundlers find them; they may give each file another name.
const PYODIDE = new URL("./pyodide.mjs", import.meta.url).href;
const MODULE = new URL("./pyodide.asm.mjs", import.meta.url).href;
const WASM = new URL("./pyodide.asm.wasm", import.meta.url).href;
const LIBRARY = new URL("./python_stdlib.zip", import.meta.url).href;
const IMAGE = new URL("./compiler.bin", import.meta.url).href; // of Python's memory with the compiler (web/image.mjs)

const fetchAny = globalThis.fetch.bind(globalThis);
let python = null;
let current = 0; // the job that downloads are counted for

// What Pyodide asks for by itself: its Wasm, which is compiled while Python's memory arrives, and Python's library, which
// is in that memory as far as the compiler needs it.
let compiled = null;
let FS = null;
globalThis.fetch = async (resource, options) => {
  const name = String(resource.url ?? resource).split("/").pop();
  return name === "pyodide.asm.wasm" || name === "python_stdlib.zip" ? new Response() : counted(resource, options);
};
WebAssembly.instantiateStreaming = async (_, imports) => {
  const module = await compiled;
  return { module, instance: await WebAssembly.instantiate(module, imports) };
};

// Called by emberlet_compile.py, which cannot wait: the rest of the library.
globalThis.fetchLibrary = () => {
  const request = new XMLHttpRequest();
  request.open("GET", LIBRARY, false);
  request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw new Error(`could not download ${LIBRARY}: the server answered ${request.status}`);
  FS.writeFile("/lib/python314.zip", new Uint8Array(request.response));
};

async function counted(resource, options) {
  const url = String(resource.url ?? resource);
  let response;
  try {
    response = await fetchAny(resource, options);
  } catch (error) {
    throw new Error(`could not download ${url}: ${error.message}`, { cause: error });
  }
  if (!response.ok) throw new Error(`could not download ${url}: the server answered ${response.status}`);
  const watched = new TransformStream({
    transform: (chunk, controller) => {
      postMessage({ id: current, counted: chunk.length });
      controller.enqueue(chunk);
    },
  });
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(watched), { status, headers });
}

async function start() {
  // webpack makes this a classic worker. Pyodide tells one by importScripts and refuses it, although it can import modules.
  globalThis.importScripts = () => {
    throw new TypeError("this worker imports modules");
  };
  const wasm = counted(WASM).then((response) => [response.clone(), response]);
  compiled = WebAssembly.compileStreaming(wasm.then(([response]) => response));
  const first = wasm.then(([, response]) => response.arrayBuffer());
  let image = Promise.all([counted(IMAGE), first]).then(unpacked); // 60 MB, which are let go once they are in place
  for (const early of [compiled, image]) early.catch(() => {}); // told where they are awaited
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all([
    import(/* @vite-ignore */ /* webpackIgnore: true */ PYODIDE),
    import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
  ]);
  const indexURL = new URL("./", import.meta.url).href;
  const loading = loadPyodide({
    indexURL,
    createPyodideModule: async (settings) => {
      const module = await createPyodideModule(settings);
      module.growMemory((await image).memory.length);
      return module;
    },
    lockFileContents,
    packageBaseUrl: indexURL,
    _loadSnapshot: image.then(({ memory }) => memory),
    fsInit: async (fs, { sitePackages }) => {
      FS = fs;
      for (const [name, content] of (await image).files) {
        FS.mkdirTree(`${sitePackages}/${name}`.replace(/\/[^/]*$/, ""));
        FS.writeFile(`${sitePackages}/${name}`, content);
      }
    },
  });
  const pyodide = await Promise.race([loading, compiled.then(() => loading)]); // it would wait for what fails to arrive
  image = null;
  delete pyodide._api.config._loadSnapshot; // Pyodide would keep the image, too
  postMessage({ ready: true });
  return pyodide;
}

// { files: [[name, content]], memory } of compiler.bin (web/compiler_image.py).
async function unpacked([{ body }, wasm]) {
  const bytes = await new Response(body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const start = 4 + new DataView(bytes).getUint32(0, true);
  const lengths = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, start - 4)));
  let at = start;
  const files = Object.entries(lengths).map(([name, length]) => [name, new Uint8Array(bytes, (at += length) - length, length)]);
  const memory = new Uint8Array(bytes.slice(at));
  addInitial(memory, new Uint8Array(wasm));
  return { files, memory };
}

// Exclusive or, in place, what the memory of a WebAssembly module begins with. Pyodide has a header before its pages.
function addInitial(memory, wasm) {
  const header = memory.length % 65536;
  let at = 8;
  const there = (end) => {
    if (end > wasm.length) throw new Error(`${WASM} is not a complete WebAssembly module; reload the page`);
  };
  const number = () => {
    let out = 0;
    for (let scale = 1; ; scale *= 128) {
      there(at + 1);
      const byte = wasm[at++];
      out += (byte & 127) * scale;
      if (byte < 128) return out;
    }
  };
  for (;;) {
    const kind = wasm[at++]; // past the end, number() throws
    const length = number();
    if (kind === 11) break;
    at += length;
  }
  for (let left = number(); left > 0; left--) {
    at += 2; // an active segment, i32.const
    let to = header + number();
    at += 1; // end
    const end = number() + at;
    there(end);
    while (at < end) memory[to++] ^= wasm[at++];
  }
}

async function started() {
  python ??= start();
  try {
    return await python;
  } catch (error) {
    python = null; // the next job tries again
    throw error;
  }
}

async function compile({ files, kind, dim, freeze, relaxed, classes }) {
  const pyodide = await started();
  pyodide.FS.mkdirTree("/models");
  const [paths, out] = [files.map(({ name }) => `/models/${name}`), `/models/compiled.${kind}`];
  for (const [i, { bytes }] of files.entries()) pyodide.FS.writeFile(paths[i], bytes);
  try {
    const told = JSON.parse(pyodide.pyimport("emberlet_compile").compile(paths[0], out, JSON.stringify({ dim, freeze, relaxed, classes })));
    if (told.error) throw Object.assign(new Error(told.error), told);
    return { ...told, bytes: pyodide.FS.readFile(out) };
  } finally {
    for (const path of [...paths, out]) if (pyodide.FS.analyzePath(path).exists) pyodide.FS.unlink(path);
  }
}

// Run a model operation by operation: { outputs }, or {} where the session is not open and the file has no bytes.
async function steps({ files: [{ name, bytes }], session, feeds }) {
  const pyodide = await started();
  const module = pyodide.pyimport("emberlet_compile");
  const path = `/models/${name}`;
  pyodide.FS.mkdirTree("/models");
  if (bytes) pyodide.FS.writeFile(path, bytes);
  try {
    const found = module.steps(session, bytes ? path : "", pyodide.toPy(feeds));
    const told = found.toJs({ dict_converter: Object.fromEntries });
    found.destroy();
    if (told.error) throw Object.assign(new Error(told.error), told);
    return told;
  } finally {
    if (bytes) pyodide.FS.unlink(path);
  }
}

let last = Promise.resolve();

globalThis.onmessage = ({ data }) => {
  if (data.early) {
    started().catch(() => {});
    return;
  }
  last = last.then(async () => {
    current = data.id;
    try {
      const value = await (data.kind === "steps" ? steps(data) : compile(data));
      postMessage({ id: data.id, value }, value.bytes ? [value.bytes.buffer] : []);
    } catch (error) {
      postMessage({ id: data.id, error: { message: error.message, details: error.details ?? error.stack, branchesOn: error.branchesOn } });
    }
  });
};
