"""Weights of 4 bits as bitsandbytes stores them in a state dict, as quantized tensors of levels, values and scales.

NAME holds two levels a byte, the first in the high bits, of all weights in the order of PyTorch's (d_output, d_input),
NAME.quant_map the numbers of the 16 levels (NF4 or FP4), NAME.absmax the scale of each block, and
NAME.quant_state.bitsandbytes__nf4 the sizes, in JSON. Scales of two levels are codes: NAME.nested_quant_map[code] times
NAME.nested_absmax of a block of codes, plus an offset (QLoRA's double quantization, https://arxiv.org/abs/2305.14314;
https://github.com/bitsandbytes-foundation/bitsandbytes, QuantState).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from ... import dtypes
from ...backend import Backend
from ...errors import FormatError
from ...functional.indexing.picking import take
from ...functional.movement.rearranging import narrow, repeat
from ...functional.quantized.packed_weights import unpack_bits
from ...tensor import Tensor
from ..reading import json_of
from ..snapshot import Snapshot
from ..stored import Store

STATE = re.compile(r"(.+)\.quant_state\.bitsandbytes__(nf4|fp4)")
LONGEST = 1 << 16  # bytes of the JSON
LARGEST = 3.4028234663852886e38  # float32


def joined(store: Store) -> Store:
    """The store with such weights in the place of their parts, in PyTorch's layout. Raises FormatError for parts that
    do not fit."""
    weights = {m[1]: name for name in store if (m := STATE.fullmatch(name))}
    if not weights:
        return store
    found: dict[str, Snapshot] = {}
    for name, snapshot in store.items():
        owner = name if name in weights else next((w for w in _owners(name) if w in weights), None)
        if owner is None:
            found[name] = snapshot
        elif name == owner:
            found.update(_Weight.of(store, name, weights[name]).snapshots(name))
    return Store(
        found, format=store.format, origin=store.origin, metadata=store.metadata, scalars=store.scalars,
        extras=store.extras, layout=store.layout or "pytorch", nameless=store.nameless,
    )  # fmt: skip


def _owners(name: str) -> list[str]:
    """The weights that a tensor may be a part of."""
    head, _, last = name.rpartition(".")
    if last.startswith("bitsandbytes__"):
        return [head.removesuffix(".quant_state")]
    return [head] if last in ("absmax", "quant_map", "nested_absmax", "nested_quant_map") else []


class _Weight(NamedTuple):
    """The parts of a weight. nested: None, or the table of the codes and their factors."""

    shape: tuple[int, ...]
    block: int
    levels: Snapshot
    table: Snapshot
    absmax: Snapshot
    nested: tuple[Snapshot, Snapshot, int, float] | None

    @classmethod
    def of(cls, store: Store, name: str, state: str) -> _Weight:
        said = _state(store, state)
        shape, block = said.get("shape"), said.get("blocksize")
        if not isinstance(shape, list) or not all(_is_size(n, 0) for n in shape):
            raise FormatError(f"{store.origin}: {name}: its state has no shape")
        if not isinstance(block, int) or not _is_size(block, 1):
            raise FormatError(f"{store.origin}: {name}: its state has no size of blocks")
        count = prod(shape)
        blocks = -(-count // block)
        wanted = {name: -(-count // 2), name + ".quant_map": 16, name + ".absmax": blocks}
        nested, offset = said.get("nested_blocksize"), _finite(said.get("nested_offset"))
        if nested is not None:
            if not isinstance(nested, int) or not _is_size(nested, 1) or offset is None:
                raise FormatError(f"{store.origin}: {name}: its state has no block and offset of the scales")
            wanted |= {name + ".nested_quant_map": 256, name + ".nested_absmax": -(-blocks // nested)}
        for part, size in wanted.items():
            if part not in store or store[part].size != size:
                held = f"has {store[part].size}" if part in store else "is missing"
                raise FormatError(f"{store.origin}: {part} {held} where a weight of {shape} takes {size} numbers")
        integers = {name: "uint8"} | ({name + ".absmax": "uint8"} if nested is not None else {})
        for part, dtype in integers.items():
            if store[part].dtype.name != dtype:
                raise FormatError(f"{store.origin}: {part} is {store[part].dtype} where codes are {dtype}")
        two = None
        if nested is not None and offset is not None:
            parts = store[name + ".nested_quant_map"], store[name + ".nested_absmax"]
            two = (*parts, min(nested, max(1, blocks)), offset)
        # A block longer than what it is a part of ends with that: the numbers in JSON have no limit.
        return cls(
            tuple(shape),
            min(block, max(1, count)),
            store[name],
            store[name + ".quant_map"],
            store[name + ".absmax"],
            two,
        )

    def scales(self, backend: Backend) -> Tensor:
        """The scale of each block, float32."""
        absmax = self.absmax.tensor(backend).reshape((-1,))
        if self.nested is None:
            return absmax.astype(dtypes.float32)
        table, factors, size, offset = self.nested
        codes = take(table.tensor(backend).astype(dtypes.float32), absmax.astype(dtypes.int32), axis=0)
        factor = repeat(factors.tensor(backend).astype(dtypes.float32), size, axis=0)
        return codes * narrow(factor, 0, 0, codes.shape[0]) + offset

    def numbers(self, backend: Backend) -> Tensor:
        """The numbers of the 16 levels, float32."""
        found: Tensor = self.table.tensor(backend).astype(dtypes.float32).reshape((16,))
        return found

    def packed(self, backend: Backend) -> Tensor:
        """The levels, two a byte, the first in the low bits."""
        raw = self.levels.tensor(backend).reshape((-1,))
        found: Tensor = ((raw >> 4) | ((raw & 15) << 4)).astype(dtypes.uint8)
        return found

    def real(self, backend: Backend) -> Tensor:
        """The weights as floats."""
        count = prod(self.shape)
        levels = narrow(unpack_bits(self.packed(backend), 4), 0, 0, count).astype(dtypes.int32)
        scales = narrow(repeat(self.scales(backend), self.block, axis=0), 0, 0, count)
        found: Tensor = (take(self.numbers(backend), levels, axis=0) * scales).reshape(self.shape)
        return found

    def snapshots(self, name: str) -> Mapping[str, Snapshot]:
        """The parts of a quantized weight if blocks lie within rows, else the weight as floats."""
        if len(self.shape) != 2 or not prod(self.shape) or self.shape[1] % self.block or self.block % 2:
            return {name: Snapshot(name, dtypes.float32, self.shape, make=self.real, original=name)}
        rows, blocks = self.shape[0], self.shape[1] // self.block
        held = (rows, blocks, self.block // 2)
        return {
            s.name: s
            for s in (
                Snapshot(
                    name + ".values", dtypes.uint8, held, make=lambda b: self.packed(b).reshape(held), original=name
                ),
                Snapshot(name + ".scale", dtypes.float32, (rows * blocks,), make=self.scales, original=name),
                Snapshot(name + ".levels", dtypes.float32, (16,), make=self.numbers, original=name),
            )
        }


def _is_size(n: Any, least: int) -> bool:
    return type(n) is int and n >= least


def _finite(n: Any) -> float | None:
    """A number of JSON as a float; None for others, and if float32 does not hold it."""
    return float(n) if type(n) in (int, float) and abs(n) <= LARGEST else None


def _state(store: Store, state: str) -> dict[str, Any]:
    """The JSON of a state."""
    if store[state].nbytes > LONGEST or store[state].dtype is not dtypes.uint8:
        raise FormatError(f"{store.origin}: {state} is no JSON")
    raw = bytes(store[state].raw())
    try:
        found = json_of(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FormatError(f"{store.origin}: {state} is no JSON")
    return found
