// The demo with sentences: those that mean nearly the same as what the visitor types come first.

import { $, Demo, rank, say } from "./demo.mjs";

const SHOWN = 5; // sentences
const TOKENS = 64; // of a sentence, at most
const PAUSE = 150; // ms after a key before the search begins
const demo = new Demo("search");
const vectors = new Map(); // sentence -> its vector
let asked = 0;
let timer;

async function vectorOf(text) {
  if (!vectors.has(text)) vectors.set(text, (await demo.call("embed", { text, most: TOKENS })).vector);
  return vectors.get(text);
}

const lines = () => [...new Set($("texts").value.split("\n").map((line) => line.trim()).filter(Boolean))];
const likeness = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

async function search() {
  const mine = ++asked;
  const [query, texts] = [$("query").value.trim(), lines()];
  await ready;
  for (const [i, text] of texts.entries()) {
    if (mine !== asked) return; // something else has been typed meanwhile
    if (!vectors.has(text)) say(`Reading the sentences: ${i + 1} of ${texts.length}`);
    await vectorOf(text);
  }
  if (mine !== asked) return;
  say(texts.length ? `The closest of ${texts.length} sentences:` : "There are no sentences to search: write some below.");
  if (!query) say("Type what you look for.");
  if (!query || !texts.length) {
    rank($("ranking"), []);
    $("answer").textContent = "Nothing yet";
    return;
  }
  const wanted = await vectorOf(query);
  if (mine !== asked) return;
  const found = texts.map((text) => ({ text, share: likeness(wanted, vectors.get(text)) }));
  found.sort((a, b) => b.share - a.share);
  rank($("ranking"), found.slice(0, SHOWN));
  $("answer").textContent = `Closest: ${found[0].text}`;
}

const handled = (promise) => promise.catch((error) => console.info(error.details ?? error.message));

function later() {
  asked++;
  clearTimeout(timer);
  timer = setTimeout(() => handled(search()), PAUSE);
}

const ready = demo.with("sentences.json").then((found) => ($("texts").value ||= found.join("\n")));
$("query").oninput = $("texts").oninput = later;
for (const button of document.querySelectorAll("#examples button")) {
  button.onclick = () => {
    $("query").value = button.textContent;
    handled(search());
  };
}
$("query").value ||= $("query").placeholder;
handled(ready.then(search));
