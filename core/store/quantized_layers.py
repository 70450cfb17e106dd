"""Weights of layers in the form that a module has: a float file loads into quantized layers, which quantize it by their
own scheme, and the packed weights of a file into float layers, or into layers of another scheme.

In a file a float weight is `weight`, that of a fake one `weight.real`, and a quantized one `weight.values`,
`weight.scale`, and, if it has them, `weight.zero_point`, `weight.input_scale`, `weight.tensor_scale` and
`weight.levels`. Older files call these `weight` (uint8), `scale` and `zero_point`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

from .. import dtypes
from ..backend import Backend
from ..errors import LoadError
from ..functional.quantized.codebooks import numbers
from ..functional.quantized.packed_weights import dequantize_nbits
from ..functional.quantized.weights import WeightScheme, from_rows, pack_levels, real_of, rows_in, scale_of, spread
from ..module import Module
from ..module.narrowing import check_scales
from ..nn.linear import Linear
from ..nn.quantized_weight import FakeQuantizedWeight, QuantizedWeight
from ..param import Param
from ..tensor import Tensor
from .formats.onnx_weights import plain_name
from .quantizing import layers_with_weights
from .snapshot import Packed, Snapshot
from .sources import store_of
from .torch_modules import split

KEYS = ("values", "scale", "zero_point", "input_scale", "tensor_scale", "levels")
ENDS = (".real", *("." + key for key in KEYS))

At = Mapping[str, Snapshot]


class Fitted(NamedTuple):
    """found: parameter -> its value; taken: the names it is read from; wrong: parameter -> why it has none; narrowed:
    weight -> a function that says, once the values are loaded, what quantizing it lost."""

    found: dict[str, Snapshot]
    taken: dict[str, tuple[str, ...]]
    wrong: dict[str, str]
    narrowed: dict[str, Callable[[], float]]


def fitted(module: Module, at: At, layout: str | None) -> Fitted:
    """The weights of layers that `at` holds in another form than the module. layout: that of float weights."""
    out = Fitted({}, {}, {}, {})
    # The weights that a file holds as integers with scales, by their own names.
    plain = {n: plain_name(n) for n, s in at.items() if s.real is not None}
    stored = {own: n for n, own in plain.items() if own == n or own not in at}
    at = {**at, **{name: at[n].real.named(name) for name, n in stored.items()}}  # type: ignore[union-attr]
    for path, _, layer, axis in layers_with_weights(module):
        name, bias = path + "weight", path + "bias"
        if bias in stored and getattr(layer, "bias", None) is not None:
            out.found[bias], out.taken[bias] = at[bias], (stored[bias],)
        old = _old_names(path, at)
        held = {**{n: s for n, s in at.items() if n not in old}, **{old[n]: at[n] for n in old}} if old else at
        parts = _parts(name, layer.weight, at, layout)
        held = {**held, **parts} if parts else held
        try:
            pairs = dict(_weight(name, layer, axis, held, layout, out.narrowed, name in stored))
        except LoadError as error:
            out.wrong[next(iter(_names(name, layer.weight)))] = str(error)
            continue
        if old and not pairs:
            pairs = {new: held[new] for new in old.values()}
        if not pairs:
            pairs = parts
        source = tuple(old) or tuple(stored.get(name + e, name + e) for e in ("", *ENDS) if name + e in at)
        for key, snapshot in pairs.items():
            out.found[key] = snapshot
            out.taken[key] = source
    return out


def _parts(name: str, weight: Any, at: At, layout: str | None) -> dict[str, Snapshot]:
    """The values and scales of a file's weight for a packed one of floats, if it has them."""
    make = at[name].parts if name in at and layout == "pytorch" else None
    if make is None or not isinstance(weight, QuantizedWeight) or weight.scheme.value is None:
        return {}
    return {f"{name}.{key}": part for key, part in make(weight.rows).items()}


def _old_names(path: str, at: At) -> dict[str, str]:
    """The names of a layer's packed weight in an older file -> their names now; empty for other files."""
    if path + "scale" not in at or path + "weight" not in at or at[path + "weight"].dtype is not dtypes.uint8:
        return {}
    ends = zip(("weight", "scale", "zero_point"), KEYS, strict=False)
    return {path + end: f"{path}weight.{key}" for end, key in ends if path + end in at}


def _names(name: str, weight: Any) -> list[str]:
    """The parameters of a weight called `name` in the module."""
    if isinstance(weight, FakeQuantizedWeight):
        return [name + ".real"]
    return (
        [name] if isinstance(weight, Param) else [name + "." + key for key in KEYS if getattr(weight, key) is not None]
    )


