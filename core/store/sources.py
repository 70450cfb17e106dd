"""Stores from modules, records and dicts, and merged stores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .. import dtypes
from ..backend import Backend
from ..burnpack import Burnpack
from ..errors import LoadError
from ..host.sharing.foreign import tensor_of
from ..module import Module, items
from ..module.burn_names import burn_names
from ..module.layouts import KEY, LAYOUTS
from ..param import Param
from ..tensor import Tensor
from .filters import Filtering, filter_of
from .snapshot import Snapshot
from .source_mapping import SOURCES, text_of
from .stored import Store, in_precision
from .torch_modules import joined


class Place(NamedTuple):
    """The location of a parameter: its name, the classes of the enclosing modules, its holder, and its key there."""

    name: str
    container: str
    holder: Any
    key: Any
    param: Param

    @property
    def transposed_in_pytorch(self) -> bool:
        """Whether this is the weight of a dense layer, which PyTorch stores as (d_output, d_input)."""
        return self.key == "weight" and bool(getattr(type(self.holder), "TRANSPOSED_IN_PYTORCH", False))


def places(
    value: Any, name: str = "", container: str = "", around: tuple[Any, ...] = (), burn: bool = False
) -> Iterator[Place]:
    """Every parameter of a module, in the order of the attributes, or in that of the fields of Burn's structs."""
    if isinstance(value, Module):
        container = f"{container}.{type(value).__name__}" if container else type(value).__name__
    for key, child in _as_declared(value) if burn else items(value):
        if isinstance(child, Param):
            yield Place(name + str(key), container, value, key, child)
        elif isinstance(child, (Module, list, tuple, dict)) and not any(p is child for p in (*around, value)):
            yield from places(child, f"{name}{key}.", container, (*around, value), burn)


def _as_declared(value: Any) -> list[tuple[Any, Any]]:
    """The attributes of a layer in the order of Burn's struct. An attribute that has another's name there takes its
    place."""
    pairs = list(items(value))
    keys, others = [key for key, _ in pairs], getattr(value, "BURN_NAMES", {})

    def position(pair: tuple[Any, Any]) -> int:
        theirs = others.get(pair[0], pair[0])
        return keys.index(theirs if theirs in keys else pair[0])

    return sorted(pairs, key=position) if others else pairs


def from_module(
    module: Module,
    *,
    filter: Filtering = None,
    layout: str = "burn",
    names: str | None = None,
    precision: str | None = None,
    packed: str | None = None,
) -> Store:
    """The parameters of a module as a store, for `save_into` and for another module's `load_from`.

    layout: "pytorch" transposes dense weights, adds the `num_batches_tracked` of batch norms, and joins the weights of
    recurrent layers and attention as PyTorch does (LSTM's weight_ih_l0, in_proj_weight); names: "burn" for
    Burn's names; packed: how packed weights are held: "parts", the values, scales and others, each by its name;
    "burn", as Burn's quantized tensors, the default with Burn's names; "blocks", each as one tensor with its integers,
    for GGUF; the rest as in `Module.save_into`. Values are read on access.
    """
    if layout not in LAYOUTS:
        raise LoadError(f"layout is one of {', '.join(LAYOUTS)}, found {layout!r}")
    if names not in (None, "burn"):
        raise LoadError(f"names is None or 'burn', found {names!r}")
    packed = packed or ("burn" if names and layout == "burn" else "parts")
    keep, others = filter_of(filter), burn_names(module) if names else {}
    found: dict[str, Snapshot] = {}
    from .blocks import as_blocks, as_burn, packs

    for place in places(module):
        if not keep(place.name, place.container):
            continue
        name = others.get(place.name, place.name)
        if name in found:
            raise LoadError(f"two parameters of {type(module).__name__} are called {name!r}")
        if packed != "parts" and packs(place.holder):
            whole, held = name.rpartition(".")[0], place.holder
            if whole not in found:
                burn = packed == "burn"
                found[whole] = as_burn(whole, held, place.param.id.value) if burn else as_blocks(whole, held)
            continue
        s = _of_param(name, place.param)
        found |= _in_pytorch(name, place, s) if layout == "pytorch" else {name: s}
    if precision is not None:
        found |= in_precision({name: s for name, s in found.items() if s.quantized is None}, precision)
    if layout == "pytorch":
        found = joined(module, found)
    told = text_of(module) if layout == "burn" else None
    metadata = {} if told is None else {SOURCES: told}
    return Store(found, format="module", origin=type(module).__name__, metadata=metadata, layout=layout)


