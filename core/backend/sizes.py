"""Symbolic sizes of a plan: integers with an expression, which flow through shapes, strides and index arithmetic.

A `Size` stands for a polynomial with integer coefficients over *atoms*: the symbols of its `Scope` ("past", "batch"),
and terms that are not polynomials (quotients, maxima). It acts as an integer. Comparisons are answered in one of three
ways (after Torch's symbolic shapes, Ansel et al. 2024):

- a comparison with the same result for all values of the symbols gets that result: `past + 1 > past`;
- otherwise it gets the result for the scope's typical values, which is noted as a *guard*: the recording is valid only
  for sizes for which every guard gives the same result;
- code that needs the number itself (`range(n)`, `int(n)`, `n * 0.5`) raises SizeNeeded, and the size is then fixed.

Code that works without an answer asks `surely_less` and the like, which note nothing. Code that picks the faster of two
correct methods uses `typical(n)`.
"""

from .. import shapes
from ..errors import BackendError

HIGHEST = 1 << 20  # the default upper bound of a symbol
_FAR = 1 << 62  # bounds beyond this count as none


class SizeNeeded(BackendError):
    """The number that a symbol stands for is needed while a plan is made. symbols: their names."""

    symbols = ()

    def __str__(self):
        """The message and, from the traceback, the function that needs the number."""
        text = BackendError.__str__(self)
        at = getattr(self, "__traceback__", None)
        frame = None
        while at is not None:
            if at.tb_frame.f_globals.get("__name__") != __name__:
                frame = at.tb_frame
            at = at.tb_next
        if frame is None:
            return text
        return "{}, by {} in {}".format(text, frame.f_code.co_name, frame.f_globals.get("__name__"))