def _weight(
    name: str, layer: Any, axis: int, at: At, layout: str | None, narrowed: dict[str, Callable[[], float]],
    integers: bool,
) -> Iterator[tuple[str, Snapshot]]:  # fmt: skip
    """The parameters of a layer's weight, where `at` holds it in another form. integers: whether the file does."""
    weight = layer.weight
    packed = name + ".values" in at and name + ".scale" in at
    real = next((at[n] for n in (name, name + ".real") if n in at and at[n].dtype.is_float), None)
    if not packed and real is None:
        return
    if isinstance(weight, QuantizedWeight):
        same = packed and all(at[f"{name}.{key}"].shape == getattr(weight, key).shape for key in KEYS[:2])
        if same and weight.levels is not None and name + ".levels" in at:  # another table's numbers are quantized anew
            own = weight.levels.val()
            same = not bool((abs(at[name + ".levels"].tensor(own.backend) - own) > 1e-6).any())
        if same and all((f"{name}.{key}" in at) == (getattr(weight, key) is not None) for key in KEYS[2:]):
            wanted = {f"{name}.{key}": getattr(weight, key).dtype for key in KEYS if getattr(weight, key) is not None}
            if all(at[part].dtype is wanted[part] for part in wanted):
                return
            if all(_holds(at[part], dtype) for part, dtype in wanted.items()):
                for part, dtype in wanted.items():
                    yield part, at[part].mapped(partial(_cast, dtype), dtype, at[part].shape)
                return
        upright = _unpacked(name, tuple(weight.shape), axis, at) if packed else _upright(layer, weight, real, layout)
        narrowed[name] = lambda: _lost(upright, weight)
        held = None if real is None or packed else _packed_so(layer, weight, real, layout)
        if real is not None and held is not None:
            yield from _repacked(name, weight, real.name, held)
        else:
            yield from _quantized(name, weight, upright)
    elif packed or integers or name not in _names(name, weight) or real is not at.get(name):
        [own] = _names(name, weight)
        if own in at and not packed and not integers:
            return
        upright = _unpacked(name, tuple(weight.shape), axis, at) if packed else _upright(layer, weight, real, layout)
        turn = layout == "pytorch" and own == name and isinstance(layer, Linear)  # it is transposed where it is loaded
        yield own, upright.transposed() if turn else upright


def _holds(s: Snapshot, dtype: dtypes.DType) -> bool:
    """Whether a tensor of a file is one of `dtype`, or holds only numbers of it, as in formats without it."""
    if s.dtype is dtype:
        return True
    if dtype is dtypes.uint8 and s.dtype is dtypes.float32:  # zero points
        return not bool(((s.tensor() < 0.0) | (s.tensor() > 255.0)).any()) and _are_numbers_of(s.tensor(), dtype)
    if s.dtype is dtypes.uint8 and dtype is dtypes.float32:
        return s.name.rpartition(".")[2] == "zero_point"
    return s.dtype.is_float and dtype.is_float and _are_numbers_of(s.tensor().astype(dtypes.float32), dtype)


def _are_numbers_of(x: Tensor, dtype: dtypes.DType) -> bool:
    return not bool((x.astype(dtype).astype(dtypes.float32) != x).any())


def _cast(dtype: dtypes.DType, x: Tensor) -> Tensor:
    found: Tensor = x.astype(dtype)
    return found


def _upright(layer: Any, weight: Any, real: Any, layout: str | None) -> Snapshot:
    """A float weight in the module's layout."""
    shape = tuple(weight.shape)
    dense = isinstance(layer, Linear) and real.name.rpartition(".")[2] != "real"
    if dense and layout is None and shape[0] == shape[1] != 1:
        raise LoadError(
            "is square, so its shape does not tell whether it is stored (d_input, d_output) or, as PyTorch does, "
            "transposed; pass layout='burn' or layout='pytorch'"
        )
    turn = dense and (layout == "pytorch" or (layout is None and real.shape == shape[::-1] != shape))
    expected = shape[::-1] if turn else shape
    if real.shape != expected:
        raise LoadError(f"shape {real.shape} where the module has a weight of {expected}")
    found: Snapshot = real.transposed() if turn else real
    return found


