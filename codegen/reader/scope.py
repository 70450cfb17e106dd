"""What names mean in a graph, and what they are called in the model that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ..ir.argument import Argument
from ..protobuf import AttributeProto, NodeProto
from ..records import dataclass


@dataclass
class Scope:
    """The values of names, with the enclosing graph's as a fallback."""

    parent: Scope | None = None
    values: dict[str, Argument] = field(default_factory=dict)
    opsets: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0
    protos: Sequence[NodeProto] = ()

    def find(self, name: str) -> Argument | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return None


class Names:
    """The names that are in use in a model."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}

    def unique(self, name: str, kind: str = "") -> str:
        """`name`, with a number if it is already used elsewhere (in a subgraph or an inlined function)."""
        if kind + name not in self.taken:
            self.taken.add(kind + name)
            return name
        while True:
            self.counts[kind + name] = self.counts.get(kind + name, 1) + 1
            candidate = f"{name}_{self.counts[kind + name]}"
            if kind + candidate not in self.taken:
                self.taken.add(kind + candidate)
                return candidate


def resolved(a: AttributeProto, references: Mapping[str, AttributeProto]) -> AttributeProto | None:
    """An attribute, with a reference replaced by the enclosing function's attribute; None if the call does not give
    that."""
    if not a.ref_attr_name:
        return a
    found = references.get(a.ref_attr_name)
    if found is None:
        return None
    copy = type(found)()
    copy.CopyFrom(found)
    copy.name = a.name
    return copy
