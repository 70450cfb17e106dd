"""Index expressions: where in a buffer an element lies, as an integer expression of the loop counters.

Every movement operation (reshape, permute, slice, pad, …) is a rewriting of index expressions, so it costs no kernel.
An `Index` is a sum of terms (coefficient × atom) plus a constant, with a known range. An atom is a *digit*,
`(base // div) % mod`, of a loop counter or of a sum that could not be simplified further, or a value computed by the
kernel (a gathered index). The rules keep sums canonical, so that splitting a shape and merging it again cancels out:
`reshape(permute(reshape(x)))` of a contiguous buffer is read with the plain counter where that is possible.

Numbers may be sizes that the plan leaves open (core/sizes/): a rule is applied only if it holds for every
size.

Expressions are rendered in unsigned 32-bit arithmetic. A negative intermediate wraps. This is harmless, since it only
occurs under a guard (padding) that discards the value read.
"""

from emberlet.sizes.questions import common_divisor, divides, known_equal
from emberlet.sizes.size import is_open, least, most, quotient, surely_less, typical

_NO_LIMIT = 1 << 31


class Atom:
    """One symbol of an index expression; two atoms with the same `key` are equal.

    kind "digit": payload (base, extent, div, mod), base a counter's name or an Index that is never negative, extent
    one more than its largest value, mod 0 where no remainder is needed;
    kind "value": payload is a Value of the kernel IR (kernel_ir.py).
    """

    def __init__(self, key, lo, hi, kind, payload):
        self.key = key
        self.lo = lo
        self.hi = hi
        self.kind = kind
        self.payload = payload

    @property
    def identity(self):
        """The key with the ranges (Index.identity)."""
        inner = ""
        if self.kind == "digit":
            inner = str(self.payload[1]) if isinstance(self.payload[0], str) else self.payload[0].identity
        return "{}:{}:{}:{}".format(self.key, self.lo, self.hi, inner)


class Index:
    """A sum of (coefficient, Atom) terms and a constant, with its range [lo, hi] (inclusive). Immutable."""

    def __init__(self, terms, const, lo=None, hi=None):
        self.terms = terms
        self.const = const
        tlo = thi = const
        for c, a in terms:
            if (type(c) is int and c >= 0) or least(c) >= 0:
                tlo += c * a.lo
                thi += c * a.hi
            elif most(c) <= 0:
                tlo += c * a.hi
                thi += c * a.lo
            else:
                reach = max(-least(c), most(c)) * max(-least(a.lo), most(a.hi))
                tlo -= reach
                thi += reach
        self.lo = tlo if lo is None or surely_less(lo, tlo) else lo
        self.hi = thi if hi is None or surely_less(thi, hi) else hi
        self._key = None
        self._identity = None

    @property
    def key(self):
        """The sum as a text."""
        if self._key is None:
            self._key = "+".join(["{}*{}".format(c, a.key) for c, a in self.terms] + [str(self.const)])
        return self._key

    @property
    def identity(self):
        """The key with every range that simplification depends on. Indices with equal keys are the same number;
        expressions made from them are the same only if their identities are equal too."""
        if self._identity is None:
            self._identity = "{}:{}:{}".format(
                "+".join(["{}*{}".format(c, a.identity) for c, a in self.terms] + [str(self.const)]), self.lo, self.hi
            )
        return self._identity

    def bounded(self, lo, hi):
        """The same expression, which the caller knows (by a guard) to lie in [lo, hi]."""
        return Index(
            self.terms,
            self.const,
            self.lo if surely_less(lo, self.lo + 1) else lo,
            self.hi if surely_less(self.hi - 1, hi) else hi,
        )

    def is_const(self):
        return not self.terms

    def __repr__(self):
        return "Index({})".format(self.key)


def const(n):
    return Index((), n)


def last(extent):
    """The last of `extent` positions; 0 if there are none."""
    return extent - 1 if is_open(extent) else max(0, extent - 1)


ZERO = Index((), 0)  # not const(0): MicroPython takes `NAME = const(…)` for a declaration of its own


def _base_key(base):
    return base if isinstance(base, str) else "[" + base.key + "]"


def _digit(base, extent, div, mod):
    """The Index (base // div) % mod, base running over [0, extent)."""
    if surely_less(extent - 1, div):
        return ZERO
    if not known_equal(mod, 0) and surely_less(extent - 1, div * mod):
        mod = 0
    if known_equal(div, 1) and known_equal(mod, 0) and not isinstance(base, str):
        return base
    hi = quotient(extent - 1, div)
    if not known_equal(mod, 0) and not surely_less(hi, mod):
        hi = mod - 1
    if known_equal(hi, 0):
        return ZERO
    key = "({}/{}%{})".format(_base_key(base), div, mod)
    return Index(((1, Atom(key, 0, hi, "digit", (base, extent, div, mod))),), 0)


