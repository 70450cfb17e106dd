"""How a Call says that it convolves integers: its sums are the same in every order."""

from __future__ import annotations

from typing import Any

from ....backend import get_backend
from ....tensor import Tensor

Ends = tuple[int, int]


class OfIntegers:
    """The convolution of integers between ends, one of which is the case, by a weight of integers: the method of a
    Call. What changes the weight of such a Call makes it another convolution."""

    def __init__(self, weight: Tensor, ends: list[Ends]) -> None:
        self.weight = weight
        self.ends = ends

    def __call__(self, *args: Any) -> Tensor:
        found: Tensor = get_backend("numpy").conv(*args)
        return found
