// Stores the site for use without a network. A file is stored under the hash of its content, which the build writes
// here. A new version of the site downloads only what changed and is used from the next visit on.

const FILES = {};
const NAME = "emberlet-page";
const LARGE = /^(pyodide|peers)\/|\.zip$/; // stored on first use, since not every visitor needs it

const pathOf = (url) => {
  const path = new URL(url).pathname.slice(new URL("./", location.href).pathname.length);
  return path === "" || path.endsWith("/") ? `${path}index.html` : path;
};
const keyOf = (path) => `${path}?content=${FILES[path]}`;

async function fetched(path) {
  // Bypass the browser's own cache, which may hold another version.
  const response = await fetch(path, { cache: "no-cache" });
  if (!response.ok) throw new Error(`${path}: the server answered ${response.status}`);
  return response;
}

async function install() {
  const cache = await caches.open(NAME);
  const wanted = Object.keys(FILES).filter((path) => !LARGE.test(path));
  await Promise.all(
    wanted.map(async (path) => {
      if (!(await cache.match(keyOf(path)))) await cache.put(keyOf(path), await fetched(path));
    }),
  );
}

async function activate() {
  const cache = await caches.open(NAME);
  const current = new Set(Object.keys(FILES).map((path) => new URL(keyOf(path), location.href).href));
  for (const request of await cache.keys()) if (!current.has(request.url)) await cache.delete(request);
  await clients.claim();
}

async function answer(request, path) {
  const cache = await caches.open(NAME);
  const kept = await cache.match(keyOf(path));
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) await cache.put(keyOf(path), response.clone());
  return response;
}

addEventListener("install", (event) => event.waitUntil(install().then(() => skipWaiting())));
addEventListener("activate", (event) => event.waitUntil(activate()));
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(new URL("./", location.href).href)) return;
  const path = pathOf(request.url);
  if (path in FILES) event.respondWith(answer(request, path));
});