def _in_pytorch(name: str, place: Any, s: Snapshot) -> dict[str, Snapshot]:
    """A parameter as PyTorch has it, and what PyTorch has beside it."""
    found = {name: s.transposed() if place.transposed_in_pytorch else s}
    if place.key == "running_var":
        counter = name.rpartition("running_var")[0] + "num_batches_tracked"
        found[counter] = Snapshot(counter, dtypes.int64, (), make=lambda b: b.full((), 0, dtypes.int64))
    return found


def _of_param(name: str, param: Param) -> Snapshot:
    if getattr(param, "_on_save", None) is not None:  # only its result determines dtype and shape
        saved = param.saved()
        return _of_tensor(name, saved, param.id.value, id(param))

    def make(backend: Backend) -> Tensor:
        return param.saved().to(backend)

    def raw() -> memoryview:
        value = param.saved()
        return memoryview(value.backend.to_bytes(value))

    return Snapshot(name, param.dtype, param.shape, raw=raw, make=make, param_id=param.id.value, same=id(param))


def _of_tensor(name: str, value: Tensor, param_id: int | None = None, same: object = None) -> Snapshot:
    return Snapshot(
        name, value.dtype, value.shape, raw=lambda: memoryview(value.backend.to_bytes(value)),
        make=lambda backend: Tensor(value.data, value.dtype, value.shape, value.backend).to(backend),
        param_id=param_id, same=same,
    )  # fmt: skip


def merge(*stores: Any) -> Store:
    """One store with the tensors of several; for equal names the last one wins. Each may be anything that `load_from`
    takes.

    Raises LoadError if their dense weights have different layouts.
    """
    found: dict[str, Snapshot] = {}
    metadata: dict[str, str] = {}
    scalars: dict[str, Any] = {}
    layouts = set()
    for one in stores:
        store = store_of(one)
        found.update(store)
        metadata.update(store.metadata)
        scalars.update(store.scalars)
        layouts.add(store.layout)
    if len(layouts) > 1:
        said = ", ".join(sorted(str(one) for one in layouts))
        raise LoadError(f"the stores have different layouts ({said}); load them one after the other instead")
    layout = layouts.pop() if layouts else None
    return Store(found, format="merged", metadata=metadata, scalars=scalars, layout=layout)


def store_of(given: Any) -> Store:
    """A Store from a Store, a path, bytes, a Module, a Burnpack, a Record, or a dict of name -> tensor."""
    if isinstance(given, Store):
        return given
    if isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview)):
        from .opening import open

        return open(given)
    if isinstance(given, Module):
        return from_module(given)
    if isinstance(given, Burnpack):
        from .formats.burnpack import of_pack

        return of_pack(given, given.origin)
    ids = getattr(given, "param_ids", {})
    if not isinstance(given, Mapping) and not hasattr(given, "param_ids"):
        raise LoadError(f"cannot load from {type(given).__name__}; pass a path, a store, a module or a dict of tensors")
    found = {}
    for name in given:
        value = given[name]
        if isinstance(value, Snapshot):
            found[name] = value.named(name)
            continue
        if not isinstance(value, Tensor):
            value = tensor_of(value)
        found[str(name)] = _of_tensor(str(name), value, ids[name].value if name in ids else None)
    return Store(found, format="dict", layout="burn" if hasattr(given, "param_ids") else None)


__all__ = ["KEY", "Place", "from_module", "merge", "places", "store_of"]
