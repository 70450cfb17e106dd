"""The numbers of a plan that depend on its open sizes, evaluated on the host at each call.

Like everything a saved plan needs, this runs under CPython, Pyodide and MicroPython.
"""

from emberlet.errors import BackendError
from emberlet.sizes.polynomial import Polynomial, at, atom_values, broken

from ..run import storage


class Counts:
    """The open sizes of a plan.

    symbols: list of (name, lowest, highest); atoms: the factors of Polynomials: the symbols' numbers and ("//" or
    "max", number, number) of earlier ones; block: numbers and Polynomials that kernels read, in their order; guards:
    list of (Polynomial, relation, answer, why): the plan serves sizes for which `polynomial < 0` or `polynomial == 0`
    is `answer`, as the function called `why` assumed.
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
        out = atom_values(self.atoms, sizes)
        self._last = (sizes, out)
        return out

    def words(self, values):
        """The block as words, four or a multiple of that."""
        words = [at(n, values) & 0xFFFFFFFF for n in self.block]
        while len(words) % 4 or not words:
            words.append(0)
        return storage.unsigned(words)

    def largest(self):
        """The values of the atoms at the largest sizes."""
        return self.values(tuple([high for _, _, high in self.symbols]))

    def grown(self, capacity, sizes):
        """The capacity, a value of each symbol, at least doubled where it is less than these sizes."""
        out = []
        for i in range(len(sizes)):
            most = capacity[i]
            if sizes[i] > most:
                most = min(max(2 * most, sizes[i]), self.symbols[i][2])
            out.append(most)
        return tuple(out)

    def refusal(self, sizes, values):
        """The reason why the plan does not serve these sizes; None if it does."""
        for i in range(len(self.symbols)):
            name, low, high = self.symbols[i]
            if not low <= sizes[i] <= high:
                return "{} is {}; the plan takes {} to {}".format(name, sizes[i], low, high)
        guard = broken(self.guards, values)
        if guard is None:
            return None
        named = ["{} {}".format(self.symbols[i][0], sizes[i]) for i in self.depends(guard[0])]
        told = ": {} took two of its lengths as equal".format(guard[3]) if guard[3] else ""
        return "the plan is for other sizes than {}{}".format(", ".join(named), told)

    def served(self, sizes):
        """The values of the atoms for sizes. Raises BackendError if the plan does not serve them."""
        values = self.values(sizes)
        refusal = self.refusal(sizes, values)
        if refusal:
            raise BackendError(refusal)
        return values

    def depends(self, number):
        """The positions of the symbols that a number or a Polynomial depends on, in their order."""
        found = []
        seen = {}
        stack = [number]
        while stack:
            n = stack.pop()
            for atoms in () if type(n) is int else n.terms:
                for a in atoms:
                    if a in seen:
                        continue
                    seen[a] = True
                    atom = self.atoms[a]
                    if type(atom) is int:
                        found.append(atom)
                    else:
                        stack.extend(atom[1:])
        return sorted(found)


def counts_of(plan, scope):
    """Replace every Size of a plan by a Polynomial, and set `plan.counts` to the Scope's Counts."""
    symbols = []
    atoms = []
    for i in range(len(scope.atoms)):
        what = scope.atoms[i]
        if type(what) is str:
            atoms.append(len(symbols))
            symbols.append((what,) + scope.ranges[i])
        else:
            atoms.append((what[0], count(what[1]), count(what[2])))
    for buffer in plan.buffers:
        buffer.nbytes = count(buffer.nbytes)
    for step in plan.steps:
        step.groups = tuple([count(n) for n in step.groups])
    guards = [(count(x), relation, answer, why) for x, relation, answer, why in scope.guards]
    plan.counts = Counts(symbols, atoms, [count(x) for x in scope.block], guards)


def count(n):
    """A Size as a Polynomial; a number as it is."""
    return n if type(n) is int else Polynomial(n.terms)
