"""Splitting batches of any size into pieces that run on a few plans. A compiled model has a plan for each shape.

Batches of a data set have many sizes (the end of a file, the rest after a filter), so they are split into pieces, and a
piece without a plan of its size is padded to a size that has one. This is correct if rows do not influence each other,
which is tested once, before results of a padded piece are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ShapeError

Arrays = list[NDArray[Any]]
Call = Callable[[Arrays], list[Any]]

MOST_ROWS = 256
MOST_BYTES = 4 << 20  # bytes of one input in a piece
PLANS = 4  # sizes with plans of their own, besides the full piece


def rows_at_once(inputs: Sequence[NDArray[Any]]) -> int:
    """The rows of a piece: a power of two, at most MOST_ROWS, such that each input takes at most MOST_BYTES."""
    widest = max([1, *(x.nbytes // max(1, len(x)) for x in inputs)])
    return int(min(MOST_ROWS, 1 << max(0, (MOST_BYTES // widest).bit_length() - 1)))


class Pieces:
    """Calls of a model on any number of rows.

    call: runs the model, with a plan if it is compiled. plain: runs it without one. fixed: the model's batch size, if
    its file fixes one. compiled: whether every size costs a plan. batch_size: the rows of a
    piece; None: `rows_at_once`.
    """

    def __init__(
        self, call: Call, plain: Call, fixed: int | None, compiled: bool, batch_size: int | None = None
    ) -> None:
        self._call, self._plain = call, plain
        self._fixed, self._compiled, self._batch_size = fixed, compiled, batch_size
        self._sizes: set[int] = set()
        self._independent: bool | None = None
        self._lock = Lock()

    def run(self, inputs: Arrays, shared: Sequence[bool]) -> list[NDArray[Any]]:
        """The outputs for all rows. shared: which inputs belong to all rows and are not split."""
        rows = next(len(x) for x, common in zip(inputs, shared, strict=True) if not common)
        own = [x for x, common in zip(inputs, shared, strict=True) if not common]
        most = self._fixed or self._batch_size or rows_at_once(own)
        found = []
        for start, stop in _cuts(rows, most):
            piece = [x if common else x[start:stop] for x, common in zip(inputs, shared, strict=True)]
            found.append(self._piece(piece, shared, stop - start, most))
        return found[0] if len(found) == 1 else [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _piece(self, piece: Arrays, shared: Sequence[bool], rows: int, most: int) -> list[NDArray[Any]]:
        wanted = self._size(rows, most)
        if wanted == rows:
            return _checked(self._call(piece), rows)
        filled = [x if common else _filled(x, wanted) for x, common in zip(piece, shared, strict=True)]
        if self._fixed:
            return [x[:rows] for x in _checked(self._call(filled), wanted)]
        if self._independent is None:
            self._independent = self._try(piece, filled, rows)
        if not self._independent:
            return _checked(self._plain(piece), rows)
        return [x[:rows] for x in _checked(self._call(filled), wanted)]

    def _size(self, rows: int, most: int) -> int:
        """The number of rows to compute for a piece of `rows`: as many, or more."""
        if self._fixed:
            return self._fixed
        if not self._compiled or self._independent is False:
            return rows
        with self._lock:
            if rows == most or rows in self._sizes or len(self._sizes) < PLANS:
                if rows != most:
                    self._sizes.add(rows)
                return rows
            return min([most, *(n for n in self._sizes if n > rows)])

    def _try(self, piece: Arrays, filled: Arrays, rows: int) -> bool:
        """Whether the first rows of a padded piece have the same results as without padding."""
        alone, more = self._plain(piece), self._plain(filled)
        return all(
            np.shape(x)[:1] == (rows,) and np.shape(y)[1:] == np.shape(x)[1:] and _near(np.asarray(y)[:rows], x)
            for x, y in zip(alone, more, strict=True)
        )


def _near(x: NDArray[Any], y: NDArray[Any]) -> bool:
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    scale = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return bool(np.allclose(x, y, rtol=1e-3, atol=1e-5 * scale, equal_nan=True))


def _cuts(rows: int, most: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, most):
        yield start, min(rows, start + most)


def _filled(x: NDArray[Any], rows: int) -> NDArray[Any]:
    """`x` padded by repeating its last row, which is a valid row."""
    return np.concatenate([x, np.broadcast_to(x[-1:], (rows - len(x), *x.shape[1:]))])


def _checked(outputs: list[Any], rows: int) -> list[NDArray[Any]]:
    for i, x in enumerate(outputs):
        if np.shape(x)[:1] != (rows,):
            raise ShapeError(
                f"output {i} has the shape {np.shape(x)} for {rows} rows, without an axis of rows; name the outputs "
                f"that have one: outputs=[...]"
            )
    return outputs
