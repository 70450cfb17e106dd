// The page of training: starts the worker, asks it for one epoch after the other, and draws two curves.

import { Client } from "./client.mjs";

const EPOCHS = 20;
const $ = (id) => document.getElementById(id);
const main = document.querySelector("main");
const percentage = (share) => `${(100 * share).toFixed(1)} %`;
const duration = (ms) => (ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`);

let worker = null;
let stopped = false;

function draw(id, values, most, told) {
  const at = (value, i) => `${(60 + (330 * i) / (EPOCHS - 1)).toFixed(1)},${(150 - (140 * value) / most).toFixed(1)}`;
  const points = values.map(at);
  const [x, y] = (points.at(-1) ?? "0,0").split(",");
  $(id).innerHTML = `<line x1="60" x2="390" y1="150" y2="150" /><line x1="60" x2="390" y1="10" y2="10" />
    <text x="52" y="14">${told(most)}</text><text x="52" y="154">${told(0)}</text>
    <polyline points="${points.join(" ")}" />${points.length ? `<circle cx="${x}" cy="${y}" r="4" />` : ""}`;
  if (values.length) $(id).setAttribute("aria-label", `By epoch; the last of ${values.length}: ${told(values.at(-1))}`);
}

async function train() {
  [stopped, main.dataset.state] = [false, "running"];
  $("start").disabled = $("save").disabled = true;
  $("status").textContent = "Loading MicroPython and opening the GPU …";
  const [losses, accuracies] = [[], []];
  worker?.end();
  worker = new Client("train_worker.mjs");
  const { adapter } = await worker.call("begin");
  $("adapter").textContent = adapter;
  $("stop").disabled = false;
  while (losses.length < EPOCHS && !stopped) {
    const { loss, accuracy, ms } = await worker.call("epoch");
    losses.push(loss);
    accuracies.push(accuracy);
    $("epoch").textContent = `${losses.length} of ${EPOCHS}`;
    $("accuracy").textContent = percentage(accuracy);
    $("time").textContent = duration(ms);
    $("status").textContent = `Loss ${loss.toFixed(3)}`;
    draw("loss", losses, Math.max(...losses), (value) => value.toFixed(2));
    draw("right", accuracies, 1, percentage);
  }
  $("status").textContent = `${stopped ? "Stopped" : "Done"} after ${losses.length} epochs: it reads ${percentage(accuracies.at(-1) ?? 0)}.`;
}

$("start").onclick = async () => {
  try {
    await train();
    main.dataset.state = "done";
    $("save").disabled = false;
  } catch (error) {
    main.dataset.state = "error";
    $("status").textContent = `It cannot train here: ${error.message}`;
    console.error(error.details ?? error);
  }
  $("start").disabled = false;
  $("stop").disabled = true;
  $("start").textContent = "Train anew";
};

$("stop").onclick = () => (stopped = true);

$("save").onclick = async () => {
  const url = URL.createObjectURL(new Blob([await worker.call("weights")]));
  Object.assign(document.createElement("a"), { href: url, download: "digits.bpk" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
