"""Quantizing weights: in files, as Burn's quantized tensors, and in modules, packed in the place of their Params."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from .. import dtypes
from ..errors import UnsupportedError
from ..errors.warning import warn
from ..functional.quantized.weights import CALIBRATIONS, WeightScheme
from ..host.extras import require
from ..module import Module, items
from ..module.narrowing import PrecisionWarning, check_scales
from ..nn.bilinear import Bilinear
from ..nn.conv import Conv, Conv1d, Conv2d, Conv3d
from ..nn.conv_transpose import ConvTranspose
from ..nn.embedding import Embedding
from ..nn.linear import Linear
from ..nn.quantized_layers import (
    QuantizedConv,
    QuantizedConv1d,
    QuantizedConv2d,
    QuantizedConv3d,
    QuantizedEmbedding,
    QuantizedLayer,
    QuantizedLinear,
)
from ..nn.quantized_weight import FakeQuantizedWeight, QuantizedWeight
from ..param import Param
from ..tensor import Tensor
from .filters import Filtering, filter_of
from .snapshot import Quantized, Snapshot

VALUES = {8: ("Q8S", dtypes.int8), 4: ("Q4S", dtypes.int4), 2: ("Q2S", dtypes.int2)}
MAX_BLOCK = 255  # a block's extent is a byte of the scheme
MAX_AXES = 5
Level = str | int | tuple[int, int]
Grids = str | Mapping[str, Any] | None
METHODS = ("rtn", "gptq", "awq")  # of weight_methods, which needs NumPy
# The layers with packed weights.
PACKED: dict[type, type] = {
    Linear: QuantizedLinear, Embedding: QuantizedEmbedding, Conv1d: QuantizedConv1d, Conv2d: QuantizedConv2d,
    Conv3d: QuantizedConv3d,
}  # fmt: skip


def quantized(s: Snapshot, bits: int, level: str | int | tuple[int, ...], calibration: str) -> Snapshot:
    """The snapshot, quantized; returned unchanged if it has integers or fewer than two axes. Raises
    UnsupportedError."""
    if bits not in VALUES or calibration not in CALIBRATIONS:
        raise UnsupportedError(
            f"weights are quantized to 8, 4 or 2 bits by {' or '.join(CALIBRATIONS)}; found {bits!r}, {calibration!r}"
        )
    if not s.dtype.is_float or len(s.shape) < 2 or s.size == 0:
        return s
    block = _block(s, level)
    grid = tuple(-(-n // b) for n, b in zip(s.shape, block, strict=True)) if block else (1,) * len(s.shape)
    value, dtype = VALUES[bits]
    unit = 32 // bits
    nbytes = -(-s.size // unit) * 4 + 4 * prod(grid)
    scheme = quantized_scheme(value, block)

    def levels() -> tuple[Tensor, Tensor, Tensor]:
        return _levels(s.tensor(), block or s.shape, grid, bits, calibration)

    def read() -> memoryview:
        found, scales, _ = levels()
        raw = bytes(found.backend.to_bytes(found.astype(dtype)))
        return memoryview(raw + bytes(-len(raw) % 4) + bytes(scales.backend.to_bytes(scales)))

    out = Snapshot(
        s.name, dtypes.float32, s.shape, make=lambda backend: levels()[2].to(backend), original=s.original,
        param_id=s.param_id, stored=f"{value} in u32", nbytes=nbytes,
    )  # fmt: skip
    out.quantized = Quantized(scheme, read, nbytes)
    return out


def quantized_scheme(
    value: str, block: tuple[int, ...] | None, scale: str = "F32"
) -> tuple[tuple[str, Any], ...]:  # fmt: skip
    """The scheme of a quantized tensor in a burnpack: values in 32-bit words, and one scale or that of each block."""
    size = None
    if block:
        extents = (("len", len(block)), ("storage", [*block, *[1] * (MAX_AXES - len(block))]))
        size = (("dtype", scale), ("size", extents))
    return (
        ("block", size), ("mode", "Symmetric"), ("store", (("PackedU32", 0),)), ("tensor", None if block else scale),
        ("value", value),
    )  # fmt: skip


def _block(s: Snapshot, level: str | int | tuple[int, ...]) -> tuple[int, ...] | None:
    """The extent of a block along each axis, or None for one scale."""
    if level == "tensor":
        return None
    if level == "channel":
        block = (*s.shape[:-1], 1)
    elif isinstance(level, int) and not isinstance(level, bool):
        block = (*(1 for _ in s.shape[1:]), level)
    elif isinstance(level, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in level):
        block = level
        if len(block) != len(s.shape):
            raise UnsupportedError(
                f"tensor {s.name!r} has {len(s.shape)} axes, a block of {block} has not; filter= selects tensors"
            )
    else:
        raise UnsupportedError(
            f"level is 'tensor', 'channel', a number of elements, or a block's extents along the axes, found {level!r}"
        )
    if len(block) > MAX_AXES or not all(1 <= n <= MAX_BLOCK for n in block):
        raise UnsupportedError(
            f"tensor {s.name!r}: a block of {block} cannot be stored; at most {MAX_BLOCK} along each of {MAX_AXES} axes"
        )
    return block


def _levels(
    x: Tensor, block: tuple[int, ...], grid: tuple[int, ...], bits: int, calibration: str
) -> tuple[Tensor, Tensor, Tensor]:
    """(levels, scales in the shape of the grid of blocks, dequantized values), all float32."""
    x = x.astype(dtypes.float32)
    backend = x.backend
    shape = x.shape
    whole = tuple(g * b for g, b in zip(grid, block, strict=True))

    def blocks(y: Tensor) -> Tensor:
        padding = tuple((0, w - n) for w, n in zip(whole, shape, strict=True))
        y = backend.pad(y, padding, 0.0) if whole != shape else y
        return y.reshape(tuple(n for pair in zip(grid, block, strict=True) for n in pair))

    axes = tuple(range(1, 2 * len(shape), 2))
    split = blocks(x)
    if calibration == "min-max":
        reach = abs(split).max(axis=axes, keepdims=True)
    else:
        counts = blocks(backend.full(shape, 1.0, dtypes.float32)).sum(axis=axes, keepdims=True)
        reach = abs(split).sum(axis=axes, keepdims=True) / counts
    top = float((1 << (bits - 1)) - 1)
    scale = reach / top
    one = backend.full((), 1.0, dtypes.float32)
    scale = backend.where(backend.binary("eq", scale, backend.full((), 0.0, dtypes.float32)), one, scale)
    found = (split / scale).round().clip(-top, top)
    starts, steps = (0,) * len(shape), (1,) * len(shape)

    def joined(y: Tensor) -> Tensor:
        return backend.slice(y.reshape(whole), starts, shape, steps)

    return joined(found), scale.reshape(grid), joined(found * scale)


def quantize_weights(
    module: Module, bits: int, mode: str, level: Level, calibration: str, filter: Filtering, fake: bool,
    kept: Sequence[str], input_scales: bool = False, method: str = "rtn", samples: Sequence[Any] | None = None,
    correct_bias: bool = False, tell: Callable[[str], None] | None = None, scale: Any = "float32", value: Any = None,
    activations: Grids = None,
) -> list[str]:  # fmt: skip
    """See Module.quantize_weights."""
    if activations is not None:
        _check_integers(module, activations, mode, level, fake, scale, value)
    if activations == "static":
        samples = _calls(samples)  # which are read more than once
    if activations == "static" and method != "awq":  # the other methods look at integers
        activations = _static(module, samples, tell)
    names = _quantize(
        module, bits, mode, level, calibration, filter, fake, kept, input_scales, method, samples, correct_bias, tell,
        scale, value, activations,
    )  # fmt: skip
    if activations == "static":  # of the inputs times AWQ's scales
        activations = _static(module, samples, tell)
    if activations is not None:
        _compute_with_integers(module, names, activations)
    if not fake:
        layers = {
            name[:-1]: layer.weight.scale for name, _, layer, _ in layers_with_weights(module) if name[:-1] in names
        }
        check_scales({name: param.val() for name, param in layers.items() if param.is_initialized})
    return names


def _check_integers(
    module: Module, activations: Grids, mode: str, level: Level, fake: bool, scale: Any, value: Any
) -> None:  # fmt: skip
    """Raise UnsupportedError unless layers with such weights can quantize their inputs so."""
    if activations not in ("static", "dynamic") and not isinstance(activations, Mapping):
        raise UnsupportedError(
            "activations is None, 'dynamic', 'static', or (scale, zero point) of the input of each layer by its name, "
            f"found {activations!r}"
        )
    whole = mode == "symmetric" and level in ("tensor", "channel") and str(scale) == "float32" and value is None
    if fake or not whole:
        raise UnsupportedError(
            "layers that quantize their inputs have symmetric weights of integers with one float32 scale for a channel "
            "or all: leave out activations, or mode, level, scale_dtype, value_dtype and fake"
        )
    known = dict(multiplying(module))
    unknown = [] if isinstance(activations, str) else [name for name in activations if name not in known]
    if unknown:
        raise UnsupportedError(
            f"activations names {unknown[0]!r}, which is no layer that multiplies integers; these are "
            f"{', '.join(known) or 'none'}"
        )
    for grid in () if isinstance(activations, str) else activations.values():
        QuantizedLayer()._grids(None, grid, None)  # raises before a layer has changed


def _static(module: Module, samples: Any, tell: Callable[[str], None] | None) -> dict[str, tuple[float, int]]:
    """The grids of the layers' inputs over samples, from the smallest to the largest."""
    require("choosing ranges by samples", "numpy")
    from .weight_methods.ranges import grids

    layers = dict(multiplying(module))
    found, infinite = grids(module, layers, samples, "minmax", 100.0, tell or (lambda _: None))
    if infinite:
        warn(f"inputs of {', '.join(infinite)} become NaN or infinite on a sample and stay floats", PrecisionWarning)
    return found


