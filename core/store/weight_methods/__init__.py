"""Choosing a model's quantized weights by samples: GPTQ, AWQ and bias correction (Module.quantize_weights).

Layers are taken in the order in which the model calls them, and each sees what the layers quantized before it give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors.warning import warn
from ...functional.arrays import asarray
from ...functional.quantized.weights import WeightScheme, as_rows, pack_levels
from ...module import leaves
from ...module.narrowing import PrecisionWarning
from ...nn.conv import Conv
from ...nn.conv_transpose import ConvTranspose
from ...nn.linear import Linear
from ...nn.quantized_weight import QuantizedWeight
from ...param import Param
from .awq import input_scales
from .gptq import gptq, nearest, split
from .recording import Group, Moments, Sample, groups, means, moments

MOST_MOMENTS = 1 << 24
"""Second moments of a layer's inputs that are always computed: those of 4,096 inputs."""

Tell = Callable[[str], None]


def choose(
    module: Any, made: Any, samples: Sequence[Sample], scheme: WeightScheme, method: str, correct_bias: bool,
    pairs: Mapping[str, tuple[Any, Any]], tell: Tell,
) -> None:  # fmt: skip
    """Set the weights of `made`, a copy of the float `module` whose weights are rounded to the nearest, by a method,
    and with `correct_bias` its biases. pairs: name -> (layer of module, its copy) of those that have weights.
    Layers that no sample reaches, or with inputs that are not finite, stay rounded to the nearest; a PrecisionWarning
    names the latter."""
    chosen = {name: both for name, both in pairs.items() if isinstance(both[1].weight, QuantizedWeight)}
    floats, layers = ({name: both[k] for name, both in chosen.items()} for k in (0, 1))
    order = groups(made, layers, samples)
    if method != "rtn":
        _weights(made, layers, floats, order, samples, scheme, method, tell)
    if correct_bias:
        _correct(module, made, layers, floats, order, samples, tell)


def _weights(
    made: Any, layers: Mapping[str, Any], floats: Mapping[str, Any], order: Sequence[Group], samples: Sequence[Sample],
    scheme: WeightScheme, method: str, tell: Tell,
) -> None:  # fmt: skip
    done: set[int] = set()  # weights that several layers share are chosen once
    left = []
    for k, group in enumerate(order):
        chosen = group.only(
            name for name in group.names if takes(layers[name], method) and id(layers[name].weight) not in done
        )
        if not chosen.names:
            continue
        tell(f"{method}: {k + 1} of {len(order)}, {', '.join(chosen.names)}")
        found = moments(made, layers, chosen, samples)
        done.update(id(layers[name].weight) for name in found)
        finite = {name: seen for name, seen in found.items() if all(np.isfinite(gram).all() for gram in seen.grams)}
        left += [name or "the layer" for name in found if name not in finite]
        if method == "awq" and finite:
            _scale(layers, floats, finite, scheme)
        for name, seen in finite.items() if method == "gptq" else ():
            _round(layers[name], floats[name], seen, scheme)
    if left:
        said = f"{method} rounds {', '.join(left)} to the nearest: the samples' inputs or their squares are not finite"
        tell(said)
        warn(said, PrecisionWarning)


def takes(layer: Any, method: str) -> bool:
    """Whether a method chooses the weights of a layer: GPTQ those of Linear and convolutions, AWQ those of Linear. A
    layer whose second moments would be far larger than its weights stays rounded to the nearest."""
    if not isinstance(layer, Linear) and (
        method != "gptq" or not isinstance(layer, Conv) or isinstance(layer, ConvTranspose)
    ):
        return False
    size = prod(layer.weight.shape)
    inputs = size // max(1, layer.weight.shape[layer.weight.axis])
    return bool(getattr(layer, "groups", 1) * inputs * inputs <= max(MOST_MOMENTS, 64 * size))


def _rows(real: Any, axis: int) -> Any:
    return np.asarray(as_rows(real.weight.val(), axis)).astype(np.float64)


def _scale(
    layers: Mapping[str, Any], floats: Mapping[str, Any], seen: Mapping[str, Moments], scheme: WeightScheme
) -> None:  # fmt: skip
    """Choose the scales of the one input of a group's layers, as AWQ's authors do, and round their weights. floats: the
    layers in float."""
    rows = np.concatenate([_rows(floats[name], layers[name].weight.axis) for name in seen])
    scale = input_scales(rows, next(iter(seen.values())), scheme)
    for name in seen:
        held = layers[name].weight
        held.input_scale.set(asarray(scale, dtype="float32", backend=held.values.backend))
        held.fill(floats[name].weight.val())


def _round(layer: Any, real: Any, seen: Moments, scheme: WeightScheme) -> None:
    """Choose a layer's quantized weight by GPTQ. real: the layer in float."""
    held = layer.weight
    rows = _rows(real, held.axis)
    parts = np.split(rows, len(seen.grams))
    plain = split(nearest(rows, scheme), len(parts))  # whose scales and zero points the layer has
    levels = np.concatenate(
        [gptq(w, gram, scheme, plain=p).levels for w, gram, p in zip(parts, seen.grams, plain, strict=True)]
    )
    held.values.set(pack_levels(asarray(levels, dtype="uint8", backend=held.values.backend), held.bits))


def _correct(
    module: Any, made: Any, layers: Mapping[str, Any], floats: Mapping[str, Any], order: Sequence[Group],
    samples: Sequence[Sample], tell: Tell,
) -> None:  # fmt: skip
    """Add to each bias of one layer what the mean of its channel lost (Nagel, van Baalen, Blankevoort, Welling 2019,
    "Data-Free Quantization Through Weight Equalization and Bias Correction", arXiv:1906.04721, section 4.2, with the
    means of samples)."""
    places = {(id(holder), key): id(param) for _, holder, key, param in leaves(made, Param)}
    owners = Counter(places.values())  # a bias that something else reads, too, has no mean of one layer
    biased = tuple(
        name for group in order for name in group.names if owners[id(getattr(layers[name], "bias", None))] == 1
    )
    if not biased:
        return
    tell("correcting biases: the float model")
    wanted = means(module, floats, Group(biased, None), samples)
    for k, group in enumerate(order):
        chosen = group.only(name for name in group.names if name in wanted)
        if not chosen.names:
            continue
        tell(f"correcting biases: {k + 1} of {len(order)}")
        for name, found in means(made, layers, chosen, samples).items():
            bias = layers[name].bias
            if bias.shape == found.shape:
                with np.errstate(invalid="ignore"):
                    better = np.asarray(bias.val()).astype(np.float64) + wanted[name] - found
                if np.isfinite(better).all():
                    bias.set(asarray(better, dtype=bias.dtype, backend=bias.backend))
