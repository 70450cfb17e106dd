"""Recurrent layers: LSTM, GRU and RNN with constant weights become the layers of emberlet.nn.

Variants that these layers do not support remain calls of the functional layer: sequence lengths, peepholes, and
activations other than the defaults (an RNN may have another, if both directions share it).
"""

from __future__ import annotations

from typing import Any

from ..emit.names import said_by_operator
from ..ir.argument import ABSENT, Argument
from ..ir.choices import Activation, RecurrentKind
from ..ir.graph import Node
from ..ir.value import ints_value
from ..ops.base import axes_of
from ..ops.constant import ConstantOfShape
from ..ops.expansion import Expand
from ..ops.movement import (
    AxesConfig,
    Identity,
    Reshape,
    ReshapeConfig,
    Squeeze,
    Transpose,
    TransposeConfig,
    Unsqueeze,
)
from ..ops.recurrent import DEFAULT_ACTIVATIONS, Recurrent
from ..ops.recurrent_layers import GATES, RecurrentLayer, RecurrentLayerConfig
from ..ops.slicing import Slice
from ..records import replace
from .rewriting import (
    Change,
    Walk,
    instead,
    interim,
    number,
    replaced_by,
    same_shape,
    typed,
    value_of,
)

KINDS = {"LSTM": RecurrentKind.LSTM, "GRU": RecurrentKind.GRU, "RNN": RecurrentKind.RNN}
# An RNN's activations without parameters.
PLAIN = (Activation.TANH, Activation.RELU, Activation.SIGMOID, Activation.SOFTSIGN)
MOVES = (Slice, Squeeze, Unsqueeze, Reshape, Transpose, Expand, Identity)
SWAP = TransposeConfig((1, 0, 2))


def step(node: Node[Any], walk: Walk) -> Change | None:
    if isinstance(node, Recurrent):
        return layer(node, walk)
    if isinstance(node, RecurrentLayer):
        return batch_first(node, walk)
    if isinstance(node, Squeeze):
        return squeezed(node, walk)
    if isinstance(node, Transpose):
        return moved(node, walk)
    return restored(node, walk) if isinstance(node, Reshape) else None


def layer(node: Recurrent, walk: Walk) -> Change | None:
    """A node with constant weights, as a layer."""
    config, r = held(node), node.value(2)
    return None if config is None or r is None else as_layer(node, walk, config, r.shape[2], RecurrentLayer)


def as_layer(
    node: Node[Any], walk: Walk, config: RecurrentLayerConfig, width: int, kind: type[RecurrentLayer],
    more: tuple[Argument, ...] = (),
) -> Change | None:  # fmt: skip
    """A node with the inputs and outputs of ONNX's recurrent operators as a layer and the nodes that bring its results
    into ONNX's order of axes. width: of the state; more: inputs of the layer after the states."""
    both, first, at = config.bidirectional, config.batch_first, 1 if config.batch_first else 0
    nodes: list[Node[Any]] = []

    def make(move: Any, x: Argument, given: tuple[int, ...], settings: Any, out: Argument | None = None) -> Argument:
        """Append a node of one input, or of two if numbers are given; returns its output."""
        name = walk.fresh(node.name + "::" + move.__name__.lower())
        inputs = (x, value_of(walk.fresh(name + "::numbers"), ints_value(given))) if given else (x,)
        nodes.append(move(name, inputs, (out or interim(name),), settings))
        return nodes[-1].outputs[0]

    def one(x: Argument) -> Argument:
        if not both:
            return make(Squeeze, x, (at,), AxesConfig(None))
        return make(Transpose, x, (), SWAP) if first else x

    given = [i for i in (5, 6) if node.has(i) and not zeros(node.inputs[i], walk)]
    states = [one(node.inputs[i]) if i in given else None for i in (5, 6)]
    bias = node.inputs[3] if node.has(3) else None
    inputs = [*node.inputs[:3], bias, *states, *more]
    del inputs[max(i for i, a in enumerate(inputs) if a is not None) + 1 :]
    last = ("hidden", "cell") if config.kind is RecurrentKind.LSTM else ("hidden",)
    results = [interim(walk.fresh(f"{node.name}::{r}")) for r in ("steps", *last)]
    if both and not first:  # these states have ONNX's order of axes
        results[1:] = [o if o.present else r for o, r in zip(node.outputs[1:], results[1:], strict=False)] + results[
            max(len(node.outputs), 1) :
        ]
    name = results[0].name if said_by_operator(node.name, node.op()) else node.name
    nodes.append(kind(name, tuple(i or ABSENT for i in inputs), tuple(results), config))
    for out, state in zip(node.outputs[1:], results[1:], strict=False):
        if out.present and not both:
            make(Unsqueeze, state, (at,), AxesConfig(None), out)
        elif out.present and first:
            make(Transpose, state, (), SWAP, out)
    steps, shape = node.outputs[0], (0, 0, 2, width) if both else ()
    if steps.present and not both:
        make(Unsqueeze, results[0], (1 + at,), AxesConfig(None), steps)
    elif steps.present and first:
        make(Reshape, results[0], shape, ReshapeConfig(None, False), steps)
    elif steps.present:
        unmerged = make(Reshape, results[0], shape, ReshapeConfig(None, False))
        make(Transpose, unmerged, (), TransposeConfig((0, 2, 1, 3)), steps)
    return instead(node, "made layers of {} recurrent nodes", *nodes)


