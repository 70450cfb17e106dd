// Starts the worker of the first runtime before the rest of the page has arrived: its downloads take longest.

import { Client } from "./client.mjs";

const asked = new URLSearchParams(location.hash.slice(1));

// A worker's name tells it what to load.
export function nameOf(runtime, device) {
  if (runtime === "pyodide") return runtime;
  return device === "python" ? "micropython python" : "micropython";
}

export function begin(name) {
  return { name, client: new Client("worker.mjs", undefined, name) };
}

export const beginning = begin(nameOf(asked.get("runtime"), asked.get("device")));
