"""Recurrent layers with constant weights, as emberlet.nn holds them; a pass makes them from LSTM, GRU and RNN."""

from __future__ import annotations

from typing import ClassVar

from ..emit.emitter import Default, Emission, Emitter, default
from ..emit.expression import Attribute, Call, Expr, Name, lift
from ..emit.statement import Assign
from ..ir.choices import Activation, RecurrentKind
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType, Type
from ..ir.value import Fill, Stored, Value
from ..records import dataclass
from .base import dim_at, reshaped, transposed
from .internal import Internal

FAMILY = "the compiler's own"

# The gates in ONNX's order, as nn calls them.
GATES = {
    RecurrentKind.LSTM: ("input_gate", "output_gate", "forget_gate", "cell_gate"),
    RecurrentKind.GRU: ("update_gate", "reset_gate", "new_gate"),
    RecurrentKind.RNN: ("gate",),
}


@dataclass(frozen=True)
class RecurrentLayerConfig:
    """kind: the layer of emberlet.nn for one direction. switch: reset_after of a Gru, input_forget of an Lstm.
    activation: of an Rnn."""

    kind: RecurrentKind
    bidirectional: bool
    reverse: bool
    clip: float
    batch_first: bool
    switch: bool
    activation: Activation


class RecurrentLayer(Internal[RecurrentLayerConfig]):
    """x (steps, batch, features), or the batch first, the weights w, r and b in ONNX's layout, all constants, and the
    states h and c to begin with (batch, d_hidden), of both directions (2, batch, d_hidden). Returns the hidden states
    of all steps, with directions side by side, and the last states."""

    static: ClassVar[tuple[int, ...]] = (1, 2, 3)

    def states(self) -> int:
        return 2 if self.config.kind is RecurrentKind.LSTM else 1

    def infer(self) -> tuple[Type, ...]:
        c, x = self.config, self.tensor(0)
        if x.shape is not None and len(x.shape) != 3:
            raise Problem(f"the input has rank {len(x.shape)}, expected 3")
        hidden = self.hidden()
        batch = dim_at(x.shape, 0 if c.batch_first else 1)
        lead = x.shape[:2] if x.shape is not None else (None, None)
        state: tuple[Dim, ...] = (batch, hidden)
        if c.bidirectional:
            state = (2, *state)
            hidden = 2 * hidden if isinstance(hidden, int) else None
        return (TensorType(x.dtype, (*lead, hidden)), *(TensorType(x.dtype, state),) * self.states())

    def hidden(self) -> Dim:
        """The size of the state."""
        return dim_at(self.shape(2), 2)

    def emit(self, e: Emitter) -> Emission:
        layer = self.layer(e)
        given: tuple[Expr, ...] = (e.x(0),)
        if self.has(4) or self.has(5):
            given = (*given, self.begin(e))
        targets = e.targets()
        last = [t for t in targets[1:] if t != Name("_")]
        if self.config.kind is RecurrentKind.GRU:
            return Call(layer, given)
        state = Name(e.fresh("state") if last else "_")
        names = tuple(t.id for t in (targets[0], state) if isinstance(t, Name))
        e.push(Assign(names, Call(layer, given)))
        parts = (Attribute(state, "hidden"), Attribute(state, "cell"))
        return (targets[0], *(p if t != Name("_") else t for t, p in zip(targets[1:], parts, strict=False)))

    def begin(self, e: Emitter) -> Expr:
        """The layer's initial state."""
        hidden, cell = e.optional(4), e.optional(5)
        nothing = lift(None)
        if self.config.kind is RecurrentKind.LSTM:
            return Call(Attribute(Name("nn"), "LstmState"), (cell or nothing, hidden or nothing))
        if self.config.kind is RecurrentKind.RNN:
            return Call(Attribute(Name("nn"), "RnnState"), (hidden or nothing,))
        return hidden or nothing

    def layer(self, e: Emitter) -> Expr:
        """`self.lstm`, the field."""
        return self.field(e, "", self._weight(1).shape[2], self._weight(2).shape[2])

    def field(self, e: Emitter, prefix: str, features: int, width: int, **special: Default) -> Expr:
        """The field of a layer whose class has a name with this prefix, with arguments of its own."""
        c = self.config
        if not c.bidirectional:
            special["reverse"] = default(c.reverse)
        if c.kind is RecurrentKind.LSTM:
            special["input_forget"] = default(c.switch)
        elif c.kind is RecurrentKind.GRU:
            special["reset_after"] = default(c.switch)
        else:
            special["hidden_activation"] = default(c.activation)
        return e.layer(
            f"{prefix}{'Bi' if c.bidirectional else ''}{c.kind}",
            features,
            width,
            bias=default(self.has(3)),
            batch_first=default(c.batch_first),
            clip=default(c.clip or None),
            **special,
            weights=self.weights(width, features),
        )

    def weights(self, width: int, features: int) -> dict[str, Value | None]:
        """The parameters by their names in the layer."""
        c, out = self.config, dict[str, Value | None]()
        gates = GATES[c.kind]
        for d, direction in enumerate(("forward_layer.", "reverse_layer.") if c.bidirectional else ("",)):
            for g, gate in enumerate(gates):
                at = d * len(gates) + g
                for i, (part, columns) in enumerate((("input", features), ("hidden", width))):
                    name = f"{direction}{gate}.{part}_transform."
                    out.update(self.matrix(name + "weight", 1 + i, at, width, columns))
                    if self.has(3):
                        bias = (2 * d + i) * len(gates) + g
                        out[name + "bias"] = piece(self._weight(3), bias * width, width)
        return out

    def matrix(self, name: str, i: int, at: int, width: int, columns: int) -> dict[str, Value | None]:
        """The parameters of one weight: gate number `at`, counted through all directions, of input i."""
        rows = piece(self._weight(i), at * width * columns, width * columns)
        return {name: transposed(reshaped(rows, (width, columns)))}

    def _weight(self, i: int) -> Value:
        value = self.value(i)
        if value is None:
            raise Problem("a weight of a recurrent layer is not a constant")
        return value


def piece(value: Value, start: int, count: int) -> Value:
    """`count` elements of a constant, from number `start` on."""
    origin = ("piece", start, value.key())
    if isinstance(value.source, Fill):
        return Value(value.dtype, (count,), value.source, origin)
    width = value.dtype.bits // 8

    def load() -> memoryview:
        return memoryview(value.raw()).cast("B")[start * width : (start + count) * width]

    return Value(value.dtype, (count,), Stored(load, ("piece", start, value.content())), origin)