def zeros(a: Argument, walk: Walk) -> bool:
    """Whether a state is all zeros, as the layers' initial state."""
    node = walk.producer(a)
    while isinstance(node, MOVES):
        a = node.inputs[0]
        node = walk.producer(a)
    if isinstance(node, ConstantOfShape):
        return node.config.value.item() == 0
    return number(a) == 0


def held(node: Recurrent) -> RecurrentLayerConfig | None:
    """The layer equivalent to the node; None if there is none."""
    c, kind, n = node.config, KINDS[node.op()], node.directions()
    w, r = node.value(1), node.value(2)
    if w is None or r is None or not w.dtype.is_float or w.dtype is not r.dtype or node.tensor(0).rank not in (None, 3):
        return None
    if w.dtype is not node.dtype(0) or w.dtype.bits < 16:
        return None
    rows = len(GATES[kind]) * r.shape[-1]
    if w.shape[:2] != (n, rows) or len(w.shape) != 3 or r.shape[:2] != (n, rows) or len(r.shape) != 3:
        return None
    bias = node.value(3)
    if node.has(3) and (bias is None or bias.shape != (n, 2 * rows) or bias.dtype is not w.dtype):
        return None
    if node.has(4) or node.has(7) or c.alphas or c.betas:
        return None
    default = DEFAULT_ACTIVATIONS[node.op()]
    found = c.activations or default * n
    one = found[: len(default)]
    if found != one * n or (one != default and not (kind is RecurrentKind.RNN and one[0] in PLAIN)):
        return None
    return RecurrentLayerConfig(kind, n == 2, c.direction == "reverse", c.clip, c.batch_first, c.switch, found[0])


def batch_first(node: RecurrentLayer, walk: Walk) -> Change | None:
    """A layer whose input is transposed from (batch, steps) to (steps, batch) takes the batch first instead."""
    swap = walk.made_by(node.inputs[0], Transpose)
    if node.config.batch_first or swap is None or swap.config.perm != SWAP.perm or not walk.alone(node.inputs[0]):
        return None
    steps = interim(walk.fresh(node.name + "::batch first"))
    config: Any = replace(node.config, batch_first=True)
    turned = replace(node, inputs=(swap.inputs[0], *node.inputs[1:]), outputs=(steps, *node.outputs[1:]), config=config)
    back = Transpose(walk.fresh(node.name + "::back"), (steps,), node.outputs[:1], SWAP)
    return instead(node, "made {} recurrent layers take the batch first", typed(turned), back)


def squeezed(node: Squeeze, walk: Walk) -> Change | None:
    """Skips a new axis that is removed again."""
    before = walk.made_by(node.inputs[0], Unsqueeze)
    new, gone = before.axes() if before is not None else None, node.axes()
    if before is None or new is None or gone is None:
        return None
    rank = node.tensor(0).rank
    if rank is not None:
        new, gone = axes_of(new, rank), axes_of(gone, rank)
    if sorted(new) != sorted(gone):
        return None
    return replaced_by(node, "removed {} pairs of an axis added and removed", before.inputs[0])


def moved(node: Transpose, walk: Walk) -> Change | None:
    """Adds a new axis where a permutation moves it, if the other axes stay in order."""
    before = walk.made_by(node.inputs[0], Unsqueeze)
    axes, rank = before.axes() if before is not None else None, node.tensor(0).rank
    if before is None or axes is None or rank is None or not walk.alone(node.inputs[0]):
        return None
    new = axes_of(axes, rank)
    perm = node.perm()
    if [p for p in perm if p not in new] != [i for i in range(rank) if i not in new]:
        return None
    places = value_of(walk.fresh(node.name + "::axes"), ints_value(tuple(i for i, p in enumerate(perm) if p in new)))
    made = Unsqueeze(node.name, (before.inputs[0], places), node.outputs, AxesConfig(None))
    return instead(node, "added {} new axes in their final place", made)


def restored(node: Reshape, walk: Walk) -> Change | None:
    """Skips reshapes to another shape and back."""
    before = walk.producer(node.inputs[0])
    if not isinstance(before, (Reshape, Unsqueeze, Squeeze)) or not same_shape(before.inputs[0], node.outputs[0]):
        return None
    return replaced_by(node, "removed {} reshapes back to an earlier shape", before.inputs[0])
