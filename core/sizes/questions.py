"""Questions about sizes and numbers that work without an answer, or assume one."""

from . import arithmetic
from .arithmetic import content, divided
from .size import Size, is_open, least, most, size_of, surely_less, terms_of, typical


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
        return known_equal(n, 0) or not divided(terms_of(x), terms_of(n))[1]
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
    return scope.atom(("max", a, b), low, high, max(typical(a), typical(b)))


def smaller(a, b):
    """The smaller of two."""
    return -greater(-a, -b)


def common_divisor(a, b):
    """A common divisor of both, as large as is easily found; for two numbers the greatest."""
    if type(a) is not Size and type(b) is not Size:
        return arithmetic.common_divisor(a, b)
    scope = a.scope if type(a) is Size else b.scope
    if not terms_of(a) or not terms_of(b):
        return a if terms_of(a) else b
    contents = content(terms_of(a)), content(terms_of(b))
    number = arithmetic.common_divisor(contents[0], contents[1])
    bare = a // contents[0], b // contents[1]
    for i in (0, 1):
        if divides(bare[i], bare[1 - i]):
            return bare[i] * number
    atoms = None
    for terms in (terms_of(a), terms_of(b)):
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
    return size_of(scope, {tuple(atoms): number})
