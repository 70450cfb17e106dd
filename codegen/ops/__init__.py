"""Operators: one class each, in a file per family. A class in a file of this folder is registered by being there.

Adding an operator: see docs/add-an-operator.md.
"""

from __future__ import annotations

from abc import ABC
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ..ir.graph import Node


def _operators() -> tuple[type[Node[Any]], ...]:
    """Every operator's class; one with ABC among its own bases is what several share, and no operator."""
    found: list[type[Node[Any]]] = []
    for info in sorted(iter_modules(__path__), key=lambda info: info.name):
        for c in vars(import_module(f"{__name__}.{info.name}")).values():
            own = isinstance(c, type) and issubclass(c, Node) and c.__module__ == f"{__name__}.{info.name}"
            if own and ABC not in c.__bases__:
                found.append(c)
    return tuple(found)


OPERATORS = _operators()
REGISTRY: dict[tuple[str, str], type[Node[Any]]] = {(c.domain, c.op()): c for c in OPERATORS}