def _unpacked(name: str, shape: tuple[int, ...], axis: int, at: At) -> Snapshot:
    """The packed weight `name` of a file as float32 of `shape`."""
    values, scale = at[name + ".values"], at[name + ".scale"]
    zero, factor, whole_scale, table = (at.get(f"{name}.{key}") for key in KEYS[2:])
    channels, count = shape[axis], prod(n for i, n in enumerate(shape) if i != axis)
    blocks, nbytes = values.shape[1:] if len(values.shape) == 3 else (0, 0)
    # The bits are not stored, but only one number of them gives as many blocks, none longer than a channel needs.
    floats = values.dtype.is_float
    if floats:
        fits = [values.dtype.bits] if blocks * nbytes >= count else []
    else:
        fits = [b for b in (8, 4, 2) if nbytes and -(-count // (nbytes * 8 // b)) == blocks
                and nbytes * 8 // b <= WeightScheme(b).block_size(count)]  # fmt: skip
    rows = 1
    if len(fits) == 1 and scale.size != channels * blocks:  # of blocks of two axes
        rows = rows_in(channels, nbytes if floats else nbytes * 8 // fits[0], scale.size // max(blocks, 1))
    if len(fits) != 1 or values.shape[0] != channels or scale.size != -(-channels // rows) * blocks:
        raise LoadError(f"packed weights {values.shape} where the module has a weight of {shape}")
    if factor is not None and factor.shape != shape[:1]:
        raise LoadError(f"input scales {factor.shape} where the module has a weight of {shape}")
    bits = fits[0]

    def make(backend: Backend) -> Tensor:
        scales = scale_of(scale.tensor(backend), None if whole_scale is None else whole_scale.tensor(backend))
        scales = spread(scales, blocks, rows, channels)
        zeros = None if zero is None else zero.tensor(backend).astype(dtypes.float32)
        if floats:
            real = real_of(values.tensor(backend), scales, count)
        elif table is not None:
            real = real_of(numbers(values.tensor(backend), table.tensor(backend)), scales, count)
        else:
            real = dequantize_nbits(
                values.tensor(backend), scales, zeros, rows=count, columns=channels, bits=bits,
                block_size=nbytes * 8 // bits,
            )  # fmt: skip
        whole: Tensor = from_rows(real, shape, axis)
        return whole if factor is None else whole * factor.tensor(backend).reshape((-1, *[1] * (len(shape) - 1)))

    return Snapshot(name, dtypes.float32, shape, make=make, param_id=values.param_id)


def _quantized(name: str, weight: QuantizedWeight, real: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """The parameters of a quantized weight from a float one."""

    @lru_cache(maxsize=1)
    def parts(backend: Backend) -> dict[str, Tensor]:
        found: dict[str, Tensor] = weight.quantized(real.tensor(backend))
        check_scales({name.removesuffix(".weight"): found["scale"]})
        return found

    def one(key: str) -> Snapshot:
        param = getattr(weight, key)
        if key in ("input_scale", "levels"):  # the module's own
            return Snapshot(real.name, param.dtype, param.shape, make=lambda b: param.val().to(b), param_id=None)
        return Snapshot(real.name, param.dtype, param.shape, make=lambda b: parts(b)[key], param_id=None)

    for key in KEYS:
        if getattr(weight, key) is not None:
            yield f"{name}.{key}", one(key)


def _packed_so(layer: Any, weight: QuantizedWeight, real: Snapshot, layout: str | None) -> Packed | None:
    """A file's integers if they are those that the weight would hold, and are taken as they are."""
    found = real.packed
    if found is None or weight.input_scale is not None:
        return None
    own = tuple(weight.shape)
    turned = isinstance(layer, Linear) and (layout == "pytorch" or (layout is None and real.shape == own[::-1] != own))
    axis = 1 - weight.axis if turned else weight.axis
    if found.axis != axis and found.along is not None:
        found = found.along(axis) or found
    if found.size < weight.block_size and found.joined is not None:
        found = found.joined(weight.block_size) or found
    if found.bits > weight.bits:
        found = _narrowed(found, weight.bits)
    same = (
        real.shape == (own[::-1] if turned else own)
        and found.axis == axis
        and (found.bits, found.size) == (weight.bits, weight.block_size)
        and (weight.zero_point is not None or found.symmetric)
        and weight.scheme.value is None
        and weight.levels is None
        and weight.tensor_scale is None
        and (weight.rows == 1 or _are_shared(found.read()[1], weight.rows))
        and (weight.scale.dtype is dtypes.float32 or _are_numbers_of(found.read()[1], weight.scale.dtype))
    )
    return found if same else None


def _narrowed(packed: Packed, bits: int) -> Packed:
    """The same integers in fewer bits, as ONNX files have those of tables in 8; unchanged if they do not fit."""
    levels, scale, least = packed.read()
    shift = packed.zero - (1 << (bits - 1)) if packed.symmetric else 0
    if not levels.size or int(levels.min()) < shift or int(levels.max()) >= shift + (1 << bits):
        return packed
    fewer = (levels - shift).astype(dtypes.uint8)
    found = packed._replace(bits=bits, zero=packed.zero - shift, read=lambda: (fewer, scale, least))
    if packed.points is None:
        return found
    points = packed.points() - float(shift)
    return found._replace(points=lambda: points)


def _are_shared(scale: Tensor, rows: int) -> bool:
    """Whether scales (channels, blocks) are those of blocks of so many channels."""
    channels, blocks = scale.shape
    return not bool((spread(scale[::rows].reshape((-1,)), blocks, rows, channels) != scale.reshape((-1,))).any())


def _repacked(name: str, weight: QuantizedWeight, source: str, packed: Packed) -> Iterator[tuple[str, Snapshot]]:
    """The parameters of a quantized weight from a file's integers."""

    @lru_cache(maxsize=1)
    def parts() -> dict[str, Tensor]:
        levels, scale, least = packed.read()
        middle = 1 << (weight.bits - 1)
        if weight.zero_point is None:
            levels = (levels + (middle - packed.zero)).astype(dtypes.uint8)
            return {"values": pack_levels(levels, weight.bits), "scale": scale[:: weight.rows].reshape((-1,))}
        zero = (scale * 0.0) + float(packed.zero) if packed.points is None else packed.points()
        if least is not None:  # where the scale is 0 all weights are -least: levels of 0 with a scale of 1
            flat = scale == 0
            levels = (levels * (~flat).astype(dtypes.uint8).reshape((*flat.shape, 1))).astype(dtypes.uint8)
            scale = scale.mask_fill(flat, 1.0)
            zero = zero + least / scale
        found = {"values": pack_levels(levels, weight.bits), "scale": scale[:: weight.rows], "zero_point": zero}
        return {key: x if key == "values" else x.reshape((-1,)) for key, x in found.items()}

    def one(key: str) -> Snapshot:
        param = getattr(weight, key)
        return Snapshot(
            source, param.dtype, param.shape, make=lambda b: parts()[key].astype(param.dtype).to(b), param_id=None
        )

    for key in KEYS[:3]:
        if getattr(weight, key) is not None:
            yield f"{name}.{key}", one(key)


def _lost(real: Snapshot, weight: QuantizedWeight) -> float:
    """What a float weight lost by the module's scheme: the root mean square of the differences, relative to that of the
    weight."""
    x = real.tensor(weight.values.backend).astype(dtypes.float32)
    off = x - weight.val().astype(dtypes.float32)
    whole = float((x * x).mean()) if x.size else 0.0
    return (float((off * off).mean()) / whole) ** 0.5 if whole else 0.0


class Refitted(Mapping[str, Tensor]):
    """A record under the module's names and in its forms, for `load_record`; values are read on access."""

    def __init__(self, snapshots: At, record: Any, layout: str | None) -> None:
        from ..module.layouts import KEY

        self._snapshots = snapshots
        self.metadata = {} if layout is None else {KEY: layout}
        if hasattr(record, "param_ids"):
            self.param_ids = record.param_ids

    def __getitem__(self, name: str) -> Tensor:
        return self._snapshots[name].tensor()

    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshots)

    def __len__(self) -> int:
        return len(self._snapshots)


def record_for(module: Module, record: Any, layout: str | None) -> Refitted | None:
    """What `load_record` loads instead of a record whose names or forms are another's: PyTorch's counters, recurrent
    layers and attention, and dense weights in other forms than the module's. None if there is nothing of the kind."""
    if isinstance(record, Refitted):
        return None
    store = store_of(record)
    layout = layout or store.layout
    at = {name: s for name, s in store.items() if name.rpartition(".")[2] != "num_batches_tracked"}
    parts = split(module, at)
    other = fitted(module, at, layout)
    if other.wrong:
        lines = "".join(f"\n  {name}: {why}" for name, why in other.wrong.items())
        raise LoadError(f"the weights do not fit {type(module).__name__}; nothing was loaded{lines}")
    if len(at) == len(store) and not parts and not other.found:
        return None
    used = {s.name for s in parts.values()} | {n for names in other.taken.values() for n in names}
    kept = {name: s for name, s in at.items() if name not in used}
    return Refitted({**kept, **parts, **other.found}, record, layout)
