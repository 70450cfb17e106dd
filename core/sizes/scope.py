"""Scope: the symbols of one plan, and the answers that it assumes about them."""

from .. import shapes
from .arithmetic import content, divided, indivisible, leading, plus, scaled, times
from .questions import assume_equal
from .size import Size, SizeNeeded, is_open, terms_of

HIGHEST = 1 << 20  # the default upper bound of a symbol
_FAR = 1 << 62  # bounds beyond this count as none


class Scope:
    """The symbols of one plan with their ranges, and the guards noted so far.

    atoms: list of names of symbols, ("//", dividend, divisor) and ("max", a, b); ranges: (lowest, highest) of each;
    guards: list of (Size, relation, answer, why), relation "<" or "==" against 0; why: the function that assumes the
    answer, or "" where the code asks for it.
    """

    def __init__(self):
        self.atoms = []
        self.ranges = []
        self.typical = []
        self.current = None  # name of a symbol -> its value in the call for which the plan is made
        self.guards = []
        self.block = []  # the Sizes that kernels read, in the order of the size block
        self._places = {}
        self._numbers = {}
        self._atoms = {}
        self._bounds = {}
        self._answers = {}
        shapes.compare_open = assume_equal

    def symbol(self, name, lowest, highest, typical, step=1):
        """The Size of a new symbol in [lowest, highest]; free choices are made for the value `typical`. step: the value
        is `lowest` plus a multiple of step, which a guard checks, so that index arithmetic knows the factor."""
        symbol = self.atom(name, lowest, highest, typical)
        if step == 1:
            return symbol
        steps = self.atom(("//", symbol, step), lowest // step, highest // step, typical // step)
        out = steps * step + lowest % step
        self.guards.append((symbol - out, "==", True, ""))
        return out

    def atom(self, what, lowest, highest, typical):
        """The Size of an atom in [lowest, highest], which is added unless it is known."""
        key = what if type(what) is str else tuple([("n", w.number) if is_open(w) else w for w in what])
        at = self._atoms.get(key)
        if at is None:
            at = self._atoms[key] = len(self.atoms)
            self.atoms.append(what)
            self.ranges.append((lowest, highest))
            self.typical.append(typical)
        return Size(self, {(at,): 1})

    def number(self, terms):
        """The id of a polynomial; equal polynomials share one."""
        key = tuple(sorted(terms.items()))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers)
        return found

    def place(self, number):
        """The position in the size block of the polynomial with this id."""
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = len(self.block)
            self.block.append(self.size(number))
        return found

    def size(self, number):
        """The Size with this id."""
        for terms, known in self._numbers.items():
            if known == number:
                return Size(self, dict(terms))

    def bounds(self, x):
        """(lowest, highest) bounds of a Size, which need not be tight."""
        found = self._bounds.get(x.number)
        if found is None:
            found = self._bounds[x.number] = (self._lowest(x.terms), -self._lowest(scaled(x.terms, -1)))
        return found

    def _lowest(self, terms):
        # With every atom written as its lower bound plus an excess, products of two large factors, such
        # as (n - 1) * m, keep their sign.
        shifted = {(): 0}
        for atoms, c in terms.items():
            product = {(): c}
            for a in atoms:
                product = times(product, {(): self.ranges[a][0], (a,): 1})
            shifted = plus(shifted, product)
        total = shifted.pop((), 0)
        for atoms, c in shifted.items():
            if c < 0:
                most = 1
                for a in atoms:
                    most *= self.ranges[a][1] - self.ranges[a][0]
                total += c * most
        return max(total, -_FAR)

    def decide(self, x, relation, assumed=None, why=""):
        """Whether x < 0 (relation "<") or x == 0 ("=="). Noted as a guard if both are possible. assumed: for a
        comparison whose answer "no" is right for all values, where it need not be noted: whether to give that answer
        ("always", or "usually": for typical values that differ); why: the function that assumes the answer."""
        if relation == "==":
            x = _primitive(x)
        low, high = self.bounds(x)
        if relation == "<":
            if high < 0 or low >= 0:
                return high < 0
        elif low > 0 or high < 0 or indivisible(x.terms):
            return False
        key = (x.number, relation)
        if key not in self._answers:
            value = x.at(self.typical)
            if assumed == "always" or (assumed == "usually" and value):
                return False
            self._answers[key] = value < 0 if relation == "<" else value == 0
            self.guards.append((x, relation, self._answers[key], why))
        return self._answers[key]

    def need(self, x, what):
        """Raise SizeNeeded for the symbols of x."""
        error = SizeNeeded("{} of the open size {!r} is needed while the plan is made".format(what, x))
        error.symbols = x.symbols()
        raise error


def _primitive(x):
    """x without its common factors (numbers and symbols that are never 0), with the same sign for x and -x."""
    found = content(x.terms)
    for a in min(x.terms, key=len):
        if x.scope.ranges[a][0] > 0 and all(a in atoms for atoms in x.terms):
            found = found * Size(x.scope, {(a,): 1})
    if x.terms[leading(x.terms)] < 0:
        found = -found
    return Size(x.scope, divided(x.terms, terms_of(found))[0])
