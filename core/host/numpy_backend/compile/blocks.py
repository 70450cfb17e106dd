"""Runs chains of elementwise steps over large arrays block by block, so that each step finds its input in the cache.

Arrays used only within a chain shrink to the size of one block.
"""

from __future__ import annotations

import math

import numpy as np

from ..storage import Array
from .memory import Buffer, Buffers
from .steps import Step, arrays_in, part

BLOCK = 1 << 17  # bytes of each array that a block covers
LONG = 1 << 18  # minimum bytes of an array for its chain to be split
FEWEST = 4  # blocks from which on a constant as long as a block is read often enough to stay in the cache
ROWS = 8  # of a block, at least, to which the same constants belong


def grouped(steps: list[Step], buffers: Buffers, kept: list[Array]) -> list[list[Step]]:
    """The steps in their order, those that run block by block together in one group. kept: arrays needed before
    or behind."""
    groups: list[list[Step]] = []
    at = 0
    uses = _uses_of(steps, buffers)
    needed = {id(buffers.of(a)) for a in kept}
    while at < len(steps):
        end = _chain(steps, at, buffers)
        if end - at > 1:
            groups.append(_cut(steps[at:end], buffers, uses, needed))
            at = end
        else:
            groups.append([steps[at]])
            at += 1
    return groups


def _uses_of(steps: list[Step], buffers: Buffers) -> dict[int, int]:
    """Buffer id -> the number of steps that use it."""
    out: dict[int, int] = {}
    for step in steps:
        for key in _touched(step, buffers):
            out[key] = out.get(key, 0) + 1
    return out


def _touched(step: Step, buffers: Buffers) -> set[int]:
    found = {id(buffers.of(a)) for a in (*arrays_in(step.args), *step.writes)}
    found.discard(id(None))
    return found


def _chain(steps: list[Step], at: int, buffers: Buffers) -> int:
    """The end, exclusive, of the chain that starts at step `at`: the steps up to it can run block by block, because no
    block reads what another block writes."""
    first = steps[at].over
    if first is None or first.nbytes < LONG:
        return at + 1
    written: dict[int, Array] = {}
    read: dict[int, list[Array]] = {}
    end = at
    while end < len(steps):
        step = steps[end]
        over = step.over
        if over is None or over.shape != first.shape or over.itemsize > 2 * first.itemsize:
            break
        target = id(buffers.of(over))
        sources = [a for a in arrays_in(step.args[:-1]) if buffers.of(a) is not None]
        if any(id(buffers.of(a)) in written and not _same(a, written[id(buffers.of(a))]) for a in sources):
            break
        if target in written and not _same(over, written[target]):
            break
        if any(
            not _same(a, over) for a in (*read.get(target, []), *(s for s in sources if id(buffers.of(s)) == target))
        ):
            break
        written[target] = over
        for a in sources:
            read.setdefault(id(buffers.of(a)), []).append(a)
        end += 1
    return max(end, at + 1)


def _same(a: Array, b: Array) -> bool:
    return a is b or (
        a.shape == b.shape
        and a.itemsize == b.itemsize
        and a.strides == b.strides
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def _cut(steps: list[Step], buffers: Buffers, uses: dict[int, int], needed: set[int]) -> list[Step]:
    """The steps of all blocks, one block after the other. A block is a range of one axis and one index of each axis
    before it."""
    first: Array = steps[0].over  # type: ignore[assignment]
    shape = first.shape
    axis = 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) * first.itemsize > BLOCK:
        axis += 1
    while axis < len(shape) - 1 and shape[axis] == 1:
        axis += 1
    most = max(1, BLOCK // (math.prod(shape[axis + 1 :]) * first.itemsize))
    count = -(-shape[axis] // -(-shape[axis] // most))  # blocks of about the same size
    block = (*(1,) * axis, min(count, shape[axis]), *shape[axis + 1 :])
    if block == shape:
        return steps
    own = _uses_of(steps, buffers)
    many = FEWEST * count <= math.prod(shape[: axis + 1])
    constants = _repeated(steps, block, axis, buffers) if many else {}
    # A buffer that no other step uses only needs the memory of one block.
    inner: dict[int, Array] = {}
    for s in steps:
        over: Array = s.over  # type: ignore[assignment]
        buffer = buffers.of(over)
        key = id(buffer)
        if buffer and buffer.fill is None and own[key] == uses[key] and key not in needed and key not in inner:
            inner[key] = buffers.new(block, over.dtype)
    out = []
    for lead in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], count):
            stop = min(start + count, shape[axis])
            place = (*(slice(i, i + 1) for i in lead), slice(start, stop))
            small = (*(slice(0, 1) for _ in lead), slice(0, stop - start))
            for s in steps:
                args = tuple(
                    _part(a, len(shape), place, constants.get(id(a), inner.get(id(buffers.of(a)))), small)
                    if isinstance(a, np.ndarray)
                    else a
                    for a in s.args
                )
                out.append(Step(s.function, args, (args[-1],), args[-1]))
    return out


def _repeated(steps: list[Step], block: tuple[int, ...], axis: int, buffers: Buffers) -> dict[int, Array]:
    """id of a constant -> it as long as a block, for those that are the same in each block: NumPy takes up to three
    times as long for many short rows as for one. axis: along which blocks follow each other."""
    found: dict[int, Array] = {}
    for step in steps:
        for x in step.args[:-1] if isinstance(step.function, np.ufunc) else ():
            if not isinstance(x, np.ndarray) or x.size < 2 or buffers.of(x) is not None:
                continue
            same = all(n == 1 for n in x.shape[: max(0, axis + 1 - len(block) + x.ndim)])
            if same and x.size * ROWS <= math.prod(block):
                found[id(x)] = np.broadcast_to(x, block).copy()
    return found


def _part(x: Array, rank: int, place: tuple[slice, ...], inner: Array | None, small: tuple[slice, ...]) -> Array:
    """The part of x that one block uses; x broadcasts to the shape of the chain."""
    if inner is not None:
        return inner[small].view(x.dtype)  # steps may take the same bits for numbers of another kind
    missing = rank - x.ndim
    return part(x, tuple(key if x.shape[i] > 1 else slice(None) for i, key in enumerate(place[missing:])))


def lifetimes(steps: list[list[Step]], buffers: Buffers, inputs: list[Array], roots: list[Array]) -> None:
    """Between which groups of steps each buffer is needed. Inputs are there from the start, results to the end."""

    def seen(array: Array, at: int) -> None:
        buffer: Buffer | None = buffers.of(array)
        if buffer is not None:
            if buffer.last < 0:
                buffer.first = at
            buffer.first = min(buffer.first, at)
            buffer.last = max(buffer.last, at)

    for array in inputs:
        seen(array, 0)
    for at, group in enumerate(steps, 1):
        for step in group:
            for array in arrays_in(step.args):
                seen(array, at)
            for array in step.writes:
                seen(array, at)
    for array in roots:
        seen(array, len(steps) + 1)