def multiplying(module: Module) -> Iterator[tuple[str, Any]]:
    """(name, layer) of those that can multiply integers. Those of gates cannot: recurrent layers read their weights."""
    for name, container, layer, _ in layers_with_weights(module):
        whole = type(layer) in PACKED and not isinstance(layer, Embedding)
        if (whole or isinstance(layer, (QuantizedLinear, QuantizedConv))) and "GateController" not in container:
            yield name[:-1], layer


def _compute_with_integers(module: Module, names: Collection[str], activations: Grids) -> None:
    """Let layers quantize their inputs: by the range of each call, or to grids of their own."""
    for name, layer in multiplying(module):
        grid = activations.get(name) if isinstance(activations, Mapping) else activations
        if name in names and grid is not None:
            layer._grids(None, grid, None)


def _quantize(
    module: Module, bits: int, mode: str, level: Level, calibration: str, filter: Filtering, fake: bool,
    kept: Sequence[str], input_scales: bool = False, method: str = "rtn", samples: Sequence[Any] | None = None,
    correct_bias: bool = False, tell: Callable[[str], None] | None = None, scale: Any = "float32", value: Any = None,
    activations: Grids = None,
) -> list[str]:  # fmt: skip
    """Quantize without a warning. activations: how layers quantize their inputs while a method looks at samples."""
    bits, level = _index(bits), _index(level)
    scheme = WeightScheme(bits, mode, level, calibration, scale, value)
    if method != "rtn" or correct_bias:
        return _by_samples(module, scheme, filter, fake, kept, method, samples, correct_bias, tell, activations)
    keep = filter_of(filter)
    made: dict[tuple[int, int], Module] = {}  # shared weights stay shared
    changes, names, known = [], [], set()
    for name, container, layer, axis in layers_with_weights(module):
        known.add(name[:-1])
        if name[:-1] in kept or not keep(name + "weight", container):
            continue
        param = layer.weight
        if isinstance(param, Param) and is_large(param.shape, axis):
            key = (id(param), axis)
            if key not in made:
                scaled = input_scales and isinstance(layer, Linear)
                made[key] = (
                    FakeQuantizedWeight(param, axis, scheme)
                    if fake
                    else QuantizedWeight.of(param, axis, scheme, scaled)
                )
            changes.append((layer, made[key]))
            names.append(name[:-1])
    lacking = [name for name in kept if name not in known]
    if lacking:
        raise UnsupportedError(f"keep names {lacking[0]!r}, which is no layer whose weight can be quantized")
    for layer, weight in changes:  # either all layers or, after an error, none
        layer.weight = weight
        if not fake:  # the layer stays the same object, so that every module that holds it has the quantized one
            layer.__class__ = PACKED.get(type(layer), type(layer))
    return names


