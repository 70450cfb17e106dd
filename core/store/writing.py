"""Writing stores to files: atomically, with one tensor in memory at a time."""

from __future__ import annotations

import importlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ..errors import EmberletError
from ..host.files import atomic_write
from ..host.folders.outputs import ExistsError, listed
from ..host.together import synced, together
from ..module.layouts import KEY
from .source_mapping import SOURCES

if TYPE_CHECKING:
    from .stored import Store

# extension -> format; each is a module of core/store/formats with `dump`
ENDINGS = {".bpk": "burnpack", ".safetensors": "safetensors", ".npz": "npz", ".gguf": "gguf"}
WRITERS = {"gguf": "gguf_writing"}  # where `dump` is in a module of its own
FOREIGN = frozenset(".pt .pth .ckpt .bin .onnx .h5 .hdf5 .keras .mpk .tflite .npy".split())  # not written


def save(
    store: Store,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    metadata: Mapping[str, str] | None = None,
    overwrite: bool = True,
    shard: int | None = None,
) -> int:
    """Write the tensors, metadata and scalars of a store; returns the bytes written.

    target: a path, or a binary file that is open for writing; format: "burnpack", "safetensors", "npz" or "gguf", else
    by the path's extension (burnpack if it is of no format); metadata: added to the store's own; overwrite: whether an
    existing file may be replaced; shard: write several safetensors files with at most this many bytes of tensors each,
    and their index.

    An existing file is replaced only once the new one is complete and synced; after any error it is unchanged. Raises
    ExistsError, which is an EmberletError and a FileExistsError, DTypeError for what the format cannot hold, OSError,
    EmberletError for the extension of a format that is not written.
    """
    if hasattr(target, "write"):
        return _dump(store, cast(IO[bytes], target), format or "burnpack", metadata)
    path = os.fspath(cast(str, target))
    ending = _ending(path)
    if format is None and ending in FOREIGN:
        raise EmberletError(
            f"{path}: expected a name that ends in {listed([*ENDINGS])}; format= writes one of them under any name"
        )
    kind = format or ENDINGS.get(ending, "burnpack")
    if not ending and format is None and not os.path.isdir(path) and not path.endswith(("/", os.sep)):
        path += ".bpk"
    if shard is not None:
        return _shards(store, Path(path), shard, kind, metadata, overwrite)
    if not overwrite and os.path.lexists(path):
        raise ExistsError(f"{path} exists; overwrite=True (--overwrite) replaces it")
    with atomic_write(path) as file:
        return _dump(store, file, kind, metadata)


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def format_of(target: Any, format: str | None) -> str:
    """The format that `save` would write."""
    if format is not None or hasattr(target, "write"):
        return format or "burnpack"
    return ENDINGS.get(_ending(os.fspath(target)), "burnpack")


def dumps(store: Store, format: str = "burnpack", metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of the file that `save` would write."""
    file = io.BytesIO()
    _dump(store, file, format, metadata)
    return file.getvalue()


def _dump(store: Store, file: IO[bytes], format: str, metadata: Mapping[str, str] | None) -> int:
    if format not in ENDINGS.values():
        raise EmberletError(f"{format!r} cannot be written; known are {', '.join(ENDINGS.values())}")
    texts = {k: v for k, v in store.metadata.items() if k != KEY and (k, v) != ("format", "pt")}
    if format != "burnpack":
        texts.pop(SOURCES, None)
    texts.update(metadata or {})
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise EmberletError(f"metadata {key!r}: {value!r} is not a pair of texts")
    writer = importlib.import_module(f"{__package__}.formats.{WRITERS.get(format, format)}")
    written: int = writer.dump(store, file, texts)
    return written


def _shards(
    store: Store, path: Path, limit: int, kind: str, metadata: Mapping[str, str] | None, overwrite: bool
) -> int:
    """Several safetensors files and their index, which appear together."""
    if kind != "safetensors":
        raise EmberletError(f"only safetensors files are written in shards, not {kind}")
    groups: list[list[str]] = [[]]
    size = 0
    for name in store:
        each = int(store[name].dtype.nbytes(store[name].size))
        if groups[-1] and size + each > limit:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += each
    names = [f"{path.stem}-{i + 1:05}-of-{len(groups):05}{path.suffix}" for i in range(len(groups))]
    index = path.name + ".index.json"
    for name in [index, *names]:
        if not overwrite and os.path.lexists(path.parent / name):
            raise ExistsError(f"{path.parent / name} exists; overwrite=True (--overwrite) replaces it")
    total, where = 0, {}
    with together(path.parent) as folder:
        for name, keys in zip(names, groups, strict=True):
            with synced(folder / name) as file:
                total += _dump(_part(store, keys), file, kind, metadata)
            where.update(dict.fromkeys(keys, name))
        size = sum(int(s.dtype.nbytes(s.size)) for s in store.values())
        told: dict[str, Any] = {"metadata": {"total_size": size}, "weight_map": where}
        text = json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False)
        with synced(folder / index) as listing:
            total += listing.write(text.encode())
    return total


def _part(store: Store, keys: Iterable[str]) -> Store:
    return store.view({key: store[key] for key in keys})