def counter(name, extent):
    """The loop counter `name`, which runs over [0, extent)."""
    return _digit(name, extent, 1, 0)


def of_value(value, lo=0, hi=_NO_LIMIT):
    """An index computed by the kernel itself: an integer Value in [lo, hi]."""
    return Index(((1, Atom("v{}".format(value.id), lo, hi, "value", value)),), 0)


def _merge(terms):
    """(terms, constant): equal atoms added up and neighboring digits of one base joined."""
    coefs = {}
    atoms = []
    for c, a in terms:
        if a.key in coefs:
            coefs[a.key] += c
        else:
            coefs[a.key] = c
            atoms.append(a)
    out = [(coefs[a.key], a) for a in atoms if not known_equal(coefs[a.key], 0)]
    for i in range(len(out)):
        ci, ai = out[i]
        if ai.kind != "digit":
            continue
        base, extent, di, mi = ai.payload
        key = _base_key(base)
        for j in range(len(out)):
            cj, aj = out[j]
            if j == i or aj.kind != "digit" or _base_key(aj.payload[0]) != key:
                continue
            dj, mj = aj.payload[2], aj.payload[3]
            # (v//(dj*mj) % mi) * (cj*mj) + (v//dj % mj) * cj  ==  (v//dj % (mi*mj)) * cj
            if not known_equal(mj, 0) and known_equal(di, dj * mj) and known_equal(ci, cj * mj):
                both = _digit(base, extent, dj, mi * mj)
                rest = [out[k] for k in range(len(out)) if k != i and k != j]
                joined, more = _merge(rest + [(c * cj, a) for c, a in both.terms])
                return joined, more + both.const * cj
    out.sort(key=lambda t: (-abs(typical(t[0])), t[1].key))
    return tuple(out), 0


def add(a, b):
    if not b.terms and known_equal(b.const, 0):
        return a
    if not a.terms and known_equal(a.const, 0):
        return b
    terms, extra = _merge(a.terms + b.terms)
    return Index(terms, a.const + b.const + extra, a.lo + b.lo, a.hi + b.hi)


def mul(a, n):
    if known_equal(n, 0):
        return ZERO
    if known_equal(n, 1):
        return a
    lo, hi = (a.lo * n, a.hi * n) if least(n) >= 0 else (a.hi * n, a.lo * n) if most(n) <= 0 else (None, None)
    return Index(tuple([(c * n, x) for c, x in a.terms]), a.const * n, lo, hi)


def _split(a, n):
    """(quotient part, remainder part): a == n * quotient part + remainder part, all divisible terms in the first."""
    whole = []
    rest = []
    for c, x in a.terms:
        if divides(n, c):
            whole.append((quotient(c, n), x))
        else:
            rest.append((c, x))
    moved = quotient(a.const, n) if not is_open(n) or divides(n, a.const) else 0
    if not whole:  # then the range known of `a` tells that of the remainder part
        taken = moved * n
        return const(moved), Index(a.terms, a.const - taken, a.lo - taken, a.hi - taken)
    return Index(tuple(whole), moved), Index(tuple(rest), a.const - moved * n)


def _coarse(r, n):
    """(Y, g, x) with r == g*Y + x, g > 1 dividing n and 0 <= x < g, or None."""
    terms = r.terms
    for cut in range(len(terms), 0, -1):
        g = n
        for c, _ in terms[:cut]:
            g = common_divisor(g, c)
        if not is_open(g) and g <= 1:
            continue
        moved = quotient(r.const, g) if not is_open(g) or divides(g, r.const) else 0
        x = Index(terms[cut:], r.const - moved * g)
        if least(x.lo) >= 0 and surely_less(x.hi, g):
            y = Index(tuple([(quotient(c, g), a) for c, a in terms[:cut]]), moved)
            return y.bounded(quotient(r.lo, g), quotient(r.hi, g)), g, x
    return None


def _borrow(whole, r, n):
    """(whole, r) with multiples of n moved from whole to r until r, which is divided unsigned, is never negative."""
    if least(r.lo) >= 0:
        return whole, r
    # Positions stay below 2^31, but bounds of products of open sizes may not; the borrowed amount must fit 32 bits.
    lo = r.lo if is_open(r.lo) else max(r.lo, -(1 << 31))
    k = quotient(n - 1 - lo, n)
    return Index(whole.terms, whole.const - k), Index(r.terms, r.const + k * n)


def _refined(r, div, mod):
    """The digit (r // div) % mod where r is itself a digit: a digit of the same base. None if there is no such
    digit."""
    if (
        len(r.terms) != 1
        or not known_equal(r.const, 0)
        or not known_equal(r.terms[0][0], 1)
        or r.terms[0][1].kind != "digit"
    ):
        return None
    base, extent, d, m = r.terms[0][1].payload
    if not known_equal(mod, 0):
        return _digit(base, extent, d, mod) if known_equal(m, 0) or divides(mod, m) else None
    return _digit(base, extent, d * div, quotient(m, div)) if known_equal(m, 0) or divides(div, m) else None


