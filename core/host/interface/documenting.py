"""What `help` shows of functions and layers: their docstring, and an example."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# of the packages whose functions have no prefix in examples.py
_BARE = "emberlet.functional"


def with_example(doc: str | None, found: Any) -> str | None:
    """The docstring of a public function or layer with its example, if there is one."""
    where, name = str(found.__module__), found.__name__
    if not where.startswith(_BARE):
        name = f"{where.split('.')[1]}.{name}"
    text: str = import_module("emberlet.host.interface.examples").TEXT
    begin = text.find(f"\n{name}: ")
    if begin < 0 or doc is None:
        return doc
    example = text[begin + len(name) + 3 : text.index("\n", begin + 1)]
    return f"{doc.rstrip()}\n\n    Example: {example}"
