"""What each operator declares beside its code, as recorded: versions, functions, absorbed inputs, defaults."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import pytest
from emberlet.codegen.ir.graph import Node
from emberlet.codegen.ops import OPERATORS
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "operators.txt"


def _values(owner: type) -> dict[str, Any]:
    """The plain values among a class's variables."""
    return {
        name: value
        for name, value in vars(owner).items()
        if not name.startswith("_")
        and name != "family"
        and not callable(value)
        and not isinstance(value, classmethod | staticmethod | property)
    }


def _declared(kind: type[Node[Any]]) -> str:
    """The values of an operator's class and of those it derives from, and the defaults of its attributes."""
    lines: dict[str, str] = {}
    for owner in reversed([c for c in kind.__mro__ if issubclass(c, Node) and c is not Node]):
        lines |= {name: repr(value) for name, value in _values(owner).items()}
        for base in vars(owner).get("__orig_bases__", ()):
            # Attributes are made a dataclass when the first is read, so their defaults are taken from the class.
            for config in (c for c in get_args(base) if isinstance(c, type)):
                for name in vars(config).get("__annotations__", {}):
                    if not isinstance(default := vars(config).get(name, dataclasses.MISSING), dataclasses.Field):
                        lines |= {f"attribute {name}": repr(default)} if default is not dataclasses.MISSING else {}
    return "\n".join(f"{name} = {value}" for name, value in sorted(lines.items()))


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: f"{kind.domain or 'ONNX'} {kind.op()}")
def test_an_operator_declares_what_is_recorded(kind: type[Node[Any]]) -> None:
    assert_recorded(RECORDED, f"{kind.domain or 'ONNX'} {kind.op()}", _declared(kind))
