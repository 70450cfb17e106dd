"""Weights of dense layers in the form that a module has: a float file loads into quantized layers, which quantize it by
their own scheme, and the packed weights of a file into float layers, or into layers of another scheme.

A quantized layer calls its parameters `weight`, `scale` and `zero_point`, a fake one keeps them in `layer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .. import dtypes
from ..backend import Backend
from ..errors import LoadError
from ..functional.quantized.packed_weights import dequantize_nbits
from ..functional.quantized.weights import WeightScheme, pack_levels, quantize_weight
from ..functional.reshaping import reshape
from ..module import Module
from ..nn.linear import Linear
from ..nn.quantized_linear import FakeQuantizedLinear, QuantizedLinear
from ..tensor import Tensor
from .snapshot import Snapshot
from .sources import store_of
from .torch_modules import modules, split

At = Mapping[str, Snapshot]


class Fitted(NamedTuple):
    """found: parameter -> its value; taken: the names it is read from; wrong: parameter -> why it has none."""

    found: dict[str, Snapshot]
    taken: dict[str, tuple[str, ...]]
    wrong: dict[str, str]


def fitted(module: Module, at: At, layout: str | None) -> Fitted:
    """The parameters of dense layers that `at` holds in another form than the module. layout: that of float weights."""
    out = Fitted({}, {}, {})
    for own, layer, bases in _dense(module):
        base = next((b for b in bases if b + "weight" in at), None)
        if base is None:
            continue
        try:
            pairs = dict(_parameters(own, layer, base, at, layout))
        except LoadError as error:
            out.wrong[own + "weight"] = str(error)
            continue
        keys = ("weight", "scale", "zero_point") if base == own else ("weight", "scale", "zero_point", "bias")
        source = tuple(base + key for key in keys if base + key in at)
        for key, snapshot in pairs.items():
            out.found[own + key] = snapshot
            out.taken[own + key] = source
    return out


def _dense(module: Module) -> Iterator[tuple[str, Any, tuple[str, str]]]:
    """(its path, layer, the paths where a file may hold it) of every dense layer."""
    for path, layer in modules(module, "", ()):
        if isinstance(layer, FakeQuantizedLinear):
            yield path + "layer.", layer.layer, (path + "layer.", path)
        elif isinstance(layer, (Linear, QuantizedLinear)):
            yield path, layer, (path, path + "layer.")


def _parameters(own: str, layer: Any, base: str, at: At, layout: str | None) -> Iterator[tuple[str, Snapshot]]:
    weight = at[base + "weight"]
    packed = weight.dtype is dtypes.uint8 and len(weight.shape) == 3 and base + "scale" in at
    if not packed and (not weight.dtype.is_float or len(weight.shape) != 2):
        return
    if isinstance(layer, QuantizedLinear):
        same = packed and weight.shape == layer.weight.shape
        if not same or (base + "zero_point" in at) != (layer.zero_point is not None):
            real = _unpacked(layer, base, at) if packed else _upright(layer, weight, layout)
            yield from _quantized(layer, real)
        elif base != own:
            yield from ((k, at[base + k]) for k in ("weight", "scale", "zero_point") if base + k in at)
    elif packed:
        real = _unpacked(layer, base, at)
        yield "weight", real.transposed() if layout == "pytorch" else real
    elif base != own:
        yield "weight", weight
    if base != own and base + "bias" in at:
        yield "bias", at[base + "bias"]


def _upright(layer: QuantizedLinear, weight: Snapshot, layout: str | None) -> Snapshot:
    """A float weight as (d_input, d_output)."""
    shape = (layer.d_input, layer.d_output)
    if layout is None and shape[0] == shape[1] != 1:
        raise LoadError(
            "is square, so its shape does not tell whether it is stored (d_input, d_output) or, as PyTorch does, "
            "transposed; pass layout='burn' or layout='pytorch'"
        )
    turn = layout == "pytorch" or (layout is None and weight.shape == shape[::-1] != shape)
    expected = shape[::-1] if turn else shape
    if weight.shape != expected:
        raise LoadError(f"shape {weight.shape} where the module has a quantized weight of {expected}")
    return weight.transposed() if turn else weight


def _unpacked(layer: Any, base: str, at: At) -> Snapshot:
    """The packed weight of a quantized layer as float32 (d_input, d_output)."""
    weight, scale, zero = at[base + "weight"], at[base + "scale"], at.get(base + "zero_point")
    rows, columns = layer.d_input, layer.d_output
    _, blocks, nbytes = weight.shape
    # The bits are not stored, but only one number of them gives as many blocks, none longer than the rows need.
    fits = [b for b in (8, 4, 2) if nbytes and -(-rows // (nbytes * 8 // b)) == blocks
            and nbytes * 8 // b <= WeightScheme(b).block_size(rows)]  # fmt: skip
    if len(fits) != 1 or weight.shape[0] != columns or scale.size != columns * blocks:
        raise LoadError(f"packed weights {weight.shape} where the module has a weight of {(rows, columns)}")
    bits = fits[0]

    def make(backend: Backend) -> Tensor:
        zeros = None if zero is None else zero.tensor(backend)
        real: Tensor = dequantize_nbits(
            weight.tensor(backend), scale.tensor(backend), zeros, rows=rows, columns=columns, bits=bits,
            block_size=nbytes * 8 // bits,
        )  # fmt: skip
        return real.mT

    return Snapshot(weight.name, dtypes.float32, (rows, columns), make=make, param_id=weight.param_id)


def _quantized(layer: QuantizedLinear, real: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """The parameters of a quantized layer from a float weight."""

    @lru_cache(maxsize=1)
    def levels(backend: Backend) -> dict[str, Tensor]:
        found, scales, zero = quantize_weight(real.tensor(backend), layer.scheme)
        made = {"weight": pack_levels(found, layer.bits), "scale": reshape(scales, (-1,))}
        return made if zero is None else {**made, "zero_point": reshape(zero, (-1,))}

    def one(key: str) -> Snapshot:
        param = getattr(layer, key)
        return Snapshot(real.name, param.dtype, param.shape, make=lambda b: levels(b)[key], param_id=None)

    for key in ("weight", "scale", "zero_point"):
        if getattr(layer, key) is not None:
            yield key, one(key)


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
