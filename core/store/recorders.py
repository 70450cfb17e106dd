"""Burn's recorders: how a record is written to a file and read from one.

recorder = NamedMpkFileRecorder(FullPrecisionSettings)   # in Rust NamedMpkFileRecorder::<FullPrecisionSettings>::new()
model.save_file("model", recorder)                       # model.mpk
model = Model().load_record(recorder.load("model"))

For code carried over from its book: a file is read here; an older Burn may refuse it, since its types ask for fields
that hold no tensor. For Burn, burnpacks and safetensors are written.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ArgumentError, DTypeError, EmberletError
from ..host.files import atomic_write
from .formats.record_writing import as_json, as_message_pack, tree
from .loading import LoadResult
from .naming import KeyRemapper
from .opening import open
from .snapshot import Snapshot
from .sources import from_module, store_of
from .stored import Store
from .writing import dumps


class PrecisionSettings:
    """How wide the floats and integers in a file are."""

    PRECISION = "full"


class DoublePrecisionSettings(PrecisionSettings):
    """float64 and int64."""

    PRECISION = "double"


class FullPrecisionSettings(PrecisionSettings):
    """float32 and int32."""


class HalfPrecisionSettings(PrecisionSettings):
    """float16 and int16. Batch norms, and floats that float16 does not hold, stay float32."""

    PRECISION = "half"


class LoadedRecord(Mapping[str, Snapshot]):
    """The tensors of a file, read when `module.load_record(record)` takes them. Reads like a dict of Snapshots.

    options: of `load_from`.
    """

    def __init__(self, store: Store, **options: Any) -> None:
        self.store = store
        self._options = options

    def __getitem__(self, name: str) -> Snapshot:
        return self.store[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.store)

    def __len__(self) -> int:
        return len(self.store)

    TAKES_OPTIONS = True

    def apply_to(self, module: Any, strict: bool = True, layout: str | None = None, **options: Any) -> LoadResult:
        """What `module.load_from(record, …)` does, and `load_record` with its own words; `strict=False` is
        `partial=True`. Raises LoadError for missing values."""
        given = {**self._options, **options}
        if layout is not None:
            given["layout"] = layout
        if not strict:
            given["partial"] = True
        found: LoadResult = module.load_from(self.store, **given)
        return found


def _stored(record: Any) -> Store:
    return record.store if isinstance(record, LoadedRecord) else store_of(record)


class Recorder:
    """Reads records. settings: a class of PrecisionSettings, for writing."""

    FILE_EXTENSION = ""
    SETTINGS: type[PrecisionSettings] = FullPrecisionSettings  # if none are given

    def __init__(self, settings: type[PrecisionSettings] | None = None) -> None:
        self.settings = self.SETTINGS if settings is None else settings
        if not isinstance(self.settings, type) or not issubclass(self.settings, PrecisionSettings):
            raise ArgumentError(
                f"{type(self).__name__} takes DoublePrecisionSettings, FullPrecisionSettings or HalfPrecisionSettings, "
                f"found {settings!r}"
            )

    def __class_getitem__(cls, settings: type[PrecisionSettings]) -> Any:
        return type(cls.__name__, (cls,), {"SETTINGS": settings, "__doc__": cls.__doc__})

    @classmethod
    def new(cls) -> Any:
        """Burn's `new()`: the recorder with its settings."""
        return cls()

    default = new

    def _path(self, file: str | bytes | os.PathLike[str]) -> str:
        path, ending = os.fsdecode(file), "." + self.FILE_EXTENSION
        return path if not self.FILE_EXTENSION or path.endswith(ending) else path + ending

    def load(self, args: Any, device: object = None) -> LoadedRecord:
        """The record in a file; its extension may be left out. Tensors go to the backend of the module that takes
        them, whatever the device. Raises FormatError, OSError."""
        return LoadedRecord(open(self._path(args)))

    def record(self, record: Any, args: Any) -> Any:
        """Write a record, such as `module.into_record()`, to a file. Raises EmberletError: this recorder only reads."""
        raise EmberletError(f"{type(self).__name__} reads files; NamedMpkFileRecorder writes them, save_file burnpacks")

    def save_module(self, module: Any, path: Any) -> Any:
        """What `module.save_file(path, recorder)` does: a file with Burn's names in layers of its own."""
        return self.record(from_module(module, names="burn", packed="parts"), path)

    def load_module(self, module: Any, path: Any) -> Any:
        """What `module.load_file(path, recorder)` does."""
        return module.load_record(self.load(path))


