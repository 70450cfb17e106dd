"""Burn's stores: a file, with the options of `load_from` and `save_into` as methods that are called one after another.

store = BurnpackStore.from_file("model.bpk").with_regex(r"^encoder\\.").allow_partial(True)
model.load_from(store)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import EmberletError
from .filters import Filter
from .loading import LoadResult
from .naming import KeyRemapper
from .opening import open
from .snapshot import Snapshot
from .sources import from_module
from .stored import Store
from .writing import save


class PathFilter(Filter):
    """Burn's: a Filter that methods extend."""

    def with_regex(self, pattern: str) -> PathFilter:
        """Also tensors whose name matches the pattern. Raises EmberletError for a malformed one."""
        self.patterns += Filter(pattern).patterns
        return self

    def with_full_path(self, path: str) -> PathFilter:
        """Also the tensor of that name."""
        return self.with_full_paths([path])

    def with_full_paths(self, paths: Iterable[str]) -> PathFilter:
        """Also the tensors of those names."""
        self.exact.update(paths)
        return self

    def with_predicate(self, function: Callable[[str, str], bool]) -> PathFilter:
        """Also tensors for which function(name, container) is true."""
        self.where.append(function)
        return self

    def match_all(self) -> PathFilter:
        """Every tensor."""
        return self.with_predicate(lambda name, container: True)


class Adapter:
    """How dense weights lie in the file: "burn" or "pytorch"."""

    layout = "pytorch"


class PyTorchToBurnAdapter(Adapter):
    """Burn's: the file was written by PyTorch; `layout="pytorch"` of `load_from`."""


class BurnToPyTorchAdapter(Adapter):
    """Burn's: the file is for PyTorch; `layout="pytorch"` of `save_into`."""


class ModuleStore:
    """A file, or bytes in memory, and how a module is loaded from it or saved into it. Methods return the store."""

    FORMAT = "burnpack"

    def __init__(self, where: Any) -> None:
        self._where = where
        self._reading: dict[str, Any] = {}
        self._loading: dict[str, Any] = {}
        self._saving: dict[str, Any] = {}
        self._layouts: dict[str, str] = {}
        self._filter: PathFilter | None = None

    @classmethod
    def from_file(cls, path: Any) -> Any:
        """The store of a file, which need not exist yet."""
        return cls(path)

    @classmethod
    def from_bytes(cls, data: Any = None) -> Any:
        """The store of bytes in memory; None: of those that a module will be saved into."""
        return cls(io.BytesIO() if data is None else data)

    @classmethod
    def from_static(cls, data: Any) -> Any:
        """The store of bytes that stay as they are: tensors share them."""
        made = cls(data)
        made._reading["zero_copy"] = True
        return made

    def get_bytes(self) -> bytes:
        """The bytes in memory. Raises EmberletError for the store of a file."""
        if isinstance(self._where, io.BytesIO):
            return self._where.getvalue()
        if isinstance(self._where, (bytes, bytearray, memoryview)):
            return bytes(self._where)
        raise EmberletError("get_bytes is of a store in memory; read the file")

    # -- options

    def with_filter(self, given: PathFilter) -> Any:
        """Only tensors that a PathFilter selects."""
        self._filter = given
        return self

    def with_key_remapping(self, pattern: str, replacement: str) -> Any:
        """Rename tensors of the file, after earlier renames. Raises EmberletError for a malformed pattern."""
        self._loading.setdefault("rename", KeyRemapper()).add(pattern, replacement)
        return self

    def remap(self, remapper: KeyRemapper) -> Any:
        """Rename tensors of the file by this remapper only."""
        self._loading["rename"] = remapper
        return self

    def with_from_adapter(self, adapter: Adapter) -> Any:
        """How the file to load was written."""
        self._layouts["loading"] = adapter.layout
        return self

    def with_to_adapter(self, adapter: Adapter) -> Any:
        """For whom the file is written."""
        self._layouts["saving"] = adapter.layout
        return self

    def metadata(self, key: str, value: str) -> Any:
        """Add a text to the file's metadata."""
        self._saving.setdefault("metadata", {})[key] = value
        return self

    # -- tensors

    def _open(self) -> Store:
        data = self._where.getvalue() if isinstance(self._where, io.BytesIO) else self._where
        return open(data, **self._reading)

    def keys(self) -> list[str]:
        """The names of the tensors in the file."""
        return list(self._open())

    def get_all_snapshots(self) -> dict[str, Snapshot]:
        """The tensors of the file, not read yet."""
        return dict(self._open())

    def get_snapshot(self, name: str) -> Snapshot | None:
        """The tensor `name`, not read yet, or None."""
        return self._open().get(name)

    # -- modules

    def apply_to(self, module: Any) -> LoadResult:
        """What `module.load_from(store)` does."""
        options = dict(self._loading, filter=self._filter)
        if "loading" in self._layouts:
            options["layout"] = self._layouts["loading"]
        found: LoadResult = module.load_from(self._open(), **options)
        return found

    def collect_from(self, module: Any) -> int:
        """What `module.save_into(store)` does. Raises EmberletError for a PytorchStore."""
        if self.FORMAT == "pytorch":
            raise EmberletError("PyTorch's files are read, not written; write a SafetensorsStore, which PyTorch reads")
        tensors = from_module(module, filter=self._filter, layout=self._layouts.get("saving", "burn"))
        where = io.BytesIO() if isinstance(self._where, io.BytesIO) else self._where
        written = save(tensors, where, **{"overwrite": False, **self._saving, "format": self.FORMAT})
        self._where = where
        return written


def _filtering(name: str) -> Any:
    def method(self: Any, *given: Any) -> Any:
        self._filter = getattr(self._filter or PathFilter(), name)(*given)
        return self

    method.__doc__ = getattr(PathFilter, name).__doc__
    return method


def _option(group: str, option: str) -> Any:
    def method(self: Any, value: Any) -> Any:
        getattr(self, group)[option] = value
        return self

    method.__doc__ = f"The argument {option} of `{_CALLS[group]}`."
    return method


_CALLS = {"_reading": "store.open", "_loading": "load_from", "_saving": "save_into"}
_OPTIONS = {
    "zero_copy": ("_reading", "zero_copy"), "with_top_level_key": ("_reading", "key"),
    "allow_partial": ("_loading", "partial"), "validate": ("_loading", "validate"),
    "skip_enum_variants": ("_loading", "skip_enum_variants"), "map_indices_contiguous": ("_loading", "contiguous"),
    "overwrite": ("_saving", "overwrite"),
}  # fmt: skip
for _name in ("with_regex", "with_full_path", "with_full_paths", "with_predicate", "match_all"):
    setattr(ModuleStore, _name, _filtering(_name))
for _name, _where in _OPTIONS.items():
    setattr(ModuleStore, _name, _option(*_where))


class BurnpackStore(ModuleStore):
    """A burnpack."""


class SafetensorsStore(ModuleStore):
    """A file of safetensors."""

    FORMAT = "safetensors"


class PytorchStore(ModuleStore):
    """A file that `torch.save` wrote."""

    FORMAT = "pytorch"
