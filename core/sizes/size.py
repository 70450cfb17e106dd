"""Size: an integer that depends on the symbols of a scope."""

from ..errors import BackendError
from .arithmetic import divided, plus, scaled, times
from .polynomial import Polynomial, atom_values

_FAR = 1 << 62  # bounds beyond this count as none


class SizeNeeded(BackendError):
    """The number that a symbol stands for is needed while a plan is made. symbols: their names."""

    symbols = ()

    def __str__(self):
        """The message and, from the traceback, the function that needs the number."""
        text = BackendError.__str__(self)
        here = __name__.rpartition(".")[0] + "."
        at = getattr(self, "__traceback__", None)
        frame = None
        while at is not None:
            if not at.tb_frame.f_globals.get("__name__", "").startswith(here):
                frame = at.tb_frame
            at = at.tb_next
        if frame is None:
            return text
        return "{}, by {} in {}".format(text, frame.f_code.co_name, frame.f_globals.get("__name__"))


class Size(Polynomial):
    """An integer that depends on a scope's symbols. terms: {atoms, as a sorted tuple: coefficient}."""

    __slots__ = ("_number", "scope")

    def __init__(self, scope, terms):
        self.scope = scope
        self.terms = terms
        self._number = None

    @property
    def __class__(self):
        return int  # for `isinstance(d, int)`; the interpreter itself ignores it and calls __index__

    @property
    def number(self):
        """The id of its polynomial in the scope."""
        if self._number is None:
            self._number = self.scope.number(self.terms)
        return self._number

    def symbols(self):
        """The names of the symbols it depends on."""
        names = []
        stack = [self]
        while stack:
            for atoms in stack.pop().terms:
                for a in atoms:
                    what = self.scope.atoms[a]
                    if type(what) is str:
                        if what not in names:
                            names.append(what)
                    else:
                        stack.extend([w for w in what[1:] if is_open(w)])
        return names

    def __str__(self):
        """Its name in a kernel's source, where `{}u` formats a number: a field of the size block."""
        return "sizes.n{}".format(self.number)

    def __format__(self, spec):
        return str(self)

    def __repr__(self):
        return _text(self.scope, self.terms)

    # -- arithmetic -----------------------------------------------------------------------------------------------

    def _no(self, other):
        """The result of an operation with something other than an integer; a float needs the number itself."""
        return self.__float__() if isinstance(other, float) else NotImplemented

    def __add__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else size_of(self.scope, plus(self.terms, terms))

    __radd__ = __add__

    def __neg__(self):
        return size_of(self.scope, scaled(self.terms, -1))

    def __pos__(self):
        return self

    def __sub__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else size_of(self.scope, plus(self.terms, scaled(terms, -1)))

    def __rsub__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else size_of(self.scope, plus(terms, scaled(self.terms, -1)))

    def __mul__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else size_of(self.scope, times(self.terms, terms))

    __rmul__ = __mul__

    def __floordiv__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else _quotient(self.scope, self.terms, terms)

    def __rfloordiv__(self, other):
        terms = terms_of(other)
        return self._no(other) if terms is None else _quotient(self.scope, terms, self.terms)

    def __mod__(self, other):
        quotient = self // other
        return NotImplemented if quotient is NotImplemented else self - quotient * other

    def __rmod__(self, other):
        quotient = other // self
        return NotImplemented if quotient is NotImplemented else other - quotient * self

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pow__(self, other):
        if type(other) is not int or other < 0:
            return self.__float__() ** other
        out = 1
        for _ in range(other):
            out = out * self
        return out

    def __rpow__(self, other):
        return other ** self.__index__()

    def __lshift__(self, other):
        return self * (1 << other)

    def __rshift__(self, other):
        return self // (1 << other)

    def __and__(self, other):
        return self % (other + 1) if type(other) is int and other & (other + 1) == 0 < other else self.__index__()

    __rand__ = __and__

    def __or__(self, other):
        return self.__index__()

    __ror__ = __xor__ = __rxor__ = __rlshift__ = __rrshift__ = __or__

    def __invert__(self):
        return -self - 1

    def __trunc__(self):
        return self

    __floor__ = __ceil__ = __round__ = __trunc__

    def __abs__(self):
        return -self if self < 0 else self

    # -- comparisons ----------------------------------------------------------------------------------------------

    def _decide(self, other, relation):
        difference = self - other
        if type(difference) is int:
            return difference < 0 if relation == "<" else difference == 0
        return self.scope.decide(difference, relation)

    def __eq__(self, other):
        other = _rounded(other, 0)
        return False if terms_of(other) is None else self._decide(other, "==")

    def __ne__(self, other):
        other = _rounded(other, 0)
        return True if terms_of(other) is None else not self._decide(other, "==")

    def __lt__(self, other):
        other = _rounded(other, 1)
        return _unordered(other) if terms_of(other) is None else self._decide(other, "<")

    def __ge__(self, other):
        other = _rounded(other, 1)
        return _unordered(other) if terms_of(other) is None else not self._decide(other, "<")

    def __gt__(self, other):
        other = _rounded(other, -1)
        return _unordered(other) if terms_of(other) is None else not self._decide(other + 1, "<")

    def __le__(self, other):
        other = _rounded(other, -1)
        return _unordered(other) if terms_of(other) is None else self._decide(other + 1, "<")

    def __bool__(self):
        return not self._decide(0, "==")

    def __hash__(self):
        return hash(("size", self.number))

    # -- what needs the number itself -----------------------------------------------------------------------------

    def __index__(self):
        return self.scope.need(self, "the number")

    def __int__(self):
        return self.scope.need(self, "the number")

    def __float__(self):
        return self.scope.need(self, "a float")

    def __truediv__(self, other):
        return self.__float__() if terms_of(other) is not None or isinstance(other, float) else NotImplemented

    def __rtruediv__(self, other):
        return self.__float__() if terms_of(other) is not None or isinstance(other, float) else NotImplemented


