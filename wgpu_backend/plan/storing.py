"""Weights in fewer bits, for a plan's file: what stored.py expands."""

from __future__ import annotations

import itertools
from typing import Any

from emberlet import dtypes

from .stored import BLOCK, PARTS, stored_bytes

SMALLEST = 4096  # bytes: less is not worth its rounding
MOST_ERROR = 0.02
"""A tensor whose root mean square changes by more than this is stored as it is: its values are not weights."""


def parts_of(how: str | None, words: Any) -> list[Any]:
    """Sources of the tensors that stand for a float32 tensor, given as bytes; none where it is stored as it is.

    Raises ValueError for a `how` that is neither None nor one of stored.PARTS.
    """
    if how is not None and how not in PARTS:
        raise ValueError(f"weights are stored as {' or '.join(PARTS)}, not as {how!r}")
    if how is None or len(memoryview(words).cast("B")) < SMALLEST:
        return []
    import numpy as np
    from emberlet.host import burnpack_writer

    values = np.frombuffer(words, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        parts, restored = {"float16": _float16, "q8": _q8}[how](values)
        error = np.sqrt(np.mean((restored - values) ** 2, dtype=np.float64))
        allowed = MOST_ERROR * np.sqrt(np.mean(values**2, dtype=np.float64))
    if not error <= allowed:  # also where something is not finite
        return []
    found = []
    sizes = stored_bytes(how, values.nbytes)
    for part, size in itertools.zip_longest(parts, sizes):
        data = part.tobytes().ljust(size, b"\0")
        dtype = dtypes.int8 if part.dtype == np.int8 else dtypes.float16
        found.append(burnpack_writer.Source(dtype, (size * 8 // dtype.bits,), lambda data=data: data))
    return found


def _float16(values: Any) -> Any:
    import numpy as np

    half = values.astype(np.float16)
    return [half], half.astype(np.float32)


def _q8(values: Any) -> Any:
    import numpy as np

    blocks = np.pad(values, (0, -len(values) % BLOCK)).reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
    # A scale that is rounded down to float16 lets the largest value of its block reach 127.06: still 127.
    divisor = np.where(scales > 0, scales, 1).astype(np.float32)[:, None]
    whole = np.clip(np.rint(blocks / divisor), -127, 127).astype(np.int8)
    restored = (whole * scales.astype(np.float32)[:, None]).reshape(-1)[: len(values)]
    return [whole.reshape(-1)[: len(values)], scales], restored
