// The gallery: a card for each example, which the page of models opens.

import { download } from "./download.mjs";

const cards = document.getElementById("cards");
try {
  const examples = await (await download("gallery.json")).json();
  const demos = [
    { title: "Draw a digit", about: "A digit that you draw is read while you draw it.", href: "index.html" },
    { title: "A photograph", about: "EfficientNet-Lite0 names what your picture shows.", href: "photo.html" },
    { title: "A search among sentences", about: "all-MiniLM-L6-v2 finds the sentences that mean nearly the same.", href: "search.html" },
    { title: "A voice switch", about: "Silero VAD turns a lamp on while somebody speaks.", href: "voice.html" },
  ];
  const all = [...demos, ...examples.map((one) => ({ ...one, href: `model.html#example=${one.file}` }))];
  cards.replaceChildren(
    ...all.map(({ title, about, href }) => {
      const card = document.createElement("section");
      card.className = "card";
      const heading = document.createElement("h2");
      const link = Object.assign(document.createElement("a"), { href, textContent: title });
      heading.append(link);
      card.append(heading, Object.assign(document.createElement("p"), { textContent: about }));
      return card;
    }),
  );
} catch (error) {
  document.getElementById("status").textContent = `The gallery cannot be shown: ${error.message}. Reload it to try again.`;
}
