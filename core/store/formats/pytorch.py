"""PyTorch's `.pt` and `.pth`: zip archives (since 1.6), the older sequences of pickles, and the oldest tar archives.

Nothing in a file is executed: pickles.py interprets it, and torch_tensors.py lists the known names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ... import dtypes
from ...burnpack.limits import Limits
from ...errors import FormatError, LoadError
from ..reading import Bytes
from ..snapshot import Snapshot, bools
from ..stored import Store
from .archives import members_of_tar, members_of_zip
from .pickles import Unknown, load
from .torch_modules import float_names
from .torch_quantized import Scales, dequantized
from .torch_tensors import Storage, StorageType, TensorView, elements, find, storage_of

MAGIC = 0x1950A86A20F9469CFC6C
MODULE = ("_parameters", "_buffers", "_modules")  # of a module that was pickled whole

# A storage's key -> (offset of its bytes, their number)
Spans = dict[str, tuple[int, int]]


def read(data: Bytes, where: str, *, limits: Limits, key: str | None = None, **_: object) -> Store:
    """The tensors of a file, their names joined by dots. Raises FormatError, LoadError if there is no `key`."""
    tree, spans, swap = _contents(data, where, limits)
    found: dict[str, Snapshot] = {}
    scalars: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for name, value in float_names(_leaves(_part(tree, key, where), where, len(data))):
        if isinstance(value, TensorView):
            if len(found) >= limits.tensors:
                raise FormatError(f"{where}: more tensors than the limit of {limits.tensors}")
            found[name] = _snapshot(name, value, data, spans, swap, where, limits)
        elif isinstance(value, (bool, int, float)):
            scalars[name] = value
        else:
            extras[name] = value
    return Store(found, format="pytorch", origin=where, scalars=scalars, extras=extras, layout="pytorch")


def config(data: Bytes, where: str, key: str | None) -> Any:
    """The contents of the file as plain values; tensors are Snapshots."""
    limits = Limits()
    tree, spans, swap = _contents(data, where, limits)
    done: dict[int, Any] = {}

    def plain(value: Any, depth: int) -> Any:
        if id(value) in done:
            return done[id(value)]
        if depth > 100:
            raise FormatError(f"{where}: nested deeper than 100")
        if isinstance(value, TensorView):
            return _snapshot("", value, data, spans, swap, where, limits)
        if isinstance(value, Unknown):
            done[id(value)] = value.name
            value = value.state if isinstance(value.state, dict) else value.name
        if isinstance(value, dict):
            made: Any = {}
            done[id(value)] = made
            made.update((k, plain(v, depth + 1)) for k, v in value.items())
            return made
        if isinstance(value, (list, tuple)):
            made = [plain(v, depth + 1) for v in value]
            done[id(value)] = made if isinstance(value, list) else tuple(made)
            return done[id(value)]
        return value

    return plain(_part(tree, key, where), 0)


def _part(tree: Any, key: str | None, where: str) -> Any:
    """The value under a key, or under a path of keys joined by dots."""
    if key is None:
        return tree
    rest = key
    while rest:
        mapping = _mapping(tree)
        if mapping is None:
            break
        if rest in mapping:
            return mapping[rest]
        head = next((k for k in mapping if isinstance(k, str) and rest.startswith(k + ".")), None)
        if head is None:
            names = ", ".join(sorted(str(k)[:40] for k in mapping)[:8])
            raise LoadError(f"{where}: holds nothing under {key!r}; at the top there are {names or 'no names'}")
        tree, rest = mapping[head], rest[len(head) + 1 :]
    raise LoadError(f"{where}: holds nothing under {key!r}")


def _mapping(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, Unknown):
        value = value.state
    if not isinstance(value, dict):
        return None
    if any(isinstance(value.get(part), dict) for part in MODULE):
        return {k: v for part in MODULE for k, v in (value.get(part) or {}).items() if v is not None}
    return value


def _leaves(tree: Any, where: str, size: int) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything except dicts, lists and modules, in the file's order. size: the file's, in bytes."""
    budget = min(2_000_000, 65_536 + 16 * size)
    path: list[int] = []

    def walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
        nonlocal budget
        budget -= 1 + len(name) // 16
        if budget < 0 or len(path) > 100:
            raise FormatError(f"{where}: its values are nested too deep, or share too much")
        children = _mapping(value)
        if children is None and isinstance(value, (list, tuple)) and any(_holds_more(v) for v in value):
            children = dict(enumerate(value))
        if children is None or id(value) in path:
            yield name, value
            return
        path.append(id(value))
        for k, child in children.items():
            yield from walk(child, f"{name}.{k}" if name else str(k))
        path.pop()

    return walk(tree, "")


