// Gives up what starts, such as a Python runtime, where it gives no sign of life for long.

const SILENCE = 120000; // ms in which nothing is downloaded

export class Watch {
  #late;
  #timer = 0;

  // late(why): called once after such a time without a sign.
  constructor(late) {
    this.#late = late;
  }

  /** Begin to watch, or begin anew after a sign of life. */
  sign() {
    this.stop();
    this.#timer = setTimeout(() => this.#late(`gave no sign for ${SILENCE / 60000} minutes; reload the page`), SILENCE);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
