"""Store: a mapping from names to Snapshots, and its views, which filter, rename and convert."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from .. import dtypes
from ..backend import Backend
from ..dtypes import DType
from ..errors import LoadError
from ..module.narrowing import choose
from ..module.record import converted, stored_dtype
from ..tensor import Tensor
from .filters import Filtering, filter_of
from .naming import Renaming, contiguous, renamed_keys, renamer_of
from .snapshot import Snapshot

Scalar = bool | int | float


def in_precision(snapshots: Mapping[str, Snapshot], precision: str) -> dict[str, Snapshot]:
    """The tensors in a precision; see Store.precision."""
    return _chosen(snapshots, lambda dtype: stored_dtype(dtype, precision))


def _chosen(snapshots: Mapping[str, Snapshot], rule: Callable[[DType], DType]) -> dict[str, Snapshot]:
    """The tensors in the dtypes of a rule, as far as these hold them."""

    def changed(s: Snapshot, dtype: DType) -> Snapshot:
        return s if dtype is s.dtype else s.mapped(lambda x: converted(s.name, x, dtype), dtype, s.shape)

    found = choose({name: (s.dtype, s.tensor) for name, s in snapshots.items()}, rule)
    return {name: changed(s, found[name]) for name, s in snapshots.items()}


class MissingError(LoadError, KeyError):
    """A name that is not in a store."""

    __str__ = Exception.__str__


class Store(Mapping[str, Snapshot]):
    """The tensors of a file, by name. Tensors are read on access.

    format: "burnpack", "safetensors", "pytorch", …; origin: where it comes from, for messages; metadata: text -> text;
    scalars: name -> bool, int or float; extras: everything else in the file, by name (lists, texts, None); layout:
    "burn", "pytorch" or None where the file does not say how its dense weights lie; nameless: whether the file holds no
    names, so that they are the numbers of the tensors in the order of the module's parameters.

    Views (`filter`, `rename`, `contiguous`, `precision`, `map`) are stores over the same file.
    """

    def __init__(
        self, snapshots: Mapping[str, Snapshot], *, format: str, origin: str = "", metadata: Mapping[str, str] = {},
        scalars: Mapping[str, Scalar] = {}, extras: Mapping[str, Any] = {}, layout: str | None = None,
        nameless: bool = False,
    ) -> None:  # fmt: skip
        self._snapshots = dict(snapshots)
        self.format = format
        self.origin = origin or format
        self.metadata = dict(metadata)
        self.scalars = dict(scalars)
        self.extras = dict(extras)
        self.layout = layout
        self.nameless = nameless

    # -- a mapping

    def __getitem__(self, name: str) -> Snapshot:
        found = self._snapshots.get(name)
        if found is None:
            near = similar(str(name), self._snapshots)
            hint = f"; similar: {', '.join(near)}" if near else f"; it holds {len(self)} tensors"
            raise MissingError(f"{self.origin}: holds no tensor {name!r}{hint}")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._snapshots

    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshots)

    def __len__(self) -> int:
        return len(self._snapshots)

    def __repr__(self) -> str:
        return f"Store({self.origin!r}, {self.format}, {len(self)} tensors)"

    @property
    def nbytes(self) -> int:
        """The size of the tensors in the file, in bytes."""
        return sum(s.nbytes for s in self._snapshots.values())

    @property
    def names(self) -> list[tuple[str, str]]:
        """(name in the file, name here) of every tensor."""
        return [(s.original, name) for name, s in self._snapshots.items()]

    def tensor(self, name: str, backend: Backend | str | None = None) -> Tensor:
        """The tensor `name` on `backend`. Raises MissingError, which is a LoadError and a KeyError; FormatError."""
        return self[name].tensor(backend)

    # -- views

    def view(self, snapshots: Mapping[str, Snapshot], **changes: Any) -> Store:
        """A copy of this store with these snapshots and `changes`."""
        kept: dict[str, Any] = {
            "format": self.format, "origin": self.origin, "metadata": self.metadata, "scalars": self.scalars,
            "extras": self.extras, "layout": self.layout, "nameless": self.nameless,
        }  # fmt: skip
        return Store(snapshots, **{**kept, **changes})

    def filter(self, given: Filtering = None) -> Store:
        """The tensors that a Filter selects; it can be given as patterns or a function of (name, container)."""
        keep = filter_of(given)
        return self.view({name: s for name, s in self._snapshots.items() if keep(name, "")})

    def rename(self, given: Renaming) -> Store:
        """The tensors renamed, by (pattern, replacement) pairs, a dict of whole names, a KeyRemapper, or a function.
        Raises LoadError if two tensors get the same name.
        """
        return self._renamed(renamed_keys(self._snapshots, renamer_of(given)))

    def contiguous(self) -> Store:
        """The tensors with each list renumbered from 0 without gaps: fc.0, fc.2 -> fc.0, fc.1."""
        return self._renamed(contiguous(self._snapshots))

    def _renamed(self, table: Mapping[str, str]) -> Store:
        snapshots = {table[name]: s.named(table[name]) for name, s in self._snapshots.items()}
        return self.view(snapshots, nameless=self.nameless and all(table[name] == name for name in table))

    def map(self, function: Callable[[Snapshot], Snapshot | None]) -> Store:
        """Each Snapshot replaced by function(snapshot); those for which it returns None are dropped."""
        made = [function(s) for s in self._snapshots.values()]
        return self.view({s.name: s for s in made if s is not None})

    def precision(self, precision: str) -> Store:
        """The tensors in another precision: "double", "full", "half" or "bfloat16", as in `Module.save_file`. Floats
        that become narrower are read now: those that the dtype does not hold, and batch norms, stay float32.

        Raises DTypeError for any other, and on reading if an integer does not fit.
        """
        return self.view(in_precision(self._snapshots, precision))

    def half(self) -> Store:
        """32- and 64-bit floats as float16, except those that `precision` leaves; integers are unchanged."""
        return self.view(_chosen(self._snapshots, lambda d: dtypes.float16 if d.is_float and d.bits > 16 else d))

    def quantize(
        self,
        bits: int = 8,
        level: str | int | tuple[int, ...] = "tensor",
        calibration: str = "min-max",
        filter: Filtering = None,
    ) -> Store:
        """Float tensors of two or more axes, quantized symmetrically to 8, 4 or 2 bits, in the layout of Burn's
        quantized tensors.

        level: which elements share a scale: "tensor", "channel" (a column), a number of elements along the last axis,
        or a block's extent along each axis: (32, 1) of dense weights (d_input, d_output) is the level 32 of
        `Module.quantize_weights`; calibration: "min-max" or "absolute-mean". A burnpack stores the bits; reading
        returns float32, as do the snapshots of this view. Raises UnsupportedError for anything else.
        """
        from .quantizing import quantized

        keep = filter_of(filter)
        return self.map(lambda s: quantized(s, bits, level, calibration) if keep(s.name, "") else s)

    def save(self, path: str | os.PathLike[str] | IO[bytes], **options: Any) -> int:
        """Write the tensors to a file; see emberlet.store.save."""
        from .writing import save

        return save(self, path, **options)


def similar(name: str, names: Any, count: int = 3) -> list[str]:
    """The names most similar to `name`, those with the same last part first."""
    known = list(names)
    if len(known) > 20_000:  # comparing takes a while
        known = [n for n in known if n.rpartition(".")[2] == name.rpartition(".")[2]][:20_000]
    tail = name.rpartition(".")[2]
    near = difflib.get_close_matches(name, known, count * 3, 0.6)
    return sorted(near, key=lambda n: n.rpartition(".")[2] != tail)[:count]
