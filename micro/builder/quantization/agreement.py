"""How closely a model in int8 agrees with its float32, and what its samples and weights tell about that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from emberlet.host.quantization.calibration import Observed

from ..graph import Graph
from ..kernels.depthwise import DepthwiseFloat
from ..kernels.dot import DotFloat
from ..kernels.layer import Array
from .calibrate import each
from .indices import numbers, stored
from .recurrences import Recurrent, own_steps
from .reference import ZERO, dequantize, quantize_weights

FEW_SAMPLES = 10
"""Fewer samples say little about the ranges of a model's tensors."""


@dataclass(frozen=True)
class Agreement:
    """How closely int8 matches float32 on the calibration samples. same_best: the fraction of samples with the same
    class, or else the same largest element of the first output (None if it is not a vector); rms, worst: root mean
    square and largest difference in the first output, relative to its range; of: what same_best counts; left_out:
    whether each sample was left out of those that gave the ranges."""

    samples: int
    same_best: float | None
    rms: float
    worst: float
    of: str = "largest output"
    left_out: bool = False

    @property
    def share(self) -> float:
        """The share of samples with the same class; of numbers, one less the difference (root mean square)."""
        return 1 - self.rms if self.same_best is None else self.same_best

    def __str__(self) -> str:
        same = "" if self.same_best is None else f"the same {self.of} in {self.same_best:.1%}, "
        off = f"difference {self.rms:.2%} of the output's range (root mean square), {self.worst:.2%} at most"
        which = ", each left out of those that gave the ranges" if self.left_out else ""
        return f"int8 beside float32 on {self.samples} samples{which}: {same}{off}"


def rounded_weights(graph: Graph) -> tuple[str, ...]:
    """Notes on weights of a quantized model that are not stored in 8 bits: those of 16 bits, and floats."""
    names = []
    for layer in graph.layers:
        if isinstance(layer, DotFloat | DepthwiseFloat) and layer.name not in graph.weight_scales:
            weights = [quantize_weights(layer.weights.reshape(len(layer.weights), -1))]
            given = [layer.weights.reshape(len(layer.weights), -1)]
        elif isinstance(layer, Recurrent) and any(graph.grids[n].wide for n in layer.inputs if n in graph.grids):
            given = [layer.weights_input, layer.weights_state]
            weights = [own_steps(rows) for rows in given]
        else:
            continue
        for rows, (steps, scale) in zip(given, weights, strict=True):
            real = (steps.astype(np.float64) - ZERO) * scale.reshape(-1, 1)
            if np.abs(real - rows).max(initial=0) > 1e-5 * np.abs(rows).max(initial=0):
                names.append(layer.name)
                break
    if not names:
        return ()
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    which = f"{', '.join(names[:5])}{more}"
    return (f"the weights of {which} are rounded to 8 bits; in the model they are finer",)


def notes_on_samples(samples: Mapping[str, Array], seen: Mapping[str, Observed], graph: Graph) -> tuple[str, ...]:
    """What is strange about calibration samples."""
    notes = []
    count = len(next(iter(samples.values())))
    if count < FEW_SAMPLES:
        notes.append(f"{count} calibration samples are few; {FEW_SAMPLES} or more show the ranges of a model better")
    for name, x in samples.items():
        if count > 1 and not np.ptp(x, axis=0).any():
            notes.append(f"all calibration samples of {name!r} are equal: give what the model will see")
    if count > 1 and not notes:
        for name in graph.outputs:
            values = seen[name].values
            if values and len({v.tobytes() for v in values}) == 1:
                notes.append(
                    f"all calibration samples give the same {name!r}: are they scaled as they were in training?"
                )
    return tuple(notes)


Outputs = dict[str, list[Array]]
"""Rows of each output, a row for each sample."""