def _holds_more(value: Any) -> bool:
    return isinstance(value, (TensorView, dict, list, tuple)) or _mapping(value) is not None


def _snapshot(
    name: str, view: TensorView, data: Bytes, spans: Spans, swap: bool, where: str, limits: Limits
) -> Snapshot:
    storage, width = view.storage, view.dtype.itemsize
    if storage.key not in spans:
        raise FormatError(f"{where}: tensor {name!r} is in storage {storage.key[:40]!r}, which is not in the file")
    start, length = spans[storage.key]
    start += storage.offset * width
    first, end = view.span()
    if (storage.offset + end) * width > length and first != end:
        raise FormatError(f"{where}: tensor {name!r} ends past its storage of {length} bytes")
    raw = partial(elements, view, data, start, swap)
    is_bool = view.dtype is dtypes.bool
    s = Snapshot(
        name, view.dtype, view.shape, raw=None if is_bool else raw,
        make=partial(bools, raw, view.shape) if is_bool else None,
        same=(storage.key, storage.offset, view.offset, view.shape, view.strides),
    )  # fmt: skip
    if s.nbytes > limits.tensor:
        raise FormatError(f"{where}: tensor {name!r}: {s.nbytes} bytes are more than the limit of {limits.tensor}")
    if view.scales is None:
        return s
    scale, zero, axis = view.scales
    parts = [
        _snapshot(name, one, data, spans, swap, where, limits) if isinstance(one, TensorView) else one
        for one in (scale, zero)
    ]
    return dequantized(s, Scales(parts[0], parts[1], axis))


# -- the containers


def _contents(data: Bytes, where: str, limits: Limits) -> tuple[Any, Spans, bool]:
    """(the saved value, the storages' positions, whether their bytes are big-endian)"""
    head = bytes(data[0 : min(512, len(data))])
    if head[:2] == b"PK":
        return _zip(data, where, limits)
    if head[257:262] == b"ustar":
        return _tar(data, where, limits)
    return _legacy(data, where, limits)


def _storage_id(where: str) -> Callable[[Any], Any]:
    """The Storage of a persistent id."""

    def persistent(found: Any) -> Any:
        storage = storage_of(found)
        if storage is None:
            raise FormatError(f"{where}: a persistent id of its pickle is not a storage")
        return storage

    return persistent


def _zip(data: Bytes, where: str, limits: Limits) -> tuple[Any, Spans, bool]:
    members = members_of_zip(data, where, stored_only=True)
    inner = [name for name in members if name.endswith("data.pkl")]
    if not inner:
        raise FormatError(f"{where}: a zip archive without data.pkl, which PyTorch's files have")
    name = min(inner, key=len)
    root = name[: -len("data.pkl")]
    start, length = members[name]
    if length > limits.metadata:
        raise FormatError(f"{where}: {length} bytes of pickle are more than the limit of {limits.metadata}")
    tree, _ = load(data[start : start + length], find, _storage_id(where), where)
    begin = root + "data/"
    spans = {n[len(begin) :]: span for n, span in members.items() if n.startswith(begin)}
    order = members.get(root + "byteorder")
    swap = order is not None and bytes(data[order[0] : order[0] + min(order[1], 8)]) == b"big"
    return tree, spans, swap


def _legacy(data: Bytes, where: str, limits: Limits) -> tuple[Any, Spans, bool]:
    """Pickles one after the other: magic number, version, system, the value, the keys of storages; then those."""
    # The pickles come first; the storages, which may be large, are not read.
    front = data[0 : min(len(data), limits.metadata)]
    persistent = _storage_id(where)
    magic, at = load(front, find, persistent, where)
    if magic != MAGIC:
        if at == len(data):  # a plain pickle without PyTorch tensors
            return magic, {}, False
        raise FormatError(f"{where}: a pickle, but not one that PyTorch saved")
    _, at = load(front, find, persistent, where, at)
    system, at = load(front, find, persistent, where, at)
    sizes: dict[str, int] = {}

    def sized(found: Any) -> Any:
        storage = persistent(found)
        if isinstance(storage, Storage):
            sizes[storage.key] = storage.dtype.itemsize
        return storage

    tree, at = load(front, find, sized, where, at)
    keys, at = load(front, find, persistent, where, at)
    if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys):
        raise FormatError(f"{where}: its storages have no list of keys")
    swap = isinstance(system, dict) and system.get("little_endian") is False
    spans: Spans = {}
    for key in keys:
        if at + 8 > len(data):
            raise FormatError(f"{where}: is cut off at storage {key[:40]!r}")
        count = int.from_bytes(data[at : at + 8], "big" if swap else "little")
        at += 8
        length = count * sizes.get(key, 1)
        if length > len(data) - at:
            raise FormatError(f"{where}: storage {key[:40]!r} ends past the file")
        spans[key] = (at, length)
        at += length
    return tree, spans, swap


