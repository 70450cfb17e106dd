"""Operators: one class each, in a file per family. A class is registered by being in a file of this folder.

A file is imported when one of its operators is needed: places.py, which `dev.py check --fix` writes, lists the file of
each. An operator that it does not list is searched in all files.

Adding an operator: see docs/add-an-operator.md.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ..ir.graph import Node
from .places import PLACES


def _operators(file: str) -> list[type[Node[Any]]]:
    """The operators' classes in a file. A class with ABC among its direct bases is shared code, not an operator."""
    name = f"{__name__}.{file}"
    found = []
    for c in vars(import_module(name)).values():
        if isinstance(c, type) and Node in c.__mro__ and c.__module__ == name and ABC not in c.__bases__:
            found.append(c)
    return found


class Registry(Mapping[tuple[str, str], type[Node[Any]]]):
    """(domain, operator) -> its class. Iterating over it imports every file."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], type[Node[Any]]] = {}
        self._whole = False

    def __getitem__(self, key: tuple[str, str]) -> type[Node[Any]]:
        if key not in self._found and not self._whole:
            file = PLACES.get(key[0], {}).get(key[1])
            if file is not None:
                self._add(_operators(file))
            if key not in self._found:
                self._load()
        return self._found[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self._load()
        return iter(self._found)

    def __len__(self) -> int:
        self._load()
        return len(self._found)

    def _load(self) -> None:
        if not self._whole:
            from pkgutil import iter_modules

            found = []
            for info in sorted(iter_modules(__path__), key=lambda info: info.name):
                found += _operators(info.name)
            self._found = {}
            self._add(found)
            self._whole = True

    def _add(self, found: list[type[Node[Any]]]) -> None:
        self._found.update({(c.domain, c.op()): c for c in found})


REGISTRY = Registry()


def is_operator(name: str) -> bool:
    """Whether an operator of some domain has this name, as far as places.py knows."""
    return any(name in operators for operators in PLACES.values())


def __getattr__(name: str) -> Any:
    if name == "OPERATORS":  # every class
        return tuple(REGISTRY.values())
    raise AttributeError(name)
