"""The numbers of a plan that depend on its open sizes, evaluated on the host at each call.

Like everything a saved plan needs, this runs under CPython, Pyodide and MicroPython.
"""


class Count:
    """A polynomial: terms, a list of [coefficient, atom, atom, …]; most: its upper bound."""

    def __init__(self, terms, most):
        self.terms = terms
        self.most = most

    def at(self, values):
        """Its value, given those of the atoms."""
        total = 0
        for term in self.terms:
            product = term[0]
            for i in range(1, len(term)):
                product *= values[term[i]]
            total += product
        return total


def at(n, values):
    """The value of a number or a Count."""
    return n if type(n) is int else n.at(values)


class Counts:
    """The open sizes of a plan.

    symbols: list of (name, lowest, highest); atoms: the factors of Counts: the symbols' numbers and ("//" or "max",
    Count, Count) of earlier ones; block: numbers and Counts that kernels read, in their order; guards: list of (Count,
    relation, answer, why): the plan serves sizes for which `count < 0` or `count == 0` is `answer`, as the function
    called `why` assumed.
    """

    def __init__(self, symbols, atoms, block, guards):
        self.symbols = symbols
        self.atoms = atoms
        self.block = block
        self.guards = guards
        self._last = (None, None)

    def values(self, sizes):
        """The values of the atoms, given those of the symbols in their order, a tuple."""
        last = self._last
        if last[0] == sizes:
            return last[1]
        out = []
        for atom in self.atoms:
            if type(atom) is int:
                out.append(sizes[atom])
            elif atom[0] == "//":
                divisor = at(atom[2], out)
                out.append(at(atom[1], out) // divisor if divisor else 0)
            else:
                out.append(max(at(atom[1], out), at(atom[2], out)))
        self._last = (sizes, out)
        return out

    def refusal(self, sizes, values):
        """The reason why the plan does not serve these sizes; None if it does."""
        for i in range(len(self.symbols)):
            name, low, high = self.symbols[i]
            if not low <= sizes[i] <= high:
                return "{} is {}; the plan takes {} to {}".format(name, sizes[i], low, high)
        for count, relation, answer, why in self.guards:
            value = count.at(values)
            if (value < 0 if relation == "<" else value == 0) != answer:
                named = ["{} {}".format(self.symbols[i][0], sizes[i]) for i in range(len(sizes))]
                said = ": {} took two of its lengths as equal".format(why) if why else ""
                return "the plan is for other sizes than {}{}".format(", ".join(named), said)
        return None


def counts_of(plan, scope):
    """Replace every Size of a plan by a Count, and set `plan.counts` to the Scope's Counts."""
    symbols = []
    atoms = []
    for i in range(len(scope.atoms)):
        what = scope.atoms[i]
        if what[0] == "symbol":
            atoms.append(len(symbols))
            symbols.append((what[1],) + scope.ranges[i])
        else:
            atoms.append((what[0], count(what[1]), count(what[2])))
    for buffer in plan.buffers:
        buffer.nbytes = count(buffer.nbytes)
    for step in plan.steps:
        step.groups = tuple([count(n) for n in step.groups])
    guards = [(count(x), relation, answer, why) for x, relation, answer, why in scope.guards]
    plan.counts = Counts(symbols, atoms, [count(x) for x in scope.block], guards)


def count(n):
    """A Size as a Count; a number as it is."""
    if type(n) is int:
        return n
    return Count([[n.terms[atoms]] + list(atoms) for atoms in n.terms], n.scope.bounds(n)[1])
