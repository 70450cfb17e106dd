"""The table of operators and their converters, and the decorator that registers a converter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from emberlet.codegen.ir.argument import Argument

if TYPE_CHECKING:
    from .importing import Converting
    from .reading import FileOperator

Inputs = Sequence[Argument]
Converter = Callable[["Converting", "FileOperator", Inputs], "Argument | Sequence[Argument] | None"]

CONVERTERS: dict[str, Converter] = {}


def converts(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a function for some operators. The function raises Problem for anything unsupported."""

    def register(function: Converter) -> Converter:
        for kind in kinds:
            CONVERTERS[kind] = function
        return function

    return register
