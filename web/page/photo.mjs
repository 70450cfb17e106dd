// The demo with photographs: a picture that the visitor chooses, drops or takes is named by its class.

import { $, Demo, percent, rank, say } from "./demo.mjs";

const SIDE = 224; // pixels of the picture that the model sees
const SHOWN = 5; // classes
const demo = new Demo("photo");
const canvas = $("view");
const camera = $("camera");
let classes = [];
let asked = 0; // the number of the last picture that was asked for
let shown = 0; // that of the picture in view
let asking = false; // for the camera

// Shows a picture, a Blob or a video, and what the model says of it, unless a later one is in view.
async function see(source, about, mine = ++asked) {
  const tell = (text) => mine === asked && say(text);
  let whole;
  try {
    whole = await createImageBitmap(source);
  } catch {
    return tell("This file is not a picture that the browser can read. Choose a JPEG, PNG or WebP file.");
  }
  if (mine < shown) return whole.close();
  shown = mine;
  const side = Math.min(whole.width, whole.height);
  const [left, top] = [(whole.width - side) / 2, (whole.height - side) / 2];
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(whole, left, top, side, side, 0, 0, canvas.width, canvas.height);
  canvas.setAttribute("aria-label", about);
  const small = { resizeWidth: SIDE, resizeHeight: SIDE, resizeQuality: "high" };
  const bitmap = await createImageBitmap(whole, Math.floor(left), Math.floor(top), side, side, small);
  whole.close();
  await ready;
  if (mine !== shown) return;
  tell("Looking …");
  const { shares } = await demo.call("see", bitmap, [bitmap]);
  if (mine !== shown) return;
  const best = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, SHOWN);
  rank($("ranking"), best.map((i) => ({ text: classes[i], share: shares[i] })));
  const [first] = best;
  $("answer").innerHTML = "<b></b> <span></span>";
  $("answer").firstChild.textContent = classes[first];
  $("answer").lastChild.textContent = shares[first] < 0.3 ? `perhaps: ${percent(shares[first])} sure` : `${percent(shares[first])} sure`;
  tell("Done.");
}

async function example({ dataset: { file, about } }) {
  const mine = ++asked;
  const response = await fetch(`demos/${file}`);
  if (response.ok) return see(await response.blob(), about, mine);
  if (mine === asked) say("The example could not be loaded. Choose a photograph of your own.");
}

function endCamera() {
  for (const track of camera.srcObject?.getTracks() ?? []) track.stop();
  camera.srcObject = null;
  camera.hidden = true;
  canvas.hidden = false;
  $("shoot").textContent = "Camera";
}

// The button keeps its focus while permission is asked.
function waiting(yes) {
  asking = yes;
  $("shoot").ariaDisabled = String(yes);
}

async function shoot() {
  if (asking) return;
  if (camera.srcObject) {
    const seen = see(camera, "A picture of the camera");
    await seen.finally(endCamera);
    return;
  }
  const before = asked;
  waiting(true);
  try {
    if (!navigator.mediaDevices) throw new Error("the browser gives no camera to this page");
    camera.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    await camera.play();
  } catch (error) {
    endCamera();
    if (before === asked) say(`The camera cannot be used: ${error.message}. Choose a photograph instead.`);
    return;
  } finally {
    waiting(false);
  }
  if (before !== asked) return endCamera(); // a picture has been chosen meanwhile
  camera.hidden = false;
  canvas.hidden = true;
  $("shoot").textContent = "Take it";
}

function chosen(file) {
  if (!file) return;
  endCamera();
  handled(see(file, `Your photograph, ${file.name}`));
}

const handled = (promise) => promise.catch((error) => console.info(error.details ?? error.message));

const ready = demo.with("classes.json").then((found) => (classes = found));
handled(ready);
$("file").onchange = ({ target }) => chosen(target.files[0]);
$("shoot").onclick = () => handled(shoot());
for (const button of document.querySelectorAll("[data-file]")) {
  button.onclick = () => {
    endCamera();
    handled(example(button));
  };
}
for (const kind of ["dragover", "dragleave", "drop"]) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") chosen(event.dataTransfer.files[0]);
  });
}
handled(example(document.querySelector("[data-file]")));
