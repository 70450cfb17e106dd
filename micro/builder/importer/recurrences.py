"""LSTM, GRU and RNN."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.choices import Activation
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ops.recurrent import DEFAULT_ACTIVATIONS, GRU, LSTM, RNN, Recurrent

from ..kernels.layer import Array
from ..kernels.move import Move, Part
from ..kernels.nest import Axis
from ..kernels.recurrent_float import GatedGruFloat, GruFloat, LstmFloat, RnnFloat
from .layout import StoredTensor, dims_of
from .state import Importer
from .table import translates

# ONNX's order of gates is input, output, forget, cell and update, reset, candidate; ours is that of the kernels.
LSTM_GATES = (0, 2, 3, 1)
GRU_GATES = (0, 1, 2)


@translates(LSTM, GRU, RNN)
def recurrent(t: Importer, node: Recurrent) -> None:
    c, n = node.config, node.directions()
    _check(node)
    held = t.of(node.inputs[0])
    steps, batch = (held.dims[1], held.dims[0]) if c.batch_first else held.dims[:2]
    if batch != 1:
        raise Problem(f"the batch size is {batch}; only 1 is supported")
    held = t.ordered(held, (0, 1, 2))
    features = held.dims[2]
    held = t.shaped(held, (steps, features))
    w, r = t.array(node, 1, "weights"), t.array(node, 2, "weights")
    b = t.array(node, 3, "a bias") if node.has(3) else np.zeros((n, 2 * w.shape[1]), np.float32)
    keep = _keeps(t, node)
    wanted = [o.present and o.name in t.outputs.read for o in node.outputs] + [False] * (3 - len(node.outputs))
    if keep:
        # The layer keeps its states, so a state that the model outputs only to read it again stays internal.
        for k in (1, 2):
            if wanted[k] and node.outputs[k].name in t.outputs.only_output and any(wanted[:k]):
                t.outputs.dropped.add(node.outputs[k].name)
                wanted[k] = False
    if wanted[2]:
        raise Problem("the last cell state is not supported as an output; the layer can keep it if it is an input too")
    if wanted[0]:
        _outputs(t, node, held, (w, r, b), steps, True, keep)
    elif wanted[1] and isinstance(node, RNN) and is_relu(node):
        # Calibration needs the state of every step in the graph, not only of the last.
        shape = (steps, n, 1, r.shape[2])
        every = Argument(f"{node.outputs[1].name}:steps", TensorType(node.dtype(0), shape))
        node = replace(node, outputs=(every, node.outputs[1]), config=replace(c, batch_first=False))
        _outputs(t, node, held, (w, r, b), steps, True, keep)
        _last_of(t, node, steps)
        return
    if wanted[0] and wanted[1]:
        _last_of(t, node, steps)
    elif wanted[1]:
        _outputs(t, node, held, (w, r, b), steps, False, keep)


def _last_of(t: Importer, node: Recurrent, steps: int) -> None:
    """The last state of each direction, taken from the sequence, which is stored as (steps, directions, hidden)."""
    n, sequence = node.directions(), t.layout.held[node.outputs[0].name]
    out = t.define(node.outputs[1], (0, 1, 2))
    hidden = out.dims[2]
    parts, sources = [], []
    for d in range(n):
        last = 0 if node.config.direction == "reverse" or d == 1 else steps - 1
        parts.append(Part((last * n + d) * hidden, d * hidden, (Axis(hidden, (1, 1)),)))
        sources.append(sequence.name)
    t.add(Move(f"{node.name} last", tuple(sources), out.name, out.shape, tuple(parts)))


def _check(node: Recurrent) -> None:
    c, expected = node.config, DEFAULT_ACTIVATIONS[node.op()] * node.directions()
    if isinstance(node, RNN) and set(c.activations) == {Activation.RELU}:
        expected = c.activations
    if c.activations and c.activations != expected:
        raise Problem(f"the activations {', '.join(c.activations)} are not supported; {', '.join(expected)} are")
    if c.clip or c.alphas or c.betas:
        raise Problem("clip and parameters of activations are not supported")
    if isinstance(node, LSTM) and (c.switch or node.has(7)):
        raise Problem("coupled gates and peepholes are not supported")
    if node.has(4) and node.value(4) is None:
        raise Problem("sequence lengths that the model computes are not supported; they must be constant")


def _keeps(t: Importer, node: Recurrent) -> bool:
    """Whether the initial state is a model input. If so, the layer keeps the state, and the input is removed."""
    keep = False
    for k in (5, 6):
        if not node.has(k):
            continue
        value = node.value(k)
        if value is not None:
            if np.any(np.frombuffer(bytes(value.raw()), np.uint8)):
                raise Problem("a constant initial state other than zeros is not supported")
            continue
        if not t.states.take(t.of(node.inputs[k]).name, t.layers, t.inputs):
            raise Problem("an initial state that the model computes is not supported")
        keep = True
    return keep


def _outputs(
    t: Importer,
    node: Recurrent,
    held: StoredTensor,
    weights: tuple[Array, Array, Array],
    steps: int,
    sequence: bool,
    keep: bool,
) -> None:
    """One layer per direction; their outputs are joined."""
    n = node.directions()
    hidden = weights[1].shape[2]
    names = []
    for d in range(n):
        reverse = node.config.direction == "reverse" or d == 1
        name = t.layout.fresh(f"{node.outputs[0 if sequence else 1].name}:{d}")
        t.layout.shapes[name] = (steps, hidden) if sequence else (hidden,)
        t.add(_layer(node, held.name, name, steps, [x[d] for x in weights], reverse, sequence, keep))
        names.append(name)
    output = node.outputs[0 if sequence else 1]
    if n == 1:
        dims = dims_of(output)
        t.layout.held[output.name] = t.shaped(StoredTensor(names[0], dims, tuple(range(len(dims)))))
        return
    out = t.define(output, _joined_order(node, sequence))
    rows = steps if sequence else 1
    parts = tuple(Part(0, d * hidden, (Axis(rows, (hidden, n * hidden)), Axis(hidden, (1, 1)))) for d in range(n))
    t.add(Move(f"{node.name} join", tuple(names), out.name, out.shape, parts))


def _joined_order(node: Recurrent, sequence: bool) -> tuple[int, ...]:
    """Outputs are (steps, directions, batch, hidden), or batch first; the batch size is 1."""
    return (0, 1, 2, 3) if sequence else (0, 1, 2)


def _layer(
    node: Recurrent,
    source: str,
    output: str,
    steps: int,
    weights: list[Array],
    reverse: bool,
    sequence: bool,
    keep: bool,
) -> LstmFloat | GruFloat | GatedGruFloat | RnnFloat:
    w, r, b = weights
    gates = LSTM_GATES if isinstance(node, LSTM) else GRU_GATES if isinstance(node, GRU) else (0,)
    hidden = r.shape[1]

    def by_unit(x: Array) -> Array:
        """Reorder rows from gate by gate to unit by unit."""
        split = x.reshape(len(gates), hidden, -1)[list(gates)]
        return np.swapaxes(split, 0, 1).reshape(len(gates) * hidden, -1)

    half = len(b) // 2
    at = (
        f"{node.name}{' back' if reverse else ''}",
        (source,),
        output,
        steps,
        hidden,
        by_unit(w),
        by_unit(r),
        by_unit(b[:half]).reshape(-1),
        by_unit(b[half:]).reshape(-1),
        reverse,
        sequence,
        keep,
    )
    if isinstance(node, RNN):
        return RnnFloat(*at, relu=is_relu(node))
    if isinstance(node, LSTM):
        return LstmFloat(*at)
    return GruFloat(*at) if node.config.switch else GatedGruFloat(*at)


def is_relu(node: RNN) -> bool:
    """Whether the activation is ReLU rather than tanh."""
    return bool(node.config.activations) and node.config.activations[0].lower() == "relu"
