"""Scales that are found in the call, as long as what they scale: NumPy takes two to three times as long for short rows
times one row as for as many numbers times each other. `Writer.map` repeats constants likewise."""

from __future__ import annotations

import numpy as np

from ..storage import Array
from .memory import Buffers
from .repeated import FAR, REPEATED, SHORT
from .steps import Step, arrays_in


def spread_scales(steps: list[Step], buffers: Buffers, kept: list[Array]) -> None:
    """Change steps that multiply a constant row by a number, if one small elementwise step alone reads the product and
    broadcasts it: the first step makes all that the second one needs. kept: arrays that are needed as they are."""
    users: dict[int, list[Step]] = {}
    for step in steps:
        for key in {id(buffers.of(a)) for a in (*arrays_in(step.args), *step.writes)}:
            users.setdefault(key, []).append(step)
    needed = {id(buffers.of(array)) for array in kept}
    for step in steps:
        row = step.over if step.function is np.multiply else None
        if row is None or row.size < 2 or not row.flags.c_contiguous:
            continue
        key = id(buffers.of(row))
        if key not in needed and len(users[key]) == 2 and users[key][0] is step:
            _spread(step, row, users[key][1], buffers)


def _spread(step: Step, row: Array, user: Step, buffers: Buffers) -> None:
    number, constant = sorted(step.args[:2], key=np.size)
    if np.size(number) != 1 or np.size(constant) != row.size or buffers.of(constant) is not None:
        return
    out, own = user.over, buffers.of(row)
    seen = [x for x in user.args if isinstance(x, np.ndarray) and buffers.of(x) is own]
    if out is None or not isinstance(user.function, np.ufunc) or len(seen) != 1 or seen[0] is out:
        return
    shape = seen[0].shape
    if seen[0].size != row.size or shape == out.shape or out.dtype != row.dtype or not out.flags.c_contiguous:
        return
    if out.nbytes > (FAR if row.size == shape[-1] <= SHORT else REPEATED):
        return
    whole = buffers.new(out.shape, row.dtype)
    step.args = number, np.broadcast_to(constant.reshape(shape), out.shape).copy(), whole
    step.writes, step.over = (whole,), whole
    user.args = tuple(whole if x is seen[0] else x for x in user.args)
