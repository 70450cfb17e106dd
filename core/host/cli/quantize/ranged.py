"""Generated modules whose layers quantize their inputs, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emberlet.codegen.quantized.writing import Scheme

from ....errors import UnsupportedError
from ....store.quantizing import multiplying
from ....store.weight_methods.ranges import grids
from ..model import Input
from .models import Arrays, Source, calls


class OfEachCall(Source):
    """A float model whose layers quantize their inputs by the range of each call."""

    activations = "by the range of each call"
    integers = "dynamic"


class Ranged(Source):
    """A float model whose layers quantize their inputs to grids from samples: the line that quantizes the module's
    weights has them."""

    def __init__(
        self, path: str, name: str | None, samples: Callable[[Sequence[Input]], Arrays], method: str, percentile: float,
        tell: Callable[[str], None], equalize: bool = False, form: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(path, name, equalize, form)
        self.activations, self._percentile = method, percentile
        self._observe(self.model, samples(self.inputs), tell)
        if not self.integers:
            raise UnsupportedError(
                f"{path}: no layer multiplies inputs that have ranges on the samples; leave out activations"
            )

    def choose(self, scheme: Scheme, correct_bias: bool, samples: Arrays, tell: Callable[[str], None]) -> None:
        super().choose(scheme, correct_bias, samples, tell)
        if scheme.method == "awq":  # which scales the inputs
            self._observe(self.variant(scheme.with_activations(None)), samples, tell)

    def _observe(self, model: Any, samples: Arrays, tell: Callable[[str], None]) -> None:
        rows = calls(self.inputs, samples, 1)
        found, infinite = grids(
            model, dict(multiplying(model)), rows, self.activations or "minmax", self._percentile, tell
        )
        self.integers = {name: grid for name, grid in found.items() if name in self.layers}
        self.notes = tuple(f"inputs of {name} become NaN or infinite on a sample and stay floats" for name in infinite)
