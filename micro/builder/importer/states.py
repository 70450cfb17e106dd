"""The states of a model: values that stay until its next inference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from emberlet.errors import ModelError

from ..graph import Reshape
from ..kernels.layer import Layer
from ..kernels.move import Move


@dataclass
class States:
    """first: the value of each state before the first inference; kept: the layers that write states; remembered:
    inputs that layers keep themselves."""

    first: dict[str, float] = field(default_factory=dict)
    kept: list[Layer] = field(default_factory=list)
    remembered: set[str] = field(default_factory=set)

    def take(self, name: str, layers: Iterable[Layer], inputs: Iterable[str]) -> bool:
        """Whether a tensor is a model input or a part of one. If so, a layer keeps it, and the input is removed."""
        writers = {layer.output: layer for layer in layers}
        while isinstance(writers.get(name), Move | Reshape) and len(writers[name].inputs) == 1:
            name = writers[name].inputs[0]
        if name not in inputs and name not in self.remembered:
            return False
        self.remembered.add(name)
        return True

    def without_remembered(self, layers: Iterable[Layer], outputs: Iterable[str]) -> list[Layer]:
        """The layers without those that only split what a layer keeps. Raises ModelError."""
        gone, left = set(self.remembered), []
        for layer in layers:
            if gone.isdisjoint(layer.inputs):
                left.append(layer)
            elif isinstance(layer, Move | Reshape):
                gone.add(layer.output)
            else:
                raise ModelError(f"layer {layer.name!r} reads a state that another layer keeps")
        if not gone.isdisjoint(outputs):
            raise ModelError("an output is an input state that a layer keeps")
        return left