def floordiv(a, n):
    if known_equal(n, 1):
        return a
    if least(a.lo) >= 0 and surely_less(a.hi, n):
        return ZERO
    whole, r = _split(a, n)
    if least(r.lo) >= 0 and surely_less(r.hi, n):
        return _quotient(whole, a, n)
    found = _coarse(r, n)
    if found:
        y, g, _ = found
        return _quotient(add(whole, floordiv(y, quotient(n, g))), a, n)
    refined = _refined(r, n, 0)
    if refined is not None:
        return _quotient(add(whole, refined), a, n)
    whole, r = _borrow(whole, r, n)
    return _quotient(add(whole, _digit(r, r.hi + 1, n, 0)), a, n)


def _quotient(q, a, n):
    """q, which is a // n, with the range that follows from that of a."""
    if least(a.lo) >= 0 and surely_less(quotient(a.hi, n), q.hi):
        return q.bounded(quotient(a.lo, n), quotient(a.hi, n))
    return q


def mod(a, n):
    if known_equal(n, 1):
        return ZERO
    if least(a.lo) >= 0 and surely_less(a.hi, n):
        return a
    _, r = _split(a, n)
    if least(r.lo) >= 0 and surely_less(r.hi, n):
        return r
    found = _coarse(r, n)
    if found:
        y, g, x = found
        return add(mul(mod(y, quotient(n, g)), g), x)
    refined = _refined(r, 1, n)
    if refined is not None:
        return refined
    _, r = _borrow(ZERO, r, n)
    return _digit(r, r.hi + 1, 1, n)


def flatten(idx, shape):
    """The row-major position of coordinates `idx` in `shape`."""
    out = ZERO
    stride = 1
    for i in range(len(shape) - 1, -1, -1):
        if not known_equal(shape[i], 1):
            out = add(out, mul(idx[i], stride))
        stride *= shape[i]
    return out.bounded(0, last(stride))


def unflatten(flat, shape):
    """The coordinates in `shape` of row-major position `flat`."""
    out = [None] * len(shape)
    stride = 1
    for i in range(len(shape) - 1, -1, -1):
        out[i] = mod(floordiv(flat, stride), shape[i]) if not known_equal(shape[i], 1) else ZERO
        stride *= shape[i]
    return out


def fours(a):
    """Whether a is 4 * q + c for an integer q and a constant c."""
    for c, _ in a.terms:
        if not divides(4, c):
            return False
    return not is_open(a.const % 4)


def quarter(a):
    """a // 4, for an `a` that is `fours` with a constant divisible by 4. It uses no range: an index of an equal key may
    have been made where another range was known."""
    return Index(tuple([(c // 4, x) for c, x in a.terms]), a.const // 4)


def consecutive(four):
    """Whether four indices are 4 * q, 4 * q + 1, 4 * q + 2, 4 * q + 3 for an integer q."""
    first = four[0]
    if not divides(4, first.const) or least(first.lo) < 0 or not fours(first):
        return False
    for i in range(1, 4):
        if add(first, const(i)).key != four[i].key:
            return False
    return True


def all_in_fours(cells):
    """Whether each four of (Value, Index) cells are `consecutive`."""
    return all(consecutive([store for _, store in cells[at : at + 4]]) for at in range(0, len(cells), 4))


def render(a, atom_text):
    """WGSL text of a (u32); `atom_text(atom)` gives the text of an atom."""
    parts = []
    for c, x in a.terms:
        if is_open(c) or c > 0:  # a negative open number wraps
            text = atom_text(x)
            if not known_equal(c, 1):
                text = "{} * {}u".format(text, c)
            parts.append(("+ " if parts else "") + text)
    if is_open(a.const) or a.const > 0 or not a.terms:
        if not is_open(a.const) and a.const < 0:
            return "{}u".format(a.const & 0xFFFFFFFF)
        parts.append(("+ " if parts else "") + "{}u".format(a.const))
    if not parts:
        parts.append("0u")
    for c, x in a.terms:
        if not is_open(c) and c < 0:
            text = atom_text(x)
            if c != -1:
                text = "{} * {}u".format(text, -c)
            parts.append("- " + text)
    if not is_open(a.const) and a.const < 0:
        parts.append("- {}u".format(-a.const))
    text = " ".join(parts)
    return text if len(parts) == 1 and "*" not in text else "({})".format(text)


def evaluate(a, value_of):
    """The value of a, given `value_of(atom)` for counters and values (for tests and checks of shapes)."""
    total = a.const
    for c, x in a.terms:
        if x.kind == "digit":
            base, _, div, m = x.payload
            v = (value_of(base) if isinstance(base, str) else evaluate(base, value_of)) // div
            if m:
                v %= m
        else:
            v = value_of(x)
        total += c * v
    return total
