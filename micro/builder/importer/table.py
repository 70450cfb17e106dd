"""The table of which function translates which operator, and the decorator by which a function enters it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberlet.codegen.ir.graph import Node

from .state import Importer

Translator = Callable[[Importer, Any], None]

TRANSLATORS: dict[type[Node[Any]], Translator] = {}


def translates(*kinds: type[Node[Any]]) -> Callable[[Translator], Translator]:
    """Register a function for some operators (and their subclasses). It raises Problem for what it cannot do."""

    def register(function: Translator) -> Translator:
        for kind in kinds:
            TRANSLATORS[kind] = function
        return function

    return register
