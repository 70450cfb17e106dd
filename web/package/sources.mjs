// Opens the source of a plan: an address, the browser's Cache, or the caller's bytes.

import { Arriving, header } from "./arriving.mjs";
import { download } from "./download.mjs";
import { EmberletError, EmberletTypeError } from "./errors.mjs";
import { Kept } from "./kept.mjs";
import { kindOf, refusal, wrongSource } from "./kinds.mjs";

// { name, header, arriving, keeping, key } of a plan whose header has arrived; { name, compiled } of a WebAssembly module,
// { name, onnx } of an ONNX file and { name, module } of a Python module, their bytes; { name, weights } of any file if
// `weights` is true. url: the address, if it is one. stored: where the Cache has the file, if it comes from there.
// counted(bytes) is told of each part of the file, and expected(bytes) of the whole length of a WebAssembly module where
// the server says it. keeping: also gets the rest as it arrives, or null. key: that of a plan from the Cache, which is
// deleted if it is damaged.
// source: an address (string, URL, Request), an ArrayBuffer, a view of one, a Blob, a Response or a ReadableStream.
export async function open(source, { cache = true, signal, fetcher = globalThis.fetch, counted = () => {}, expected = () => {}, weights = false } = {}) {
  const wrong = wrongSource(source);
  if (wrong) throw new EmberletTypeError(wrong);
  const given = await streamOf(source);
  if (given) return begun(source?.name ?? "the file", given, counted, weights);
  const url = new URL(source.url ?? source, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  const name = url.split(/[?#]/)[0].split("/").pop() || url;
  const kept = cache && url.startsWith("http") ? await Kept.open() : null;
  const last = await kept?.last(url);
  const options = { signal };
  const stored = last?.model && (await kept.read(`onnx/${last.model}`));
  if (stored && (await isUnchanged(source, last.tag, options, fetcher))) {
    return { url, stored: `onnx/${last.model}`, ...(await begun(name, stored.body, undefined, weights)) };
  }
  if (last?.key && !weights && (await kept.find(last.key))) {
    // Request only the header. A server without range requests sends everything; the download is then aborted.
    const range = { ...options, headers: { Range: `bytes=0-${last.length - 1}` } };
    try {
      const response = await download(source, { options: range, fetcher });
      const found = await begun(name, response.body, response.status === 206 ? undefined : counted);
      const cached = found.header && (await again(kept, url, found));
      if (cached) return cached;
      if (response.status !== 206) return keep(kept, url, found);
      found.arriving?.cancel();
    } catch (error) {
      if (!error.unreachable) throw error;
      return { ...(await begun(name, (await kept.find(last.key)).body)), key: last.key };
    }
  }
  const response = await download(source, { options, fetcher });
  const length = response.headers.get("content-encoding") ? 0 : Number(response.headers.get("content-length"));
  const found = { url, ...(await begun(name, response.body, counted, weights, () => length && expected(length))) };
  const kind = ["compiled", "onnx", "module", "weights"].find((one) => found[one]);
  if (kind && kept) {
    const model = await Kept.keyOf(found[kind]);
    await kept.store(`onnx/${model}`, found[kind]);
    await kept.rememberFile(url, model, tagOf(response));
  }
  return (kept && found.header && (await again(kept, url, found))) || keep(kept, url, found);
}

// Whether the server says that a file is what it was; also so if no server answers.
async function isUnchanged(source, tag, options, fetcher) {
  try {
    return Boolean(tag) && tagOf(await download(source, { options: { ...options, method: "HEAD" }, fetcher })) === tag;
  } catch (error) {
    return Boolean(error.unreachable);
  }
}

const tagOf = ({ headers }) => headers.get("etag") ?? headers.get("last-modified");

async function keep(kept, url, found) {
  if (!kept || !found.header) return found;
  const keeping = kept.write(url, await Kept.keyOf(found.header), found.header.length);
  await keeping.write(found.header);
  return { ...found, keeping };
}

// The plan with this header from the Cache, if it is there; the download is then aborted.
async function again(kept, url, found) {
  const key = await Kept.keyOf(found.header);
  const cached = await kept.find(key);
  if (!cached) return null;
  found.arriving.cancel();
  await kept.remember(url, key, found.header.length);
  return { ...(await begun(found.name, cached.body)), key };
}

async function begun(name, stream, counted, weights = false, compiled = () => {}) {
  const arriving = new Arriving(stream);
  try {
    const start = await header(arriving);
    const kind = kindOf(start);
    const part = weights ? "weights" : { wasm: "compiled", onnx: "onnx", module: "module" }[kind];
    if (part) {
      if (part === "compiled") compiled();
      counted?.(start.length);
      return { name, [part]: await arriving.whole(start, counted) };
    }
    if (kind !== "plan") {
      arriving.cancel();
      throw new EmberletError(refusal(name, kind));
    }
    return { name, header: start, arriving, keeping: null, key: null };
  } catch (error) {
    throw error.damaged ? new EmberletError(`${name}: ${error.message}`, { cause: error }) : error;
  }
}

async function streamOf(source) {
  if (source instanceof ReadableStream) return source;
  if (source instanceof Response) return source.body;
  if (source instanceof Blob) return source.stream();
  if (!(source instanceof ArrayBuffer) && !ArrayBuffer.isView(source)) return null;
  const view = ArrayBuffer.isView(source);
  const bytes = new Uint8Array(view ? source.buffer : source, view ? source.byteOffset : 0, source.byteLength).slice();
  return new ReadableStream({
    start: (controller) => {
      if (bytes.length) controller.enqueue(bytes);
      controller.close();
    },
  });
}