class _Named(Recorder):
    def _burns(self) -> str:
        """The name of Burn's struct: the class that has the extension, of which others are aliases there."""
        return next(each.__name__ for each in type(self).__mro__ if "FILE_EXTENSION" in vars(each))

    def _bytes(self, value: Any) -> bytes:
        raise NotImplementedError

    def record(self, record: Any, args: Any) -> str:
        """Write a record, such as `module.into_record()`, to a file with the recorder's extension; returns its path. An
        existing file is replaced once the new one is complete. Raises DTypeError for a dtype that Burn lacks,
        FormatError for names that a record has no place for, OSError; EmberletError for dense weights as PyTorch has
        them, which only the module tells."""
        store = _stored(record)
        if store.layout == "pytorch":
            raise EmberletError(
                "dense weights lie otherwise in PyTorch: write record(module.load_record(record).into_record(), path)"
            )
        path = self._path(args)
        data = self._bytes(tree(store, self.settings.PRECISION, self._burns()))
        with atomic_write(path) as out:
            out.write(data)
        return path


class NamedMpkFileRecorder(_Named):
    """MessagePack with names."""

    FILE_EXTENSION = "mpk"

    def _bytes(self, value: Any) -> bytes:
        return as_message_pack(value)


class NamedMpkGzFileRecorder(_Named):
    """MessagePack with names, compressed."""

    FILE_EXTENSION = "mpk.gz"

    def _bytes(self, value: Any) -> bytes:
        return gzip.compress(as_message_pack(value), mtime=0)


class PrettyJsonFileRecorder(_Named):
    """Indented JSON."""

    FILE_EXTENSION = "json"

    def _bytes(self, value: Any) -> bytes:
        return as_json(value, 2)


class JsonGzFileRecorder(_Named):
    """JSON, compressed."""

    FILE_EXTENSION = "json.gz"

    def _bytes(self, value: Any) -> bytes:
        return gzip.compress(as_json(value), mtime=0)


class DefaultFileRecorder(NamedMpkFileRecorder):
    """Burn's default: MessagePack with names."""


class CompactRecorder(NamedMpkFileRecorder):
    """MessagePack with names, at half precision."""

    SETTINGS = HalfPrecisionSettings


class BinFileRecorder(Recorder):
    """bincode, which has no names: read, not written."""

    FILE_EXTENSION = "bin"


class BinGzFileRecorder(Recorder):
    """bincode, compressed: read, not written."""

    FILE_EXTENSION = "bin.gz"


class BinBytesRecorder(Recorder):
    """Bytes in memory: a burnpack is written, every format is read."""

    def load(self, args: Any, device: object = None) -> LoadedRecord:
        """The record in these bytes. Raises FormatError, DTypeError for what is no bytes."""
        if not isinstance(args, (bytes, bytearray, memoryview)):
            raise DTypeError(
                f"BinBytesRecorder loads bytes, found {type(args).__name__}; NamedMpkFileRecorder().load(path) a file"
            )
        return LoadedRecord(open(bytes(args)))

    def record(self, record: Any, args: Any = ()) -> bytes:
        """A record, such as `module.into_record()`, as the bytes of a burnpack. Raises DTypeError."""
        return dumps(_stored(record).precision(self.settings.PRECISION))


class LoadArgs:
    """A PyTorch file and how its tensors are named. Methods return the object."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = file
        self.key: str | None = None
        self.rename = KeyRemapper()
        self.debug = False

    def with_key_remap(self, pattern: str, replacement: str) -> LoadArgs:
        """Rename tensors, after earlier renames. Raises EmberletError for a malformed pattern."""
        self.rename.add(pattern, replacement)
        return self

    def with_top_level_key(self, key: str) -> LoadArgs:
        """The part of the file that holds the tensors, such as "state_dict"."""
        self.key = key
        return self

    def with_debug_print(self) -> LoadArgs:
        """Print the names in the file and the new ones."""
        self.debug = True
        return self


class PyTorchFileRecorder(Recorder):
    """Files of PyTorch: read, not written."""

    def load(self, args: Any, device: object = None) -> LoadedRecord:
        """The record in a file: a path, or LoadArgs. Layers of lists whose numbers have gaps, and variants of Rust's
        enums, are matched, and tensors of the file that the module lacks are left out. Raises FormatError, OSError."""
        given = args if isinstance(args, LoadArgs) else LoadArgs(args)
        store = open(given.file, key=given.key).rename(given.rename)
        if given.debug:
            for before, after in store.names:
                print(f"{before} -> {after}")
        return LoadedRecord(store, layout="pytorch")
