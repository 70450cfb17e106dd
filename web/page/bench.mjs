// The benchmark: engines take turns, each in a worker. Lost and failed rows stay in the table and in the file.

import { Client } from "./client.mjs";

const $ = (id) => document.getElementById(id);
const ENGINES = ["emberlet", "onnxruntime-web", "jax-js"];
const WORKS = [
  { name: "digits", plan: "examples/digits.plan", model: "examples/digits.onnx", names: ["image"], shapes: { image: [1, 1, 8, 8] } },
  ...[128, 512].map((n) => ({
    name: `matmul ${n}`,
    plan: `bench/matmul${n}.plan`,
    model: "matmul.onnx",
    names: ["p", "q"],
    shapes: { p: [n, n], q: [n, n] },
  })),
];
const [ROUNDS, CALLS] = [4, 5];
const LIMIT = 120000; // ms for an engine to start or to measure

const result = { made: null, adapter: null, browser: navigator.userAgent, rows: [] };
$("calls").textContent = ROUNDS * CALLS;

const adapter = await Promise.resolve(navigator.gpu?.requestAdapter()).catch(() => null);
if (adapter) {
  const { vendor, architecture, device, description } = adapter.info;
  result.adapter = [vendor, architecture, device, description].filter(Boolean).join(" ") || "a GPU that tells no name";
}
$("adapter").textContent = result.adapter ?? "no WebGPU: this browser offers no GPU to the page";
$("start").disabled = !adapter;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${LIMIT / 1000} s`)), LIMIT);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function measure(work) {
  const values = Object.fromEntries(
    work.names.map((name) => {
      const size = work.shapes[name].reduce((a, b) => a * b, 1);
      return [name, Float32Array.from({ length: size }, () => Math.random() - 0.5)];
    }),
  );
  const rows = [];
  for (const engine of ENGINES) {
    const client = new Client("bench_worker.mjs");
    const row = { work: work.name, engine, client, times: [] };
    rows.push(row);
    $("status").textContent = `${work.name}: starting ${engine} …`;
    try {
      Object.assign(row, await within(client.call("prepare", { engine, work, values })));
    } catch (error) {
      row.error = error.message;
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const row of rows.filter(({ error }) => !error)) {
      $("status").textContent = `${work.name}: ${row.engine}, round ${round + 1} of ${ROUNDS}`;
      try {
        row.times.push(...(await within(row.client.call("measure", { calls: CALLS }))));
      } catch (error) {
        row.error = error.message;
      }
    }
  }
  const own = rows[0];
  for (const row of rows) {
    row.client.end();
    if (row.result && own.result) {
      row.difference = row.result.reduce((most, value, i) => Math.max(most, Math.abs(value - own.result[i])), 0);
    }
  }
  return rows.map(({ engine, error, start, times, difference }) => ({
    work: work.name,
    engine,
    error: error ?? null,
    start_ms: start ?? null,
    best_ms: times.length ? Math.min(...times) : null,
    median_ms: times.length ? median(times) : null,
    largest_difference: difference ?? null,
    times_ms: times,
  }));
}

function show(rows) {
  const own = rows[0].best_ms;
  for (const row of rows) {
    const line = $("rows").tBodies[0].insertRow();
    const cell = (text) => (line.insertCell().textContent = text);
    cell(row.work);
    cell(row.engine);
    if (row.error) {
      const told = line.insertCell();
      told.colSpan = 4;
      told.textContent = row.error;
      continue;
    }
    for (const ms of [row.start_ms, row.best_ms, row.median_ms]) cell(ms.toPrecision(3));
    cell(row === rows[0] || !own ? "" : `${(row.best_ms / own).toFixed(2)} × its time`);
  }
}

$("start").onclick = async () => {
  $("start").disabled = true;
  $("rows").tBodies[0].replaceChildren();
  result.rows = [];
  result.made = new Date().toISOString();
  document.querySelector("main").dataset.state = "running";
  for (const work of WORKS) {
    const rows = await measure(work);
    result.rows.push(...rows);
    show(rows);
  }
  $("status").textContent = "Done.";
  $("start").disabled = false;
  $("save").disabled = false;
  document.querySelector("main").dataset.state = "done";
};

$("save").onclick = () => {
  const url = URL.createObjectURL(new Blob([JSON.stringify(result, null, 1)], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: "emberlet-benchmark.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
