"""Indices that a plan checks in each call, with the words of the functions that take them."""

from __future__ import annotations

from ....functional.indexing.visibility import refuse
from ....tensor import Tensor
from ..storage import Array


def check(index: Array, lowest: int, end: int, message: str, axis: int) -> None:
    """Raise IndexingError if an index is less than `lowest` or not less than `end`."""
    if index.size:
        refuse(int(index.min()), int(index.max()), lowest, end, message, axis)


def checked(index: Tensor, lowest: int, end: int, message: str, axis: int) -> Tensor:
    """index, once it is checked."""
    check(index.data, lowest, end, message, axis)
    return index
