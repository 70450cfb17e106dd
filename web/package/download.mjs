// Downloads that always end: with the bytes, or with an Error of one sentence.

import { EmberletError } from "./errors.mjs";

const SILENCE = 30000; // ms without a byte before a download is aborted

// Fetch a file as a Response whose body fails, instead of waiting for ever, if nothing arrives for a while.
// counted(bytes) is told of each part; `fetcher` is the fetch to use. Where no server answers at all, the Error is
// `unreachable`.
export async function download(resource, { options = {}, counted = () => {}, fetcher = fetch, silence = SILENCE } = {}) {
  const url = String(resource.url ?? resource);
  const abort = new AbortController();
  const late = () => abort.abort(new EmberletError(`could not download ${url}: nothing arrived for ${silence / 1000} seconds`));
  let timer = setTimeout(late, silence);
  const given = () => abort.abort(new EmberletError(`the download of ${url} was aborted`, { cause: options.signal.reason }));
  if (options.signal?.aborted) given();
  options.signal?.addEventListener("abort", given, { once: true });
  const ended = () => {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", given);
  };
  let response;
  try {
    response = await fetcher(resource, { ...options, signal: abort.signal });
  } catch (error) {
    ended();
    if (abort.signal.aborted) throw abort.signal.reason;
    throw Object.assign(new EmberletError(`could not download ${url}: ${error.message}`), { unreachable: true });
  }
  const refuse = (why) => {
    ended();
    abort.abort();
    throw new EmberletError(`could not download ${url}: ${why}`);
  };
  if (!response.ok) refuse(`the server answered ${response.status}`);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/html")) refuse("the server answered with a web page; is the path right?");
  if (!response.body) {
    ended();
    return response;
  }
  const watched = new TransformStream({
    transform: (chunk, controller) => {
      clearTimeout(timer);
      timer = setTimeout(late, silence);
      counted(chunk.length);
      controller.enqueue(chunk);
    },
    flush: ended,
    cancel: ended,
  });
  const { status, headers } = response;
  return new Response(response.body.pipeThrough(watched, { signal: abort.signal }), { status, headers });
}
