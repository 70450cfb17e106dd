"""Numbers as polynomials in the indices of an element and in sizes, and bools as comparisons of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from emberlet.sizes import arithmetic

from ...ir.sizes import terms
from ...ir.types import Dim, Shape
from ...records import dataclass

Factor = int | str
"""An index, by its axis, or a size, by its name."""
Monomial = tuple[Factor, ...]


def _order(f: Factor) -> tuple[bool, str]:
    return isinstance(f, str), str(f)


@dataclass(frozen=True)
class Number:
    """A sum of products with their coefficients, in a fixed order."""

    parts: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def made(found: Mapping[Monomial, int]) -> Number:
        kept = [(m, n) for m, n in found.items() if n]
        return Number(tuple(sorted(kept, key=lambda p: [*map(_order, p[0])])))

    def __add__(self, other: Number) -> Number:
        return Number.made(arithmetic.plus(dict(self.parts), dict(other.parts)))

    def __sub__(self, other: Number) -> Number:
        return self + other.scaled(-1)

    def __mul__(self, other: Number) -> Number:
        return Number.made(arithmetic.times(dict(self.parts), dict(other.parts), _order))

    def scaled(self, k: int) -> Number:
        return Number.made(arithmetic.scaled(dict(self.parts), k))

    def at(self, places: Sequence[Number]) -> Number:
        """The number with its indices replaced by other numbers."""
        out = ZERO
        for m, n in self.parts:
            product = constant(n)
            for f in m:
                product = product * (places[f] if isinstance(f, int) else Number((((f,), 1),)))
            out = out + product
        return out

    @property
    def value(self) -> int | None:
        """Its value, if it is constant."""
        return 0 if not self.parts else self.parts[0][1] if len(self.parts) == 1 and not self.parts[0][0] else None

    @property
    def axes(self) -> set[int]:
        return {f for m, _ in self.parts for f in m if isinstance(f, int)}


def constant(n: int) -> Number:
    return Number((((), n),)) if n else Number(())


ZERO = constant(0)


def index(axis: int) -> Number:
    return Number((((axis,), 1),))


def size(d: Dim) -> Number | None:
    """A dimension as a number."""
    found = terms(d)
    return None if found is None else Number.made({(*names,): n for names, n in found.items()})


def times(n: Number, factors: Monomial) -> Number:
    """The coefficient of a product in a number: the terms that contain these factors, divided by them."""
    found: Counter[Monomial] = Counter()
    for m, k in n.parts:
        rest = arithmetic.without(m, factors)
        if rest is not None:
            found[rest] += k
    return Number.made(found)


@dataclass(frozen=True)
class Part:
    """The quotient or remainder of a number by a size: an index of a flattened axis."""

    number: Number
    divisor: Number
    remainder: bool


@dataclass(frozen=True)
class Element:
    """An element of a bool tensor that is known only at run time."""

    name: str
    places: tuple[Number | Part, ...]


@dataclass(frozen=True)
class Compared:
    """number >= 0, or number == 0."""

    number: Number
    equal: bool


@dataclass(frozen=True)
class All:
    """Whether all hold."""

    items: frozenset[Truth]


@dataclass(frozen=True)
class Negated:
    item: Truth


Truth = bool | Element | Compared | All | Negated
Term = Number | Truth


def conjunction(a: Truth, b: Truth) -> Truth:
    if a is False or b is False:
        return False
    if a is True or b is True:
        return b if a is True else a
    items = [*(a.items if isinstance(a, All) else (a,)), *(b.items if isinstance(b, All) else (b,))]
    return All(frozenset(items)) if len(set(items)) > 1 else a


def negated(a: Truth) -> Truth:
    if isinstance(a, bool):
        return not a
    if isinstance(a, Negated):
        return a.item
    if isinstance(a, Compared) and not a.equal:  # not n >= 0 is -n - 1 >= 0
        return Compared(a.number.scaled(-1) - constant(1), False)
    return Negated(a)


class Bounds:
    """The bounds of numbers that are indices into this shape. Its sizes are at least 1, since a tensor of size 0 has no
    elements to be wrong about. Other sizes may be 0, such as the length of a cache."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def never_negative(self, n: Number) -> bool:
        """Whether a number is certain to be at least 0."""
        for axis in sorted(n.axes):
            rest: Counter[Monomial] = Counter()
            falling: Counter[Monomial] = Counter()
            for m, k in n.parts:
                if axis not in m:
                    rest[m] += k
                elif k < 0:
                    falling[tuple(f for f in m if f != axis)] += k
                if m.count(axis) > 1:
                    return False
            whole = size(self.shape[axis]) if axis < len(self.shape) else None
            if falling and whole is None:
                return False
            n = Number.made(rest)
            if falling and whole is not None:
                n = n + Number.made(falling) * (whole - constant(1))
        least = 0
        for m, k in n.parts:
            if m and k < 0:
                return False
            least += k if all(f in self.shape for f in m) else 0
        return least >= 0

    def settled(self, t: Truth) -> Truth:
        """A comparison, simplified to a bool if it is always or never true."""
        if isinstance(t, Compared):
            n = t.number
            if t.equal:
                if n.value is not None:
                    return n.value == 0
                never = self.never_negative(n - constant(1)) or self.never_negative(n.scaled(-1) - constant(1))
                return False if never else t
            if self.never_negative(n):
                return True
            return False if self.never_negative(n.scaled(-1) - constant(1)) else t
        if isinstance(t, All):
            out: Truth = True
            for item in sorted(t.items, key=repr):
                out = conjunction(out, self.settled(item))
            return out
        return negated(self.settled(t.item)) if isinstance(t, Negated) else t

    def part(self, p: Part) -> Number | Part:
        """A quotient or remainder, simplified to a Number if possible."""
        value = p.divisor.value
        if value is not None:
            wholes = [Number.made(Counter({m: n // value for m, n in p.number.parts if n % value == 0}))]
        else:
            wholes = [times(p.number, m) for m, n in p.divisor.parts if m and n == 1]
        for whole in wholes:
            rest = p.number - whole * p.divisor
            if self.never_negative(rest) and self.never_negative(p.divisor - constant(1) - rest):
                return rest if p.remainder else whole
        return p


def placed(t: Term, places: Sequence[Number], shape: Shape) -> Term:
    """A term with index i replaced by places[i], whose own indices are those of a tensor of this shape."""
    bounds = Bounds(shape)
    if isinstance(t, Number):
        return t.at(places)
    match t:
        case Element(name, own):
            made: list[Number | Part] = []
            for p in own:
                if isinstance(p, Part):
                    made.append(bounds.part(Part(p.number.at(places), p.divisor, p.remainder)))
                else:
                    made.append(p.at(places))
            return Element(name, tuple(made))
        case Compared(number, equal):
            return bounds.settled(Compared(number.at(places), equal))
        case All(items):
            out: Truth = True
            for item in sorted(items, key=repr):
                moved = placed(item, places, shape)
                assert not isinstance(moved, Number)
                out = conjunction(out, moved)
            return out
        case Negated(item):
            moved = placed(item, places, shape)
            assert not isinstance(moved, Number)
            return negated(moved)
        case _:
            return t