def outputs_of(graph: Graph, samples: Mapping[str, Array]) -> Outputs:
    """What `compare` compares: the first output of a float32 graph, and what decides its class, for each sample."""
    found: Outputs = {graph.outputs[0]: [], graph.decides or graph.outputs[0]: []}
    states: dict[str, Any] = {}
    for sample in each(samples):
        values = graph.run(sample, states)
        for name, rows in found.items():
            rows.append(values[name].reshape(-1))
    return found


def compare(graph: Graph, quantized: Graph, samples: Mapping[str, Array], outputs: Outputs | None = None) -> Agreement:
    """How closely int8 matches float32. outputs: those of float32, where they are known."""
    return _agreement(graph, outputs or outputs_of(graph, samples), _outputs_in_int8(quantized, samples))


PARTS = 4
"""Into how many the samples are divided, each of which is left out in turn."""

FEWEST_LEFT_OUT = 20 * PARTS
"""Of fewer samples, one that is far from the others decides: a good model would be refused."""

Quantize = Callable[[Graph, dict[str, Array]], Graph]


def compare_left_out(
    graph: Graph, samples: Mapping[str, Array], outputs: Outputs, step: int, quantize: Quantize
) -> Agreement:
    """How closely int8 matches float32 on samples that did not give the ranges: each part is left out in turn.

    graph: in float32; outputs: its own, of every `step`-th sample; quantize: the graph in int8, from samples.
    """
    rows = step * np.arange(len(outputs[graph.outputs[0]]))
    found: Outputs = {name: [*outputs[name]] for name in outputs}
    # Drawn, as the samples may lie in turns: a class in every fourth would be left out whole.
    places = np.random.default_rng(0).permutation(len(next(iter(samples.values())))) % PARTS
    for part in range(PARTS):
        own = rows[places[rows] == part]
        quantized = quantize(graph, {name: x[places != part] for name, x in samples.items()})
        given = {
            name: quantized.columns[name].of(x[own].reshape(len(own), -1)).reshape(x[own].shape)
            if name in quantized.columns
            else x[own]
            for name, x in samples.items()
        }
        for name, made in _outputs_in_int8(quantized, given).items():
            for k, row in zip(own // step, made, strict=True):
                found[name][k] = row
    return replace(_agreement(graph, outputs, found), left_out=True)


def _outputs_in_int8(quantized: Graph, samples: Mapping[str, Array]) -> Outputs:
    """What `outputs_of` gives, of a graph in int8, as numbers."""
    found: Outputs = {quantized.outputs[0]: [], quantized.decides or quantized.outputs[0]: []}
    rounded: dict[str, Any] = {}
    for sample in each(samples):
        bytes_ = quantized.run({n: stored(quantized, n, x) for n, x in sample.items()}, rounded)
        for n, rows in found.items():
            rows.append(_real(quantized, n, bytes_[n]))
    return found


def _agreement(graph: Graph, expected: Outputs, found: Outputs) -> Agreement:
    name, classes = graph.outputs[0], graph.decides or graph.outputs[0]
    a, b = np.stack(expected[name]).astype(np.float64), np.stack(found[name]).astype(np.float64)
    span = float(a.max() - a.min()) or 1.0
    off = np.abs(a - b) / span
    same, of = None, "class" if graph.decides else "largest output"
    if graph.decides:
        same = float(np.mean(np.rint(np.stack(expected[classes])) == np.rint(np.stack(found[classes]))))
    elif sum(n > 1 for n in graph.shapes[name]) == 1:
        same = float(np.mean(a.argmax(1) == b.argmax(1)))
    return Agreement(len(a), same, float(np.sqrt(np.mean(off**2))), float(off.max()), of)


def _real(graph: Graph, name: str, elements: Array) -> Array:
    """The numbers that the bytes of a tensor stand for, as a vector."""
    if name in graph.words:
        return numbers(graph, name, elements)
    return dequantize(elements, graph.grids[name].scale, graph.grids[name].zero).reshape(-1)
