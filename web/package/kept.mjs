// Stores models in the browser's Cache by content, so that a model is downloaded once, even if its address changes.
//
// A plan's header has the checksums of all its weights, so the header's SHA-256 identifies the content. For each
// address the last plan is recorded: later visits download only the header, and use the stored plan without a network.
// A WebAssembly module, an ONNX file, a Python module and its weights are each identified by the SHA-256 of all their bytes,
// and stored with what was compiled from them; later visits ask the server for the file's date or tag only.

const NAME = "emberlet-plans";
const KEYS = "https://emberlet.invalid/"; // never fetched; keys of a Cache must be URLs

export class Kept {
  #cache;

  // The browser's Cache, or null if it has none, as in a sandboxed frame.
  static async open() {
    try {
      return new Kept(await caches.open(NAME));
    } catch {
      return null;
    }
  }

  constructor(cache) {
    this.#cache = cache;
  }

  static async keyOf(header) {
    const hash = await crypto.subtle.digest("SHA-256", header);
    return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  // { key, length } of an address's last plan: the header's hash and its length in bytes.
  async last(url) {
    return (await (await this.#cache.match(address(url)))?.json().catch(() => null)) ?? null;
  }

  // The plan's bytes as a Response, or undefined.
  find(key) {
    return this.#cache.match(`${KEYS}plan/${key}`);
  }

  // An object with write(part), for the plan's bytes as they arrive, and close() or abort(). Without close() nothing is
  // kept; with a full disk nothing is kept either, and nothing fails.
  write(url, key, length) {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    writer.closed.catch(() => {});
    const stored = this.#cache.put(`${KEYS}plan/${key}`, new Response(readable));
    let failed = false;
    stored.catch(() => (failed = true));
    const unlessFailed = async (action) => {
      // If the Cache is full, nothing reads the stream, and waiting for it would never end.
      if (!failed) await Promise.race([action().catch(() => {}), stored.catch(() => {})]);
    };
    return {
      write: (part) => unlessFailed(() => writer.write(part)),
      abort: () => void writer.abort().catch(() => {}),
      close: () =>
        writer
          .close()
          .then(() => stored)
          .then(() => this.remember(url, key, length))
          .catch(() => {}),
    };
  }

  // Record that the address leads to this plan.
  remember(url, key, length) {
    return this.#lead(url, { key, length });
  }

  // A file's bytes, and what is compiled from it: a Response, or undefined.
  read(path) {
    return this.#cache.match(`${KEYS}${path}`);
  }

  // With a full disk nothing is kept, and nothing fails.
  async store(path, bytes, headers) {
    await this.#cache.put(`${KEYS}${path}`, new Response(bytes, { headers })).catch(() => {});
  }

  // Whether anything is kept that begins with `prefix`.
  async has(prefix) {
    return (await this.#cache.keys()).some(({ url }) => url.startsWith(`${KEYS}${prefix}`));
  }

  // Delete what begins with `prefix` but not with `kept`.
  async drop(prefix, kept) {
    for (const { url } of await this.#cache.keys()) {
      if (url.startsWith(`${KEYS}${prefix}`) && !url.startsWith(`${KEYS}${kept}`)) await this.#cache.delete(url);
    }
  }

  // Record that the address leads to this file. tag: what the server says of it, to ask later whether it changed.
  rememberFile(url, model, tag) {
    return this.#lead(url, { model, tag });
  }

  async forget(path) {
    await this.#cache.delete(`${KEYS}${path}`);
  }

  // Record what the address leads to; delete what it led to before unless another address leads to it. With a full disk
  // nothing changes.
  async #lead(url, found) {
    const before = await this.last(url);
    try {
      await this.#cache.put(address(url), Response.json(found));
    } catch {
      return;
    }
    for (const [kind, folder] of [["key", "plan"], ["model", "onnx"]]) {
      const old = before?.[kind];
      if (old && old !== found[kind] && !(await this.#isUsed(kind, old))) await this.forget(`${folder}/${old}`);
    }
  }

  async #isUsed(kind, value) {
    for (const request of await this.#cache.keys()) {
      if (!request.url.startsWith(`${KEYS}address/`)) continue;
      const other = await (await this.#cache.match(request))?.json().catch(() => null);
      if (other?.[kind] === value) return true;
    }
    return false;
  }
}

const address = (url) => `${KEYS}address/${encodeURIComponent(url)}`;
