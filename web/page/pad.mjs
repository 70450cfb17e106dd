// The drawing pad: mouse, pen and finger draw by pointer events, and the keyboard moves a pen.

const LINE = 0.075; // of the pad's width
const STEP = 0.04; // of the pad's width, an arrow key's

export class Pad {
  // drawn(strokes) after every change; example(digit) when a digit key is pressed.
  constructor(canvas, { drawn, example }) {
    this.canvas = canvas;
    this.drawn = drawn;
    this.example = example;
    this.strokes = []; // lists of [x, y], in parts of the pad's width
    this.pixels = null; // of an example, when one is shown
    this.stroke = null; // the one that is being drawn
    this.pointer = null; // the finger, pen or mouse that draws it
    this.pen = [0.5, 0.3]; // the keyboard's
    this.lowered = false;
    this.keyboard = false; // whether it was the last to draw
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.#up(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["focus", "blur"]) canvas.addEventListener(name, () => this.#paint());
    new ResizeObserver(() => this.#paint()).observe(canvas);
  }

  clear() {
    [this.strokes, this.pixels, this.stroke, this.lowered] = [[], null, null, false];
    this.#changed();
  }

  // Show 64 numbers of 0 to 16 in place of a drawing.
  show(pixels) {
    [this.strokes, this.pixels, this.stroke, this.lowered] = [[], pixels, null, false];
    this.#paint();
  }

  #down(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    if (this.pointer !== null) return; // a second finger does not draw
    this.pointer = event.pointerId;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.keyboard = false;
    this.canvas.dataset.pointer = "";
    this.#begin(this.#at(event));
  }

  #move(event) {
    if (!this.stroke || this.keyboard || event.pointerId !== this.pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) this.stroke.push(this.#at(each));
    this.#changed();
  }

  #up(event) {
    if (event.pointerId !== this.pointer) return;
    this.pointer = this.stroke = null;
  }

  #begin(point) {
    if (this.pixels) this.pixels = null;
    this.stroke = [point];
    this.strokes.push(this.stroke);
    this.#changed();
  }

  #at({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return [(clientX - left) / width, (clientY - top) / height];
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    delete this.canvas.dataset.pointer;
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (move) {
      this.keyboard = true;
      this.pen = this.pen.map((part, axis) => Math.min(0.96, Math.max(0.04, part + STEP * move[axis])));
      if (this.lowered) {
        this.stroke.push(this.pen);
        this.#changed();
      } else this.#paint();
    } else if (event.key === " ") {
      this.keyboard = true;
      this.lowered = !this.lowered;
      if (this.lowered) this.#begin(this.pen);
      else this.stroke = null;
      this.#paint();
    } else if (event.key === "Escape") this.clear();
    else if (/^\d$/.test(event.key)) this.example(Number(event.key));
    else return;
    event.preventDefault();
  }

  #changed() {
    this.#paint();
    this.drawn(this.strokes);
  }

  #paint() {
    const { canvas } = this;
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (canvas.width !== side) canvas.width = canvas.height = side;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, side, side);
    if (this.pixels) this.#paintPixels(context, side / 8);
    context.lineCap = context.lineJoin = "round";
    context.lineWidth = LINE * side;
    context.strokeStyle = "#fff3e6";
    for (const stroke of this.strokes) {
      context.beginPath();
      for (const [x, y] of stroke) context.lineTo(x * side, y * side);
      if (stroke.length === 1) context.lineTo(stroke[0][0] * side, stroke[0][1] * side);
      context.stroke();
    }
    if (this.keyboard && document.activeElement === canvas) {
      context.beginPath();
      context.arc(this.pen[0] * side, this.pen[1] * side, (LINE * side) / 2, 0, 2 * Math.PI);
      context.lineWidth = 2 * devicePixelRatio;
      context.strokeStyle = this.lowered ? "#fb8a4a" : "#b0a69b";
      context.stroke();
    }
  }

  #paintPixels(context, size) {
    this.pixels.forEach((value, i) => {
      context.fillStyle = `rgb(255 243 230 / ${value / 16})`;
      context.fillRect((i % 8) * size, Math.floor(i / 8) * size, size + 0.5, size + 0.5);
    });
  }
}
