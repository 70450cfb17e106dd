// The open sizes of a WebAssembly module: what a call's inputs say about them, and the numbers that follow from them.
// As wgpu_backend/plan/open_ports.py writes them: a number that depends on sizes is a list of terms,
// [[coefficient, atom, ...], ...]; an atom is a symbol's number, or ["//" or "max", number, number].

import { EmberletError, EmberletRangeError } from "./errors.mjs";

export class OpenSizes {
  #atoms;
  #block;
  #guards;
  #symbols;

  constructor({ symbols, atoms, block, guards }) {
    this.#symbols = symbols.map(([name, low, high]) => ({ name, low, high }));
    this.#atoms = atoms;
    this.#block = block;
    this.#guards = guards;
  }

  /** { name: [lowest, highest] }. */
  get ranges() {
    return Object.fromEntries(this.#symbols.map(({ name, low, high }) => [name, [low, high]]));
  }

  /** The value of a number, given those of the atoms. */
  at(number, values) {
    if (typeof number === "number") return number;
    return number.reduce((sum, [c, ...atoms]) => sum + atoms.reduce((product, a) => product * values[a], c), 0);
  }

  /** The words that kernels read. */
  block(values) {
    return this.#block.map((number) => this.at(number, values));
  }

  /** A number in words: "past + 1". */
  text(number) {
    if (typeof number === "number") return number;
    const named = (a) => this.#symbols[this.#atoms[a]]?.name ?? "…";
    const terms = [...number].sort((a, b) => b.length - a.length);
    return terms.map(([c, ...atoms]) => [...(c === 1 && atoms.length ? [] : [c]), ...atoms.map(named)].join(" * ")).join(" + ");
  }

  /** The values of the atoms for a call. inputs: { name, lengths } of each; given: its array, which may have a shape.
   * Throws an Error if they do not fit. */
  of(inputs, given) {
    const equations = inputs.flatMap(({ name, lengths }, i) => {
      const { shape, length } = given[i];
      if (shape?.length !== lengths.length) return [{ name, lengths, wanted: length }];
      if (shape.reduce((product, n) => product * n, 1) !== length) {
        throw new EmberletError(`the input "${name}" has ${length} values, and its shape is ${shape.join("×")}`);
      }
      return lengths.map((one, axis) => ({ name, lengths: [one], wanted: shape[axis] }));
    });
    const known = this.#solved(equations);
    const missing = this.#symbols.find((_, i) => known[i] === undefined);
    if (missing) throw new EmberletError(`the inputs do not tell "${missing.name}": give each array its shape, Object.assign(values, { shape })`);
    const wrong = this.#symbols.findIndex(({ low, high }, i) => !(known[i] >= low && known[i] <= high));
    if (wrong >= 0) throw new EmberletRangeError(this.#outside(wrong, known[wrong]));
    const values = this.#values(known);
    for (const [number, relation, answer, why = ""] of this.#guards) {
      const value = this.at(number, values);
      if ((relation === "<" ? value < 0 : value === 0) !== answer) {
        const sizes = [...this.#symbolsOf([number])].sort((a, b) => a - b).map((i) => `${this.#symbols[i].name} ${known[i]}`);
        const told = `the model was compiled for other sizes than ${sizes.join(", ")}${why && `: ${why} took two of its lengths as equal`}`;
        throw Object.assign(new EmberletRangeError(told), { otherSizes: true });
      }
    }
    for (const { name, lengths, wanted } of equations) {
      if (this.#product(lengths, values) === wanted) continue;
      const sizes = this.#symbols.map((symbol, i) => `${symbol.name} is ${known[i]}`).join(" and ");
      throw new EmberletError(`the input "${name}" takes ${this.#product(lengths, values)} where ${sizes}; found: ${wanted}`);
    }
    return values;
  }

  #outside(symbol, found) {
    const { name, low, high } = this.#symbols[symbol];
    return `${name} is ${found}; the model takes ${low} to ${high}`;
  }

  #values(sizes) {
    const values = [];
    for (const atom of this.#atoms) {
      if (typeof atom === "number") values.push(sizes[atom] ?? 0);
      else {
        const [a, b] = atom.slice(1).map((number) => this.at(number, values));
        values.push(atom[0] === "max" ? Math.max(a, b) : b ? Math.floor(a / b) : 0);
      }
    }
    return values;
  }

  #product(lengths, values) {
    return lengths.reduce((product, one) => product * this.at(one, values), 1);
  }

  // The values of the symbols, as far as equations of one unknown symbol each tell them.
  #solved(equations) {
    const known = [];
    for (let left = equations, before = Infinity; left.length < before; ) {
      before = left.length;
      left = left.filter(({ lengths, wanted }) => {
        const unknown = [...this.#symbolsOf(lengths)].filter((i) => known[i] === undefined);
        if (unknown.length === 1) known[unknown[0]] = this.#root(lengths, wanted, known, unknown[0]);
        return unknown.length > 1;
      });
    }
    return known;
  }

  #symbolsOf(numbers, found = new Set()) {
    for (const number of numbers) {
      for (const a of typeof number === "number" ? [] : number.flatMap(([, ...atoms]) => atoms)) {
        const atom = this.#atoms[a];
        if (typeof atom === "number") found.add(atom);
        else this.#symbolsOf(atom.slice(1), found);
      }
    }
    return found;
  }

  // The value of a symbol for which lengths, which grow with it, multiply to `wanted`, or the nearest.
  #root(lengths, wanted, known, symbol) {
    const product = (n) => this.#product(lengths, this.#values(Object.assign([...known], { [symbol]: n })));
    let { low, high } = this.#symbols[symbol];
    if (lengths.length === 1 && product(high) < wanted) return wanted - product(0); // to name it in the error
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (product(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
