"""Caches wgpu's header as parsed by cffi for later processes: parsing is the slowest part of the start.

The file lies beside the tuning measurements, one for each header and each release of cffi, pycparser and Python. A
damaged or unwritable file is ignored. Only classes of cffi's model of C types are unpickled.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PREFIX = "header-"
# The attributes of a cffi.cparser.Parser (1.10 to 2.1) that parsing sets, except those that only live during the call.
_PARSED = {
    "_declarations", "_included_declarations", "_anonymous_counter", "_int_constants", "_recomplete",
    "_uses_new_feature",
}  # fmt: skip


@contextmanager
def kept() -> Iterator[None]:
    """While the block runs, new cffi parsers of a whole header reuse what an earlier process parsed."""
    from cffi.cparser import Parser  # type: ignore[import-untyped]

    whole: Any = getattr(Parser, "parse", None)
    if not callable(whole):
        yield
        return

    def parse(self: Any, source: str, *options: Any, **named: Any) -> None:
        if any(options) or any(named.values()) or not _is_new(self):
            whole(self, source, *options, **named)
            return
        path = _path(source)
        if path is None or not _restore(self, path):
            whole(self, source, *options, **named)
            _store(self, path)

    Parser.parse = parse
    try:
        yield
    finally:
        Parser.parse = whole


def _is_new(parser: Any) -> bool:
    return vars(parser).keys() >= _PARSED and not parser._declarations


def _path(source: str) -> Path | None:
    """The cache file of a header; None if the user has no cache folder."""
    import cffi
    import pycparser  # type: ignore[import-untyped]
    from emberlet.host.digests import blake2b

    from .tuning import cache_path

    beside = cache_path()
    if beside is None:
        return None
    versions = f"{cffi.__version__} {pycparser.__version__} {sys.version}\n"
    return beside.with_name(PREFIX + blake2b((versions + source).encode(), digest_size=12).hexdigest() + ".pickle")


class _Reader(pickle.Unpickler):
    """An Unpickler that finds only the classes of cffi's model."""

    def find_class(self, module: str, name: str) -> Any:
        from cffi import model  # type: ignore[import-untyped]

        found = vars(model).get(name) if module == "cffi.model" else None
        if not isinstance(found, type) or found.__module__ != "cffi.model":
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a header")
        return found


def _restore(parser: Any, path: Path) -> bool:
    from emberlet.host.folders.folder import Folder, is_ours

    try:
        with Folder.opened(path.parent) as folder, open(folder.open(path.name), "rb") as file:
            if not is_ours(os.fstat(file.fileno())):
                return False
            found = _Reader(file).load()
    except Exception:  # a damaged pickle may raise anything
        return False
    if not isinstance(found, dict) or found.keys() != _PARSED or not isinstance(found["_declarations"], dict):
        return False
    vars(parser).update(found)
    return True


def _store(parser: Any, path: Path | None) -> None:
    if path is None:
        return
    from emberlet.host.files import atomic_write

    with suppress(OSError, pickle.PicklingError, TypeError, AttributeError, RecursionError):
        data = pickle.dumps({name: vars(parser)[name] for name in _PARSED})
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(PREFIX + "[0-9a-f]" * 24 + ".pickle"):
            old.unlink(missing_ok=True)
        with atomic_write(path) as file:
            file.write(data)
