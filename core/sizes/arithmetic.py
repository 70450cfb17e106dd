"""Arithmetic with polynomials as {atoms, as a sorted tuple: coefficient}. Atoms are whatever can be sorted."""


def plus(a, b):
    """a + b."""
    out = dict(a)
    for atoms in b:
        c = out.get(atoms, 0) + b[atoms]
        if c:
            out[atoms] = c
        else:
            out.pop(atoms, None)
    return out


def scaled(a, n):
    """a times a number other than 0."""
    return {atoms: a[atoms] * n for atoms in a}


def times(a, b, order=None):
    """a * b. order: the key that sorts atoms, unless they sort themselves."""
    out = {}
    for x in a:
        for y in b:
            atoms = tuple(sorted(x + y, key=order))
            c = out.get(atoms, 0) + a[x] * b[y]
            if c:
                out[atoms] = c
            else:
                out.pop(atoms, None)
    return out


def leading(terms):
    """The atoms of the term of highest degree."""
    return max(terms, key=lambda atoms: (len(atoms), atoms))


def without(atoms, part):
    """The atoms of a monomial divided by those of another; None if it is not divisible."""
    left = list(atoms)
    for a in part:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def divided(a, b):
    """(quotient, remainder) of polynomials: a == quotient * b + remainder, with the simplest remainder found."""
    lead = leading(b)
    quotient = {}
    rest = {}
    left = dict(a)
    while left:
        top = leading(left)
        c = left[top]
        atoms = without(top, lead)
        n = c // b[lead] if atoms is not None else 0
        if n and (c % b[lead] == 0 or len(b) == 1):
            step = {atoms: n}
            quotient = plus(quotient, step)
            left = plus(left, scaled(times(step, b), -1))
        if top in left:
            rest[top] = left.pop(top)
    return quotient, rest


def content(terms):
    """The greatest common divisor of the coefficients."""
    found = 0
    for atoms in terms:
        found = common_divisor(found, terms[atoms])
    return found


def indivisible(terms):
    """Whether a polynomial is never 0, because its coefficients have a common divisor that does not divide its
    constant."""
    return terms.get((), 0) % content({atoms: terms[atoms] for atoms in terms if atoms}) != 0


def common_divisor(a, b):
    """The greatest common divisor of two numbers."""
    while b:
        a, b = b, a % b
    return abs(a)
