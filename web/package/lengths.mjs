// What a session is compiled for: the sizes of its first runs, then ranges of the sizes that go on changing.

const FIXED = 2; // combinations of sizes that are compiled for themselves
const LEAST = 32; // of the upper end of a range: memory is reserved for it

export class Lengths {
  #last = null; // sizes of the run before, by name
  #fixed = new Set(); // JSON of sizes that are compiled for themselves
  #open = []; // sizes and ranges by name: { length: [1, 64], batch: 1 }
  #closed = false; // whether the compiler has refused a range

  /** What to compile for a run with these sizes: a number or a range [lowest, highest] for each name; `sizes` itself if
   * there is no range. Runs that share a model get equal objects. */
  of(sizes) {
    const last = this.#last;
    this.#last = sizes;
    const found = this.#open.find((one) => serves(one, sizes));
    if (found) return found;
    const key = JSON.stringify(sizes);
    const open = this.#fixed.has(key) || this.#closed || this.#fixed.size < FIXED ? null : opened(sizes, last);
    if (!open || !serves(open, sizes)) {
      this.#fixed.add(key);
      return sizes;
    }
    this.#open.push(open);
    return open;
  }

  /** Whether these are ranges that `of` gave; it gives none from now on. */
  refused(sizes) {
    const open = this.#open.includes(sizes);
    this.#closed ||= open;
    this.#open = this.#open.filter((one) => one !== sizes);
    return open;
  }
}

const parts = (name) => name.split(" + ");
const isNumber = (word) => /^[0-9]+$/.test(word);

// The sizes that differ from those of the run before as ranges. A sum of others, such as "past + new", follows from them.
function opened(sizes, last) {
  const open = {};
  for (const [name, size] of Object.entries(sizes)) {
    if (parts(name).length > 1 && parts(name).every((part) => part in sizes || isNumber(part))) continue;
    const before = last?.[name] ?? size;
    const highest = Math.max(LEAST, 2 ** Math.ceil(Math.log2(Math.max(size, before, 1))));
    open[name] = size === before ? size : [Math.min(size, before) && 1, highest];
  }
  return open;
}

// A name that the ranges leave out is a sum.
function serves(open, sizes) {
  return Object.entries(sizes).every(([name, size]) => {
    const limits = open[name];
    if (limits === undefined) return size === parts(name).reduce((sum, part) => sum + (isNumber(part) ? Number(part) : sizes[part]), 0);
    return typeof limits === "number" ? limits === size : limits[0] <= size && size <= limits[1];
  });
}
