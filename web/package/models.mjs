// The compiled models of a session, of which it keeps the newest.

const KEPT = 8;

export class Models {
  #kept = new Map(); // key -> { model: a Promise, runs: a Promise that all runs have ended }, the newest last

  /** What job(model) resolves to, for the model of this key; compile() makes it where it is not kept. */
  use(key, compile, job) {
    const one = this.#kept.get(key) ?? this.#compiled(key, compile);
    this.#kept.delete(key);
    this.#kept.set(key, one);
    const run = one.model.then(job);
    one.runs = Promise.allSettled([one.runs, run]);
    if (this.#kept.size > KEPT) this.#dropped(this.#kept.keys().next().value);
    return run;
  }

  /** Release all models, each after its runs. */
  async release() {
    await Promise.all([...this.#kept.keys()].map((key) => this.#dropped(key)));
  }

  #compiled(key, compile) {
    const one = { model: compile(), runs: null };
    one.model.catch(() => this.#kept.get(key) === one && this.#kept.delete(key));
    return one;
  }

  async #dropped(key) {
    const one = this.#kept.get(key);
    this.#kept.delete(key);
    await one.runs;
    await one.model.then((model) => model.release()).catch(() => {});
  }
}