def _index(n: Any) -> Any:
    """NumPy's integers as Python's, others as they are."""
    return operator.index(n) if hasattr(n, "__index__") and not isinstance(n, bool) else n


def _by_samples(
    module: Module, scheme: WeightScheme, filter: Filtering, fake: bool, kept: Sequence[str], method: str,
    samples: Sequence[Any] | None, correct_bias: bool, tell: Callable[[str], None] | None, activations: Grids,
) -> list[str]:  # fmt: skip
    """`quantize_weights` by a method that looks at samples."""
    if method not in METHODS:
        raise UnsupportedError(f"weights are chosen by {', '.join(METHODS)}, found {method!r}")
    require("choosing weights by samples", "numpy")
    from .weight_methods import choose

    if fake:
        raise UnsupportedError(f"{method} chooses packed weights; leave out fake")
    if (scheme.value is not None or scheme.codebook) and method != "rtn":
        named = scheme.codebook or scheme.value
        raise UnsupportedError(f"{method} chooses integers, not {named}; leave out value_dtype or the method")
    if scheme.rows > 1 and method != "rtn":
        raise UnsupportedError(
            f"{method} takes blocks of one channel, not of several; give another level or leave it out"
        )
    calls = _calls(samples)
    for param in module.params():
        param.val()  # a lazy one of the copy would have a value of its own
    made = module.clone()
    level = scheme.level if scheme.rows == 1 else (scheme.rows, scheme.level)
    parts = scheme.bits, scheme.mode, level, scheme.calibration
    dtypes_of = {"scale": scheme.scale, "value": scheme.codebook or scheme.value}
    found = _quantize(made, *parts, filter, False, kept, method == "awq", **dtypes_of)
    if activations is not None and method != "awq":
        _compute_with_integers(made, found, activations)
    copies = {name: layer for name, _, layer, _ in layers_with_weights(made)}
    pairs = {name[:-1]: (layer, copies[name]) for name, _, layer, _ in layers_with_weights(module)}
    choose(module, made, calls, scheme, method, correct_bias, pairs, tell or (lambda _: None))
    names = _quantize(module, *parts, filter, False, kept, method == "awq", **dtypes_of)
    for name, _, layer, _ in layers_with_weights(module):
        if name[:-1] not in names:
            continue
        for key, param in copies[name].named_params():  # this module keeps its own Params, so that shared ones stay so
            dict(layer.named_params())[key].set(param.val())
    return names


