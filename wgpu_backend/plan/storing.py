"""Encodes a plan's weights in fewer bits; stored.py expands them."""

from __future__ import annotations

import itertools
from typing import Any

from emberlet import dtypes

from .stored import BLOCK, stored_bytes

CHOICES = ("float16", "q8")
SMALLEST = 4096  # bytes: in smaller tensors the saving is not worth the rounding
MOST_ERROR = 0.02
"""A tensor whose relative root-mean-square error would exceed this is stored unchanged: its values are hardly
weights."""


def parts_of(how: str | None, words: Any) -> list[Any]:
    """Sources of the tensors that encode a float32 tensor, given as bytes; none if it is stored unchanged.

    Raises ValueError for a `how` that is neither None nor one of CHOICES.
    """
    from emberlet.host import burnpack_writer

    found = []
    parts = encoded(how, words)
    sizes = stored_bytes(how, memoryview(words).nbytes) if parts else []
    for part, size in itertools.zip_longest(parts, sizes):
        data = part.tobytes().ljust(size, b"\0")
        dtype = dtypes.int8 if part.dtype == "int8" else dtypes.float16
        found.append(burnpack_writer.Source(dtype, (size * 8 // dtype.bits,), lambda data=data: data))
    return found


def encoded(how: str | None, words: Any) -> list[Any]:
    """NumPy arrays that encode a float32 tensor, given as bytes; none if it is stored unchanged.

    Raises ValueError for a `how` that is neither None nor one of CHOICES.
    """
    if how is not None and how not in CHOICES:
        raise ValueError(f"weights are stored as {' or '.join(CHOICES)}, not as {how!r}")
    if how is None or memoryview(words).nbytes < SMALLEST:
        return []
    import numpy as np

    values = np.frombuffer(words, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        parts, restored = {"float16": _float16, "q8": _q8}[how](values)
        error = np.sqrt(np.mean((restored - values) ** 2, dtype=np.float64))
        allowed = MOST_ERROR * np.sqrt(np.mean(values**2, dtype=np.float64))
    return list(parts) if error <= allowed else []  # not so if a value is not finite


def _float16(values: Any) -> Any:
    import numpy as np

    half = values.astype(np.float16)
    return [half], half.astype(np.float32)


def _q8(values: Any) -> Any:
    import numpy as np

    blocks = np.pad(values, (0, -len(values) % BLOCK)).reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
    # If float16 rounds a scale down, the block's largest value reaches 127.06, which still rounds to 127.
    divisor = np.where(scales > 0, scales, 1).astype(np.float32)[:, None]
    whole = np.clip(np.rint(blocks / divisor), -127, 127).astype(np.int8)
    restored = (whole * scales.astype(np.float32)[:, None]).reshape(-1)[: len(values)]
    return [whole.reshape(-1)[: len(values)], scales], restored
