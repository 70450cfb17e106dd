"""Symbolic sizes: sums, minima, and identities for sizes without a name.

A size without a name is called "?" and a digest of the value and the axis it belongs to. Equal names are the same size:
a value's name is unique in the model, so both mean the same axis of the same value.
"""

from __future__ import annotations

import re

from emberlet.host.digests import blake2b
from emberlet.sizes import arithmetic

from .types import (
    Dim,
    OptionalType,
    ScalarType,
    SequenceType,
    ShapeType,
    TensorType,
    Type,
    is_anonymous,
)

_TERM = re.compile(r"(?:(\d+)\*)?(\?\w+|[A-Za-z_]\w*|min\(\d+, [\w?]+\))")
MOST_TERMS = 8
Polynomial = dict[tuple[str, ...], int]
"""{names of sizes: coefficient} (emberlet.sizes.arithmetic); here each term has at most one name."""


def anonymous(name: str, axis: int) -> str:
    """The symbol for the size of an axis of a value that the model does not name."""
    return "?" + blake2b(f"{name}\0{axis}".encode(), digest_size=8).hexdigest()


def identified(t: Type, name: str) -> Type:
    """The type with an identity for each unknown size of a tensor, and for an unknown number. A number that may be
    negative is not a size."""
    match t:
        case TensorType(dtype, shape) if shape is not None and None in shape:
            return TensorType(dtype, tuple(anonymous(name, i) if d is None else d for i, d in enumerate(shape)))
        case ScalarType(dtype, None, True) if dtype.is_integer:
            return ScalarType(dtype, anonymous(name, -1), True)
        case _:
            return t


def named(d: Dim) -> Dim:
    """A size as the model names it; None if it has no name."""
    return None if is_anonymous(d) else d


def without_identities(t: Type) -> Type:
    """The type without the identities that `identified` added."""
    match t:
        case TensorType(dtype, shape) if shape is not None and any(map(is_anonymous, shape)):
            return TensorType(dtype, tuple(map(named, shape)))
        case ScalarType(dtype, value, natural) if is_anonymous(value):
            return ScalarType(dtype, None, natural)
        case ShapeType(dims) if any(map(is_anonymous, dims)):
            return ShapeType(tuple(map(named, dims)))
        case SequenceType(element):
            return SequenceType(without_identities(element))
        case OptionalType(element):
            return OptionalType(without_identities(element))
        case _:
            return t


# -- sums -------------------------------------------------------------------------------------------------------------


def terms(d: Dim) -> Polynomial | None:
    """A size as a sum; None if it is not known as one."""
    if isinstance(d, int):
        return {(): d} if d else {}
    if d is None:
        return None
    found: Polynomial = {}
    for part in d.split(" + "):
        if part.isdigit():
            found = arithmetic.plus(found, {(): int(part)})
            continue
        m = _TERM.fullmatch(part)
        if m is None:
            return {(d,): 1} if " + " not in d and "*" not in d else None
        found = arithmetic.plus(found, {(m[2],): int(m[1] or 1)})
    return found


def summed(found: Polynomial | None) -> Dim:
    """The size for a sum of terms; None if it might be negative or is very long."""
    if found is None or any(n < 0 for n in found.values()):
        return None
    number = found.get((), 0)
    names = sorted(atoms[0] for atoms in found if atoms)
    if not names:
        return number
    if len(names) > MOST_TERMS:
        return None
    parts = [name if found[name,] == 1 else f"{found[name,]}*{name}" for name in names]
    return " + ".join([*parts, str(number)] if number else parts)


def ordered(name: str) -> str:
    """A size's name, with the terms of a sum in canonical order."""
    found = summed(terms(name)) if " + " in name else None
    return found if isinstance(found, str) else name


def plus(a: Dim, b: Dim) -> Dim:
    """The sum of two sizes."""
    x, y = terms(a), terms(b)
    return None if x is None or y is None else summed(arithmetic.plus(x, y))


def minus(a: Dim, b: Dim) -> Dim:
    """The difference of two sizes, if it is surely not negative."""
    x, y = terms(a), terms(b)
    return None if x is None or y is None else summed(arithmetic.plus(x, arithmetic.scaled(y, -1)))


def scaled(d: Dim, times: int, by: int = 1) -> Dim:
    """A size times one number and divided by another, if all its terms are divisible."""
    found = terms(d)
    if found is None or by < 1 or any(n * times % by for n in found.values()):
        return None
    return summed({k: n * times // by for k, n in found.items()} if times else {})


def smaller(a: int, b: Dim) -> Dim:
    """The smaller of a number and a size."""
    if isinstance(b, int):
        return min(a, b)
    return None if b is None or " " in b else f"min({a}, {b})"
