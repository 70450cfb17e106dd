// The service worker, which keeps the site for when there is no network (service_worker.mjs).

let begun = false;

// Called when the page is ready, so that it does not compete for the network before.
export async function keepForOffline() {
  if (begun || !navigator.serviceWorker) return;
  begun = true;
  try {
    await navigator.serviceWorker.register(new URL("service_worker.mjs", import.meta.url), { type: "module" });
  } catch (error) {
    console.info(`The page is not kept for offline use: ${error.message}`);
  }
}
