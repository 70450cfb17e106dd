"""Graph and Model: what the reader returns, the passes rewrite and the emission prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .argument import Argument
from .node import Node


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order they can run in. Names of values are unique across the model, subgraphs included.

    An input that has a default value (an initializer of the same name) carries it as a Constant source.
    """

    name: str
    nodes: tuple[Node[Any], ...]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    def walk(self) -> Iterator[Node[Any]]:
        """Every node, those of subgraphs after the node that holds them."""
        for node in self.nodes:
            yield node
            for graph in node.graphs():
                yield from graph.walk()


@dataclass(frozen=True, slots=True)
class Model:
    """A graph with what the file says about itself. `inputs` and `outputs` are the names the file gives them, whatever
    the passes rename. source: the name of the file it was read from."""

    name: str
    graph: Graph
    opsets: tuple[tuple[str, int], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    producer: str = ""
    doc: str = ""
    source: str = ""
