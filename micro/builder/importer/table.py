"""The table of operators and their translators, and the decorator that registers a translator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberlet.codegen.ir.graph import Node

from .state import Importer

Translator = Callable[[Importer, Any], None]

TRANSLATORS: dict[type[Node[Any]], Translator] = {}


def translates(*kinds: type[Node[Any]]) -> Callable[[Translator], Translator]:
    """Register a function for some operators (and their subclasses). The function raises Problem for anything
    unsupported."""

    def register(function: Translator) -> Translator:
        for kind in kinds:
            TRANSLATORS[kind] = function
        return function

    return register
