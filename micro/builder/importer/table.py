"""Which function translates which operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from emberlet.codegen.ir.node import Node

from .state import Importer

Translator = Callable[[Importer, Any], None]

_TABLE: dict[type[Node[Any]], Translator] = {}


def translates(*kinds: type[Node[Any]]) -> Callable[[Translator], Translator]:
    """Register a function for some operators (and their subclasses). It raises Problem for what it cannot do."""

    def register(function: Translator) -> Translator:
        for kind in kinds:
            _TABLE[kind] = function
        return function

    return register


@cache
def translators() -> dict[type[Node[Any]], Translator]:
    """All of them."""
    from . import activations, moves, products, recurrences, reductions  # noqa: F401

    return _TABLE