def _calls(samples: Any) -> list[Any]:
    """The arguments of each call. Raises UnsupportedError if there are none."""
    several = isinstance(samples, Iterable) and not hasattr(samples, "shape") and not isinstance(samples, (str, dict))
    calls = [each if isinstance(each, (list, tuple)) else (each,) for each in samples] if several and samples else []
    if not calls:
        raise UnsupportedError(
            "choosing weights or ranges needs samples: a list of the arguments of calls, each a tuple of them or the "
            f"only one; found {'none' if several else type(samples).__name__}"
        )
    return calls


def layers_with_weights(module: Module) -> Iterator[tuple[str, str, Any, int]]:
    """(path, classes of the enclosing modules and its own, layer, axis of its weight's channels) of each layer whose
    weight can be quantized, in the order of the attributes."""
    for name, container, layer in _modules(module, "", "", ()):
        axis = channel_axis(layer)
        if axis is not None:
            yield name, container, layer, axis


def is_large(shape: Sequence[int], axis: int) -> bool:
    """Whether a packed weight's shape tells its bits: with 1 or 2 weights a channel, 4 and 2 bits give the same."""
    return prod(n for i, n in enumerate(shape) if i != axis) > 2


def channel_axis(layer: Module) -> int | None:
    """The axis of a layer's weight along which its outputs lie; None for layers whose weights stay floats."""
    if isinstance(layer, ConvTranspose):
        return 1 if layer.groups == 1 else 0
    if isinstance(layer, (Conv, Embedding, Bilinear)):
        return 0
    return 1 if isinstance(layer, Linear) else None


def _modules(value: Any, name: str, container: str, around: tuple[Any, ...]) -> Iterator[tuple[str, str, Module]]:
    if isinstance(value, Module):
        container = f"{container}.{type(value).__name__}" if container else type(value).__name__
        yield name, container, value
    for key, child in items(value):
        if isinstance(child, (Module, list, tuple, dict)) and not any(p is child for p in (*around, value)):
            yield from _modules(child, f"{name}{key}.", container, (*around, value))