class Scope:
    """The symbols of one plan with their ranges, and the guards noted so far.

    atoms: list of ("symbol", name), ("//", dividend, divisor) and ("max", a, b); ranges: (lowest, highest) of each;
    guards: list of (Size, relation, answer, why), relation "<" or "==" against 0; why: the function that assumes the
    answer, or "" where the code asks for it.
    """

    def __init__(self):
        self.atoms = []
        self.ranges = []
        self.typical = []
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
        whole = self._atom(("symbol", name), lowest, highest, typical)
        if step == 1:
            return whole
        steps = self._atom(("//", whole, step), lowest // step, highest // step, typical // step)
        out = steps * step + lowest % step
        self.guards.append((whole - out, "==", True, ""))
        return out

    def _atom(self, what, lowest, highest, typical):
        key = (what[0],) + tuple([w.number if isinstance(w, Size) else w for w in what[1:]])
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
            found = self._bounds[x.number] = (self._lowest(x.terms), -self._lowest(_scaled(x.terms, -1)))
        return found

    def _lowest(self, terms):
        # With every atom written as its lower bound plus an excess, products of two large factors, such
        # as (n - 1) * m, keep their sign.
        shifted = {(): 0}
        for atoms, c in terms.items():
            product = {(): c}
            for a in atoms:
                product = _product(product, {(): self.ranges[a][0], (a,): 1})
            shifted = _sum(shifted, product)
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
        elif low > 0 or high < 0 or _indivisible(x.terms):
            return False
        key = (x.number, relation)
        if key not in self._answers:
            value = x.evaluate(self.typical)
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


class Size:
    """An integer that depends on a scope's symbols. terms: {atoms, as a sorted tuple: coefficient}."""

    __slots__ = ("_number", "scope", "terms")

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
                    if what[0] == "symbol":
                        if what[1] not in names:
                            names.append(what[1])
                    else:
                        stack.extend([w for w in what[1:] if is_open(w)])
        return names

    def evaluate(self, values):
        """Its value, given the values of the scope's atoms."""
        total = 0
        for atoms, c in self.terms.items():
            for a in atoms:
                c *= values[a]
            total += c
        return total

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
        terms = _terms(other)
        return self._no(other) if terms is None else _size(self.scope, _sum(self.terms, terms))

    __radd__ = __add__

    def __neg__(self):
        return _size(self.scope, _scaled(self.terms, -1))

    def __pos__(self):
        return self

    def __sub__(self, other):
        terms = _terms(other)
        return self._no(other) if terms is None else _size(self.scope, _sum(self.terms, _scaled(terms, -1)))

    def __rsub__(self, other):
        terms = _terms(other)
        return self._no(other) if terms is None else _size(self.scope, _sum(terms, _scaled(self.terms, -1)))

    def __mul__(self, other):
        terms = _terms(other)
        return self._no(other) if terms is None else _size(self.scope, _product(self.terms, terms))

    __rmul__ = __mul__

    def __floordiv__(self, other):
        terms = _terms(other)
        return self._no(other) if terms is None else _divided(self.scope, self.terms, terms)

    def __rfloordiv__(self, other):
        terms = _terms(other)
        return self._no(other) if terms is None else _divided(self.scope, terms, self.terms)

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
        return False if _terms(other) is None else self._decide(other, "==")

    def __ne__(self, other):
        other = _rounded(other, 0)
        return True if _terms(other) is None else not self._decide(other, "==")

    def __lt__(self, other):
        other = _rounded(other, 1)
        return _unordered(other) if _terms(other) is None else self._decide(other, "<")

    def __ge__(self, other):
        other = _rounded(other, 1)
        return _unordered(other) if _terms(other) is None else not self._decide(other, "<")

    def __gt__(self, other):
        other = _rounded(other, -1)
        return _unordered(other) if _terms(other) is None else not self._decide(other + 1, "<")

    def __le__(self, other):
        other = _rounded(other, -1)
        return _unordered(other) if _terms(other) is None else self._decide(other + 1, "<")

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
        return self.__float__() if _terms(other) is not None or isinstance(other, float) else NotImplemented

    def __rtruediv__(self, other):
        return self.__float__() if _terms(other) is not None or isinstance(other, float) else NotImplemented


# -- polynomials: {atoms, as a sorted tuple: coefficient} ---------------------------------------------------------


def _terms(x):
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


def _size(scope, terms):
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Size(scope, terms)


def _sum(a, b):
    out = dict(a)
    for atoms in b:
        c = out.get(atoms, 0) + b[atoms]
        if c:
            out[atoms] = c
        else:
            out.pop(atoms, None)
    return out


def _scaled(a, n):
    return {atoms: a[atoms] * n for atoms in a}


def _product(a, b):
    out = {}
    for x in a:
        for y in b:
            atoms = tuple(sorted(x + y))
            c = out.get(atoms, 0) + a[x] * b[y]
            if c:
                out[atoms] = c
            else:
                out.pop(atoms, None)
    return out


def _leading(terms):
    return max(terms, key=lambda atoms: (len(atoms), atoms))


def _without(atoms, part):
    """The atoms of a monomial divided by those of another; None if it is not divisible."""
    left = list(atoms)
    for a in part:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def _divmod(a, b):
    """(quotient, remainder) of polynomials: a == quotient * b + remainder, with the simplest remainder found."""
    lead = _leading(b)
    quotient = {}
    rest = {}
    left = dict(a)
    while left:
        top = _leading(left)
        c = left[top]
        atoms = _without(top, lead)
        n = c // b[lead] if atoms is not None else 0
        if n and (c % b[lead] == 0 or len(b) == 1):
            step = {atoms: n}
            quotient = _sum(quotient, step)
            left = _sum(left, _scaled(_product(step, b), -1))
        if top in left:
            rest[top] = left.pop(top)
    return quotient, rest


def _divided(scope, a, b):
    """a // b of polynomials, at least one of which is not constant."""
    if not b:
        raise ZeroDivisionError("division by zero")
    divisor = _size(scope, b)
    if most(divisor) < 0:
        return _divided(scope, _scaled(a, -1), _scaled(b, -1))
    if not divisor > 0:
        return scope.need(divisor, "the sign")
    quotient, rest = _divmod(a, b)
    whole, part = _size(scope, quotient), _size(scope, rest)
    for _ in range(3):
        # While the remainder is known to be in [-divisor, 0), or to be at least the divisor.
        if surely_less(part, 0):
            whole, part = whole - 1, part + divisor
        elif not surely_less(part, divisor):
            if surely_less(part, divisor + divisor) and surely_less(divisor - 1, part):
                whole, part = whole + 1, part - divisor
            else:
                break
        elif surely_less(-1, part):
            return whole
    low, high = least(part), most(part)
    ends = (max(1, least(divisor)), most(divisor))
    low, high = min([low // e for e in ends]), max([high // e for e in ends])
    if low == high:
        return whole + low
    quotient = typical(part) // typical(divisor)
    return whole + scope._atom(("//", part, divisor), low, high, quotient)


def _text(scope, terms):
    """A polynomial as readable text: "past + new", "4 * batch * length - 1"."""
    parts = []
    for atoms in sorted(terms, key=lambda atoms: (-len(atoms), atoms)):
        c = terms[atoms]
        names = []
        for a in atoms:
            what = scope.atoms[a]
            names.append(what[1] if what[0] == "symbol" else "(({!r}) {} ({!r}))".format(what[1], what[0], what[2]))
        if abs(c) != 1 or not names:
            names.insert(0, str(abs(c)))
        parts.append(("- " if c < 0 else "+ " if parts else "") + " * ".join(names))
    return " ".join(parts)


def _content(terms):
    """The greatest common divisor of the coefficients."""
    whole = 0
    for atoms in terms:
        whole = common_divisor(whole, terms[atoms])
    return whole


def _indivisible(terms):
    """Whether a polynomial is never 0, because its coefficients have a common divisor that does not divide its
    constant."""
    return terms.get((), 0) % _content({atoms: terms[atoms] for atoms in terms if atoms}) != 0


def _primitive(x):
    """x without its common factors (numbers and symbols that are never 0), with the same sign for x and -x."""
    found = _content(x.terms)
    for a in min(x.terms, key=len):
        if x.scope.ranges[a][0] > 0 and all(a in atoms for atoms in x.terms):
            found = found * Size(x.scope, {(a,): 1})
    if x.terms[_leading(x.terms)] < 0:
        found = -found
    return Size(x.scope, _divmod(x.terms, _terms(found))[0])


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
    return x.evaluate(x.scope.typical) if type(x) is Size else x


def surely_less(a, b):
    """Whether a < b for all values of the symbols."""
    d = a - b
    return d < 0 if type(d) is int else most(d) < 0


def positive(n):
    """n, but at least 1 if it is a number."""
    return n if type(n) is Size else max(1, n)


def known_equal(a, b):
    """Whether two shapes or sizes are equal for all values of the symbols."""
    if type(a) is int and type(b) is int:
        return a == b
    if isinstance(a, tuple):
        if len(a) != len(b):
            return False
        for i in range(len(a)):
            if a[i] is not b[i] and not known_equal(a[i], b[i]):
                return False
        return True
    if type(a) is Size or type(b) is Size:
        d = a - b
        return type(d) is int and d == 0
    return a == b


def assume_equal(a, b, why):
    """`shapes.assume_equal`: a length and a number that may differ do, noting nothing; two open lengths are equal if
    their typical values are, which is noted as a guard with `why`, the function that assumes it."""
    if a is b:
        return True
    if type(a) is tuple and type(b) is tuple:
        if len(a) != len(b):
            return False
        for i in range(len(a)):
            if not assume_equal(a[i], b[i], why):
                return False
        return True
    if type(a) is not Size and type(b) is not Size:
        return a == b
    difference = a - b
    if type(difference) is int:
        return difference == 0
    both = type(a) is Size and type(b) is Size
    return difference.scope.decide(difference, "==", "usually" if both else "always", why)


def within_words(n):
    """Whether a number fits in 32 bits. For a Size this becomes a guard, since plans are only for such sizes."""
    return not is_open(n) or -(1 << 31) <= n < 1 << 31


def divides(n, x):
    """Whether n divides x for all values of the symbols."""
    if type(x) is Size or type(n) is Size:
        return known_equal(n, 0) or not _divmod(_terms(x), _terms(n))[1]
    return x % n == 0


def greater(a, b):
    """The larger of two."""
    if type(a) is not Size and type(b) is not Size:
        return max(a, b)
    if surely_less(a - 1, b):
        return b
    if surely_less(b - 1, a):
        return a
    scope = a.scope if type(a) is Size else b.scope
    low, high = max(least(a), least(b)), max(most(a), most(b))
    return scope._atom(("max", a, b), low, high, max(typical(a), typical(b)))


def smaller(a, b):
    """The smaller of two."""
    return -greater(-a, -b)


def common_divisor(a, b):
    """A common divisor of both, as large as is easily found; for two numbers the greatest."""
    if type(a) is not Size and type(b) is not Size:
        while b:
            a, b = b, a % b
        return abs(a)
    scope = a.scope if type(a) is Size else b.scope
    if not _terms(a) or not _terms(b):
        return a if _terms(a) else b
    contents = _content(_terms(a)), _content(_terms(b))
    whole = common_divisor(contents[0], contents[1])
    bare = a // contents[0], b // contents[1]
    for i in (0, 1):
        if divides(bare[i], bare[1 - i]):
            return bare[i] * whole
    atoms = None
    for terms in (_terms(a), _terms(b)):
        for key in terms:
            if atoms is None:
                atoms = list(key)
                continue
            shared = []
            left = list(key)
            for n in atoms:
                if n in left:
                    left.remove(n)
                    shared.append(n)
            atoms = shared
    return _size(scope, {tuple(atoms): whole})
