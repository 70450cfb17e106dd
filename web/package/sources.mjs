// Opens the source of a plan: an address, the browser's Cache, or the caller's bytes.

import { Arriving, header } from "./arriving.mjs";
import { download } from "./download.mjs";
import { Kept } from "./kept.mjs";
import { kindOf, refusal, wrongSource } from "./kinds.mjs";

// { name, header, arriving, keeping, key } of a plan whose header has arrived; { name, compiled } of a WebAssembly module,
// its bytes. keeping: also gets the rest as it
// arrives, or null. key: that of a plan from the Cache, which is deleted if it is damaged.
// source: an address (string, URL, Request), an ArrayBuffer, a view of one, a Blob, a Response or a ReadableStream.
export async function open(source, { cache = true, signal, fetcher = globalThis.fetch } = {}) {
  const wrong = wrongSource(source);
  if (wrong) throw new TypeError(wrong);
  const given = await streamOf(source);
  if (given) return begun(source?.name ?? "plan", given);
  const url = new URL(source.url ?? source, globalThis.document?.baseURI ?? globalThis.location?.href).href;
  const name = url.split(/[?#]/)[0].split("/").pop() || url;
  const kept = cache && url.startsWith("http") ? await Kept.open() : null;
  const last = await kept?.last(url);
  const options = { signal };
  if (last && (await kept.find(last.key))) {
    // Request only the header. A server without range requests sends everything; the download is then aborted.
    const range = { ...options, headers: { Range: `bytes=0-${last.length - 1}` } };
    try {
      const response = await download(source, { options: range, fetcher });
      const found = await begun(name, response.body);
      const cached = await again(kept, url, found);
      if (cached) return cached;
      if (response.status !== 206) return keep(kept, url, found);
      found.arriving.cancel();
    } catch (error) {
      if (!error.unreachable) throw error;
      return { ...(await begun(name, (await kept.find(last.key)).body)), key: last.key };
    }
  }
  const found = await begun(name, (await download(source, { options, fetcher })).body);
  return (kept && (await again(kept, url, found))) ?? keep(kept, url, found);
}

async function keep(kept, url, found) {
  if (!kept || found.compiled) return found;
  const keeping = kept.write(url, await Kept.keyOf(found.header), found.header.length);
  await keeping.write(found.header);
  return { ...found, keeping };
}

// The plan with this header from the Cache, if it is there; the download is then aborted.
async function again(kept, url, found) {
  if (found.compiled) return found;
  const key = await Kept.keyOf(found.header);
  const cached = await kept.find(key);
  if (!cached) return null;
  found.arriving.cancel();
  await kept.remember(url, key, found.header.length);
  return { ...(await begun(found.name, cached.body)), key };
}

async function begun(name, stream) {
  const arriving = new Arriving(stream);
  try {
    const start = await header(arriving);
    const kind = kindOf(start);
    if (kind === "wasm") return { name, compiled: await arriving.whole(start) };
    if (kind !== "plan") {
      arriving.cancel();
      throw new Error(refusal(name, kind));
    }
    return { name, header: start, arriving, keeping: null, key: null };
  } catch (error) {
    throw error.damaged ? new Error(`${name}: ${error.message}`, { cause: error }) : error;
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