def _tar(data: Bytes, where: str, limits: Limits) -> tuple[Any, Spans, bool]:
    """Before PyTorch 0.2: the members `storages` and `pickle`, and `tensors` if the pickle's persistent ids are keys of
    tensors; else they are keys of storages."""
    members = members_of_tar(data, where)
    for name in ("storages", "pickle"):
        if name not in members:
            raise FormatError(f"{where}: a tar archive without {name!r}, which PyTorch's files had")
    part = {name: data[start : start + length] for name, (start, length) in members.items() if name != "storages"}
    begin, length = members["storages"]
    storages: dict[str, Storage] = {}
    tensors, spans = {}, {}

    def nothing(found: Any) -> Any:
        raise FormatError(f"{where}: a persistent id in a pickle that cannot have one")

    raw = data[begin : begin + length]
    count, at = load(raw, find, nothing, where)
    for _ in range(_count(count, where, len(raw))):
        args, at = load(raw, find, nothing, where, at)
        if not isinstance(args, tuple) or len(args) != 3 or not isinstance(args[2], StorageType):
            raise FormatError(f"{where}: a storage is not in PyTorch's format")
        key, dtype = str(args[0])[:64], args[2].dtype
        size = int.from_bytes(raw[at : at + 8], "little")
        if size * dtype.itemsize > len(raw) - at - 8:
            raise FormatError(f"{where}: storage {key!r} ends past the file")
        spans[key] = (begin + at + 8, size * dtype.itemsize)
        storages[key] = Storage(dtype, key, size)
        at += 8 + size * dtype.itemsize
    views, _ = load(raw, find, nothing, where, at) if at < len(raw) else ([], 0)
    _add_views(views, storages, where)
    raw = part.get("tensors", memoryview(b""))
    count, at = load(raw, find, nothing, where) if raw else (0, 0)
    for _ in range(_count(count, where, len(raw))):
        args, at = load(raw, find, nothing, where, at)
        if not isinstance(args, tuple) or len(args) != 3:
            raise FormatError(f"{where}: a tensor is not in PyTorch's format")
        tensors[str(args[0])[:64]], at = _tar_tensor(raw, at, storages.get(str(args[1])[:64]), where)

    def persistent(found: Any) -> Any:
        if isinstance(found, tuple) and found:  # a container with its source
            return found[0]
        if str(found)[:64] not in tensors:
            raise FormatError(f"{where}: a persistent id of its pickle is not a tensor")
        return tensors[str(found)[:64]]

    tree, _ = load(part["pickle"], find, persistent, where)
    return tree, spans, False


def _add_views(views: Any, storages: dict[str, Storage], where: str) -> None:
    """Parts of storages, as storages of their own."""
    for view in views if isinstance(views, list) else ():
        if not isinstance(view, tuple) or len(view) != 4 or not all(type(n) is int for n in view[2:]):
            raise FormatError(f"{where}: a view of a storage is not in PyTorch's format")
        root = storages.get(str(view[1])[:64])
        if root is None or not 0 <= view[2] <= view[2] + view[3] <= root.count:
            raise FormatError(f"{where}: a view of a storage ends past it")
        storages[str(view[0])[:64]] = Storage(root.dtype, root.key, view[3], view[2] + root.offset)


def _count(found: Any, where: str, most: int) -> int:
    if type(found) is not int or not 0 <= found <= most:
        raise FormatError(f"{where}: does not say how many tensors it holds")
    return found


def _tar_tensor(raw: memoryview, at: int, storage: Storage | None, where: str) -> tuple[Any, int]:
    from .torch_tensors import KNOWN, MAX_RANK

    try:
        (axes,) = struct.unpack_from("<i", raw, at)
        if storage is None or not 0 <= axes <= MAX_RANK:
            raise FormatError(f"{where}: a tensor of {axes} axes, or of no storage")
        numbers = struct.unpack_from(f"<{2 * axes + 1}q", raw, at + 8)
    except struct.error:
        raise FormatError(f"{where}: a tensor is cut off") from None
    made = KNOWN["torch._utils._rebuild_tensor"].call(storage, numbers[-1], numbers[:axes], numbers[axes:-1])
    return made, at + 8 + 8 * len(numbers)
