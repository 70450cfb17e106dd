// What the pages of the three demos share: the worker, the progress of the download, and where the model runs.

import { Client } from "./client.mjs";
import { note, told as nameOf } from "./devices.mjs";
import { download } from "./download.mjs";
import { keepForOffline } from "./offline.mjs";

export const $ = (id) => document.getElementById(id);
const main = document.querySelector("main");
const DEVICES = { webgpu: "wgpu", wasm: "wasm" };
const HALF = 4e6; // bytes after which the bar is half full where nobody knows how many there are

const duration = (ms) => (ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`);
const size = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
export const say = (text) => ($("status").textContent = text);

export class Demo {
  // device: what to take unless the address says "#device=…"; undefined is what is fastest here.
  constructor(name, device) {
    this.name = name;
    this.device = new URLSearchParams(location.hash.slice(1)).get("device") ?? device;
    this.began = performance.now();
    $("retry").onclick = () => location.reload();
  }

  // Resolves when the model can run. A failure is shown, and rejects.
  async load() {
    main.dataset.state = "loading";
    say("Loading the model …");
    this.client = new Client("demo_worker.mjs", (progress) => this.#progress(progress));
    await this.shown(this.client.call("load", { name: this.name, device: this.device }));
    if (main.dataset.state === "loading") main.dataset.state = "ready";
    $("startup").textContent = duration(performance.now() - this.began);
  }

  // What a command of the worker answers; how long the model took is shown.
  async call(name, argument, transfer) {
    const answer = await this.shown(this.client.call(name, argument, transfer));
    const { ms, device, reason, adapter } = answer.told;
    const kind = DEVICES[device];
    $("adapter").textContent = nameOf(kind, adapter);
    $("note").textContent = this.device ? "" : note(reason[0]?.toUpperCase() + reason.slice(1), kind);
    $("note").hidden = this.device || !reason;
    $("time").textContent = duration(ms);
    if (!this.answered) {
      this.answered = true;
      performance.mark("first answer");
      keepForOffline();
    }
    return answer;
  }

  // What a JSON file of the demo holds, and when the model can run.
  async with(file) {
    const held = download(`demos/${file}`).then((response) => response.json());
    const [found] = await Promise.all([this.shown(held), this.load()]);
    return found;
  }

  // A promise whose failure the page tells, the first one.
  async shown(promise) {
    try {
      return await promise;
    } catch (error) {
      if (main.dataset.state === "error") throw error;
      main.dataset.state = "error";
      $("error").hidden = false;
      const missing = /404/.test(error.message) ? " This copy of the page was built without the models of its demos." : "";
      $("error-text").textContent = `The demo cannot run here: ${error.message}.${missing}`.replace(/\.\./, ".");
      say("");
      throw error;
    }
  }

  #progress({ loaded, total }) {
    if (main.dataset.state === "error") return;
    const done = (100 * loaded) / (total ?? loaded + HALF);
    $("progress").style.setProperty("--done", `${done}%`);
    if (total) $("progress").setAttribute("aria-valuenow", Math.round(done));
    say(`Loading the model: ${size(loaded)}${total ? ` of ${size(total)}` : ""}`);
  }
}

// A list of { text, share }, each with a bar, the best first.
export function rank(list, found) {
  list.replaceChildren(
    ...found.map(({ text, share }, i) => {
      const item = document.createElement("li");
      if (!i) item.className = "best";
      const [name, number, bar] = ["span", "span", "i"].map((kind) => document.createElement(kind));
      name.textContent = text;
      number.textContent = percent(share);
      number.className = "share";
      bar.style.setProperty("--share", Math.max(0, share));
      item.append(name, number, bar);
      return item;
    }),
  );
}
