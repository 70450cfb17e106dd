"""Looks up C types in cffi without parsing all of wgpu's header for each.

wgpu-py uses cffi in ABI mode and names C types by text: `ffi.new("WGPULimits *")`. For every new text, cffi 2 makes
pycparser parse a declaration of each of the header's 700 names, since C's grammar depends on which names are types:
about 15 ms per text, for 40 texts before the first result. Only the names in the text itself matter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .cffi_header import kept

_NAME = re.compile(r"[A-Za-z_]\w*")
_KINDS = ("typedef ", "struct ", "union ", "enum ")


def quicken(ffi: Any) -> bool:
    """Let this cffi.FFI look up types by the names in the text alone. Returns whether that succeeded.

    Nothing is changed unless cffi's internals are the known ones: a parser with `parse_type` and a dict of declarations
    by "typedef NAME", "struct NAME", and so on (cffi 1.10 to 2.1).
    """
    parser: Any = getattr(ffi, "_parser", None)
    whole = getattr(parser, "parse_type", None)
    if not callable(whole) or not isinstance(getattr(parser, "_declarations", None), dict):
        return False
    if getattr(parser, "_by_own_names", False):
        return True

    def parse_type(text: str) -> Any:
        return _by_own_names(parser, whole, text)

    try:
        parser.parse_type = parse_type
        parser._by_own_names = True
    except AttributeError:  # a parser that takes no attributes
        return False
    return True


def _by_own_names(parser: Any, whole: Callable[[str], Any], text: str) -> Any:
    """The type that a parser finds if it knows only the names in the text. cffi holds its lock here."""
    everything = parser._declarations
    few: dict[str, Any] = {}
    for name in _NAME.findall(text):
        for kind in _KINDS:
            if kind + name in everything:
                few[kind + name] = everything[kind + name]
    known = set(few)
    parser._declarations = few
    try:
        return whole(text)
    finally:
        parser._declarations = everything
        for key in set(few) - known:  # an opaque struct that is new
            everything.setdefault(key, few[key])


def quicken_wgpu() -> bool:
    """`quicken` for wgpu-py's native library, if it uses cffi, including the lookups while it is imported."""
    try:
        with _importing(), kept():
            from wgpu.backends.wgpu_native._ffi import ffi
    except ImportError:
        return False
    return quicken(ffi)


@contextmanager
def _importing() -> Iterator[None]:
    """While the block imports a module that creates a parser, every parser of this process looks up types by their
    names alone."""
    from cffi.cparser import Parser  # type: ignore[import-untyped]

    whole: Any = getattr(Parser, "parse_type", None)
    if not callable(whole) or "wgpu.backends.wgpu_native" in sys.modules:
        yield
        return

    def parse_type(self: Any, text: str) -> Any:
        if not isinstance(getattr(self, "_declarations", None), dict):
            return whole(self, text)
        return _by_own_names(self, partial(whole, self), text)

    Parser.parse_type = parse_type
    try:
        yield
    finally:
        Parser.parse_type = whole
