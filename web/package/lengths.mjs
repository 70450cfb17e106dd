// What a session is compiled for: the sizes of its first runs, then ranges of the sizes that go on changing.

const FIXED = 2; // combinations of sizes that are compiled for themselves
const LEAST = 32; // of the upper end of a range: memory is reserved for it

export class Lengths {
  #last = null; // sizes of the run before, by name
  #fixed = new Set(); // JSON of sizes that are compiled for themselves
  #open = []; // sizes and ranges by name: { length: [1, 64], batch: 1 }
  #refused = new Set(); // the left-open names of ranges that the compiler has refused, each with its lowest size

  /** What to compile for a run with these sizes: a number or a range [lowest, highest] for each name; `sizes` itself if
   * there is no range. Runs that share a model get equal objects. */
  of(sizes) {
    const last = this.#last;
    this.#last = sizes;
    const key = JSON.stringify(sizes);
    const own = this.#fixed.has(key) || this.#fixed.size < FIXED;
    return this.#served(sizes) ?? (own ? this.#alone(sizes) : this.#ranging(sizes, opened(sizes, last)));
  }

  /** The same after the compiler has refused `range`, which `of` gave for a run with these sizes; overlapping runs may
   * each tell it. */
  instead(range, sizes) {
    this.#refused.add(combination(range));
    this.#open = this.#open.filter((one) => one !== range);
    return this.#served(sizes) ?? this.#ranging(sizes, range);
  }

  #served(sizes) {
    return this.#open.find((one) => serves(one, sizes));
  }

  #alone(sizes) {
    this.#fixed.add(JSON.stringify(sizes));
    return sizes;
  }

  // These ranges, or the same without 0, which not all operations take.
  #ranging(sizes, open) {
    const found = [open, above0(open)].find((one) => ranged(one) && serves(one, sizes) && !this.#refused.has(combination(one)));
    if (!found) return this.#alone(sizes);
    this.#open.push(found);
    return found;
  }
}

/** Whether a size among these is a range. */
export const ranged = (sizes) => Object.values(sizes).some(Array.isArray);

const combination = (open) => JSON.stringify(Object.entries(open).flatMap(([name, limits]) => (Array.isArray(limits) ? [[name, limits[0]]] : [])));
const above0 = (open) => Object.fromEntries(Object.entries(open).map(([name, limits]) => [name, limits[0] === 0 ? [1, limits[1]] : limits]));

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
