"""Fixes the sizes of inputs: a board needs all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.types import Dim, TensorType
from emberlet.errors import ModelError

BATCH = re.compile(r"batch|^(n|b|bs)$", re.IGNORECASE)
"""Names of an axis that counts samples, at any position."""


def sized(inputs: Sequence[Argument], sizes: Mapping[str, Sequence[int]]) -> list[Argument]:
    """The inputs with every size fixed by `sizes`. An open axis that is the first or is called batch becomes 1.

    sizes: name of an input -> its shape, or symbol of a dimension -> its size. Raises ModelError for a size that is
    still open, and for `sizes` that do not match.
    """
    shapes = {a.name: _shape(a) for a in inputs}
    symbols = {d for shape in shapes.values() for d in shape if isinstance(d, str)}
    for name, size in sizes.items():
        if min(size, default=0) < 1:
            raise ModelError(f"--shape {name}={_text(size)}: sizes are positive")
        if name not in shapes and name not in symbols:
            raise ModelError(
                f"--shape {name}: the model has no input and no open dimension of that name; "
                f"its inputs are {', '.join(f'{n} ({_text(s)})' for n, s in shapes.items())}"
            )
        if name not in shapes and len(size) != 1:
            raise ModelError(f"--shape {name}={_text(size)}: {name!r} is one dimension, and one size is expected")
    fixed, problems = [], []
    for argument in inputs:
        shape = _fixed(argument.name, shapes[argument.name], sizes)
        if None in shape:
            problems.append(_advice(argument.name, shapes[argument.name], shape))
        else:
            assert isinstance(argument.type, TensorType)
            fixed.append(replace(argument, type=TensorType(argument.type.dtype, shape)))
    if problems:
        raise ModelError("a microcontroller needs every size before the model runs: " + "; ".join(problems))
    return fixed


def _shape(argument: Argument) -> tuple[Dim, ...]:
    t = argument.type
    if not isinstance(t, TensorType) or t.shape is None:
        raise ModelError(f"input {argument.name!r}: its rank is not known; export the model with fixed shapes")
    return t.shape


def _fixed(name: str, shape: tuple[Dim, ...], sizes: Mapping[str, Sequence[int]]) -> tuple[int | None, ...]:
    """The shape with the given sizes, None for the others. Raises ModelError if they do not match."""
    given = sizes.get(name)
    if given is not None and (name not in shape or len(shape) == len(given)):
        fits = len(given) == len(shape) and all(
            not isinstance(d, int) or d == n for d, n in zip(shape, given, strict=True)
        )
        if not fits:
            raise ModelError(f"--shape {name}={_text(given)} does not fit: the model says ({_text(shape)})")
        return tuple(given)

    def size(axis: int, d: Dim) -> int | None:
        if isinstance(d, int):
            return d
        if isinstance(d, str) and d in sizes:
            return sizes[d][0]
        return 1 if axis == 0 or (isinstance(d, str) and BATCH.search(d)) else None

    return tuple(size(axis, d) for axis, d in enumerate(shape))


def _advice(name: str, shape: tuple[Dim, ...], fixed: tuple[int | None, ...]) -> str:
    example = ",".join("SIZE" if n is None else str(n) for n in fixed)
    open_ = [d for d, n in zip(shape, fixed, strict=True) if n is None]
    symbols = list(dict.fromkeys(d for d in open_ if isinstance(d, str)))
    ways = [f"--shape {name}={example}"]
    if symbols and None not in open_:
        ways.append(" ".join(f"--shape {s}=SIZE" for s in symbols))
    return f"input {name!r} is ({_text(shape)}); say its sizes with {' or '.join(ways)}"


def _text(sizes: Sequence[Dim]) -> str:
    return ",".join("?" if n is None else str(n) for n in sizes)
