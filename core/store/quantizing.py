"""Quantizing weights: in files, as Burn's quantized tensors, and in modules, as packed layers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from .. import dtypes
from ..errors import UnsupportedError
from ..functional.quantized.weights import CALIBRATIONS, WeightScheme
from ..module import Module, items
from ..nn.linear import Linear
from ..nn.quantized_linear import FakeQuantizedLinear, QuantizedLinear
from ..tensor import Tensor
from .filters import Filtering, filter_of
from .snapshot import Quantized, Snapshot

VALUES = {8: ("Q8S", dtypes.int8), 4: ("Q4S", dtypes.int4), 2: ("Q2S", dtypes.int2)}
MAX_BLOCK = 255  # a block's extent is a byte of the scheme
MAX_AXES = 5


def quantized(s: Snapshot, bits: int, level: str | int, calibration: str) -> Snapshot:
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
    size = None
    if block:
        size = (
            ("dtype", "F32"),
            ("size", (("len", len(block)), ("storage", [*block, *[1] * (MAX_AXES - len(block))]))),
        )
    scheme = (
        ("block", size), ("mode", "Symmetric"), ("store", (("PackedU32", 0),)), ("tensor", None if block else "F32"),
        ("value", value),
    )  # fmt: skip

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


def _block(s: Snapshot, level: str | int) -> tuple[int, ...] | None:
    """The extent of a block along each axis, or None for one scale."""
    if level == "tensor":
        return None
    if level == "channel":
        block = (*s.shape[:-1], 1)
    elif isinstance(level, int) and not isinstance(level, bool):
        block = (*(1 for _ in s.shape[1:]), level)
    else:
        raise UnsupportedError(f"level is 'tensor', 'channel' or a number of elements, found {level!r}")
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
    module: Module, bits: int, mode: str, level: str | int, calibration: str, filter: Filtering, fake: bool
) -> list[str]:
    """See Module.quantize_weights."""
    scheme = WeightScheme(bits, mode, level, calibration)
    if isinstance(module, Linear):
        raise UnsupportedError(
            "a Linear cannot replace itself; use QuantizedLinear.from_linear(layer, WeightScheme(…))"
        )
    make: Callable[[Linear], Module] = lambda layer: (  # noqa: E731
        FakeQuantizedLinear(layer, scheme) if fake else QuantizedLinear.from_linear(layer, scheme)
    )
    keep, done, names = filter_of(filter), {}, []
    changes = []
    for holder, key, name, container, layer in list(_linears(module, "", type(module).__name__, ())):
        if keep(name + ".weight", container):
            if id(layer) not in done:
                done[id(layer)] = make(layer)
            changes.append((holder, key, done[id(layer)]))
            names.append(name)
    for holder, key, made in changes:  # either all layers or, after an error, none
        if isinstance(holder, Module):
            setattr(holder, key, made)
        else:
            holder[key] = made
    return names


def _linears(value, name, container, around):  # type: ignore[no-untyped-def]
    """(holder, key, name, container, Linear) of every dense layer that can be replaced."""
    for key, child in items(value):
        path = f"{name}{key}"
        if isinstance(child, Linear) and not isinstance(value, (tuple, FakeQuantizedLinear)):
            yield value, key, path, f"{container}.Linear", child
        elif isinstance(child, (Module, list, tuple, dict)) and not any(p is child for p in (*around, value)):
            inner = f"{container}.{type(child).__name__}" if isinstance(child, Module) else container
            yield from _linears(child, path + ".", inner, (*around, value))
