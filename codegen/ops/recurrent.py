"""Recurrent layers over whole sequences, in ONNX's layout of weights."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Expr, Index, Liftable, SliceKey, lift
from ..emit.names import informative, owner_of
from ..ir.choices import Activation, Direction
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, Shape, TensorType, Type
from ..records import dataclass
from .attributes import Attributes
from .base import dim_at

DEFAULT_ACTIVATIONS = {
    "RNN": (Activation.TANH,),
    "GRU": (Activation.SIGMOID, Activation.TANH),
    "LSTM": (Activation.SIGMOID, Activation.TANH, Activation.TANH),
}


@dataclass(frozen=True)
class RecurrentConfig:
    """switch: linear_before_reset of a GRU, input_forget of an LSTM."""

    direction: Direction
    activations: tuple[Activation, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    clip: float
    batch_first: bool
    switch: bool


@dataclass(frozen=True)
class Recurrent(Node[RecurrentConfig], ABC):
    """Inputs x, w, r, b, sequence_lens, initial_h, and an LSTM's initial_c and peepholes; outputs y and the states."""

    function: ClassVar[str]
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    switch: ClassVar[str] = ""

    @classmethod
    def read(cls, a: Attributes) -> RecurrentConfig:
        a.has("hidden_size")
        if a.opset < 7:
            a.has("output_sequence")
        return RecurrentConfig(
            a.choice("direction", Direction, Direction.FORWARD),
            a.activations("activations"),
            a.floats("activation_alpha", ()),
            a.floats("activation_beta", ()),
            a.float("clip", 0.0),
            a.flag("layout"),
            a.flag(cls.switch) if cls.switch else False,
        )

    def directions(self) -> int:
        return 2 if self.config.direction == "bidirectional" else 1

    def infer(self) -> tuple[Type, ...]:
        x, r = self.tensor(0), self.shape(2)
        if x.shape is not None and len(x.shape) != 3:
            raise Problem(f"the input has rank {len(x.shape)}, expected (steps, batch, features)")
        hidden: Dim = dim_at(r, 2)
        n = self.directions()
        if isinstance(hidden, int):
            gates = self.gates * hidden
            self._check("recurrence weights", r, (n, gates, hidden))
            self._check("weights", self.shape(1), (n, gates, dim_at(x.shape, 2)))
            self._check("bias", self.shape(3) if self.has(3) else None, (n, 2 * gates))
        steps, batch = dim_at(x.shape, 0), dim_at(x.shape, 1)
        if self.config.batch_first:
            steps, batch = batch, steps
            state = TensorType(x.dtype, (batch, n, hidden))
            return (TensorType(x.dtype, (batch, steps, n, hidden)), *(state,) * self.states)
        state = TensorType(x.dtype, (n, batch, hidden))
        return (TensorType(x.dtype, (steps, n, batch, hidden)), *(state,) * self.states)

    def _check(self, what: str, found: Shape | None, wanted: tuple[Dim, ...]) -> None:
        if found is None:
            return
        if len(found) != len(wanted) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(found, wanted, strict=True)
        ):
            raise Problem(f"the {what} {found} should be {wanted}")

    def options(self, e: Emitter) -> dict[str, Liftable | Default]:
        c = self.config
        activations = c.activations if c.activations != DEFAULT_ACTIVATIONS[self.op()] * self.directions() else ()
        given: dict[str, Liftable | Default] = {
            "initial_h": default(e.optional(5)),
            "sequence_lens": default(e.optional(4)),
            "direction": default(c.direction),
            "activations": default(activations or None),
            "alphas": default(c.alphas),
            "betas": default(c.betas),
            "clip": default(c.clip),
            "batch_first": default(c.batch_first),
        }
        if self.switch:
            given[self.switch] = default(c.switch)
        return given

    def emit(self, e: Emitter) -> Emission:
        weights = [
            self.weight(e, i, role) for i, role in ((1, "weight"), (2, "recurrence"), (3, "bias")) if self.has(i)
        ]
        out = e.call(self.function, e.x(0), *weights, **self.options(e))
        asked = len(self.outputs)
        if asked == 1:
            return e.index(out, 0)
        return out if asked > self.states else Index(out, SliceKey(None, lift(asked)))

    def weight(self, e: Emitter, i: int, role: str) -> Expr:
        """Input i; a constant with a meaningless name (exporters fold them) is named after its purpose."""
        value, name = self.value(i), self.inputs[i].name
        if value is None or owner_of(name) or informative(name, self.op()):
            return e.x(i)
        return e.parameter(f"{self.function}_{role}", value)


class RNN(Recurrent):
    since, static = (1, 7, 14, 22), (1, 2, 3)
    function, gates = "rnn", 1
    carries = ((5, 1, None),)


class GRU(Recurrent):
    since, static = (1, 3, 7, 14, 22), (1, 2, 3)
    function, gates, switch = "gru", 3, "linear_before_reset"
    carries = ((5, 1, None),)


class LSTM(Recurrent):
    since, static = (1, 7, 14, 22), (1, 2, 3, 7)
    function, gates, states, switch = "lstm", 4, 2, "input_forget"
    carries = ((5, 1, None), (6, 2, None))

    def options(self, e: Emitter) -> dict[str, Liftable | Default]:
        return {
            **super().options(e),
            "initial_c": default(e.optional(6)),
            "peepholes": default(e.optional(7)),
        }
