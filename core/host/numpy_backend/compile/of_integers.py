"""How a Call says that it multiplies integers: its sums are the same in every order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backend import get_backend
from ....tensor import Tensor
from ..storage import Array

Ends = tuple[int, int]


class OfIntegers:
    """The product or convolution of integers between ends, one of which is the case, by a weight of integers times the
    unit of each output: the method of a Call. What changes the weight of such a Call makes it another product. unit:
    powers of two that broadcast against the weight, None for 1."""

    def __init__(self, op: str, weight: Tensor, ends: list[Ends], unit: Array | None = None) -> None:
        self.op = op
        self.weight = weight
        self.ends = ends
        self.unit = unit

    def __call__(self, *args: Any) -> Tensor:
        found: Tensor = getattr(get_backend("numpy"), self.op)(*args)
        return found

    @property
    def integers(self) -> Array:
        """The weight in units."""
        data: Array = self.weight.data
        return data if self.unit is None else data / self.unit

    def in_units(self, shift: Tensor) -> Array | None:
        """What is added to each output, in units, if these are integers."""
        found: Array = shift.data.reshape(-1)
        found = found if self.unit is None else found / self.unit.reshape(-1)
        return found if np.array_equal(np.rint(found), found) else None