def terms_of(x):
    """x as a polynomial; None if it is not an integer."""
    if type(x) is Size:
        return x.terms
    if type(x) is int or type(x) is bool:
        return {(): int(x)} if x else {}
    return None


def _rounded(x, way):
    """The integer to compare a size with instead of a float, rounded up (1) or down (-1); for 0 a non-integer float is
    kept, and so is NaN."""
    if not isinstance(x, float) or x != x:
        return x
    if x - x != 0:
        return _FAR * _FAR if x > 0 else -_FAR * _FAR
    n = int(x)
    if n == x:
        return n
    return x if way == 0 else n + (way > 0) - (x < 0)


def _unordered(x):
    return False if isinstance(x, float) else NotImplemented  # NaN


def size_of(scope, terms):
    """The Size with these terms, or the number that they are."""
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Size(scope, terms)


def quotient(a, n):
    """a // n for an n that is never negative. Where n is 0, the result may be any number, and nothing is noted: indices
    are computed for the elements of an axis, and there are none."""
    if type(a) is not Size and type(n) is not Size:
        return a // n
    return _quotient((a if type(a) is Size else n).scope, terms_of(a), terms_of(n), True)


def _quotient(scope, a, b, some=False):
    """a // b of polynomials, at least one of which is not constant. some: as `quotient` says."""
    if not b:
        raise ZeroDivisionError("division by zero")
    divisor = size_of(scope, b)
    if not some and most(divisor) < 0:
        return _quotient(scope, scaled(a, -1), scaled(b, -1))
    if not some and not divisor > 0:
        return scope.need(divisor, "the sign")
    quotient, rest = divided(a, b)
    out, part = size_of(scope, quotient), size_of(scope, rest)
    for _ in range(3):
        # While the remainder is known to be in [-divisor, 0), or to be at least the divisor.
        if surely_less(part, 0):
            out, part = out - 1, part + divisor
        elif not surely_less(part, divisor):
            if surely_less(part, divisor + divisor) and surely_less(divisor - 1, part):
                out, part = out + 1, part - divisor
            else:
                break
        elif surely_less(-1, part):
            return out
    low, high = least(part), most(part)
    ends = (max(1, least(divisor)), most(divisor))
    low, high = min([low // e for e in ends]), max([high // e for e in ends])
    if low == high:
        return out + low
    quotient = typical(part) // typical(divisor)
    return out + scope.atom(("//", part, divisor), low, high, quotient)


def _text(scope, terms):
    """A polynomial as readable text: "past + new", "4 * batch * length - 1"."""
    parts = []
    for atoms in sorted(terms, key=lambda atoms: (-len(atoms), atoms)):
        c = terms[atoms]
        names = []
        for a in atoms:
            what = scope.atoms[a]
            names.append(what if type(what) is str else "(({!r}) {} ({!r}))".format(what[1], what[0], what[2]))
        if abs(c) != 1 or not names:
            names.insert(0, str(abs(c)))
        parts.append(("- " if c < 0 else "+ " if parts else "") + " * ".join(names))
    return " ".join(parts)


# -- questions that note nothing ----------------------------------------------------------------------------------


def is_open(x):
    """Whether x is a Size rather than a number."""
    return type(x) is Size


def least(x):
    """A lower bound of x."""
    return x.scope.bounds(x)[0] if type(x) is Size else x


def most(x):
    """An upper bound of x."""
    return x.scope.bounds(x)[1] if type(x) is Size else x


def typical(x):
    """The typical value of x, for which kernels are chosen."""
    return x.at(x.scope.typical) if type(x) is Size else x


def current(x):
    """The value of x in the call for which the plan is made: for choices that a typical value would make too large."""
    return x.at(atom_values(x.scope.atoms, x.scope.current)) if type(x) is Size else x


def surely_less(a, b):
    """Whether a < b for all values of the symbols."""
    d = a - b
    return d < 0 if type(d) is int else most(d) < 0
