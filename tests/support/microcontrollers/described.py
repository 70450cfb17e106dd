"""A graph and its program in words: for each layer its kind, tensors and places, and a digest of all its fields."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.program import Program
from emberlet.micro.builder.quantization.reference import Requant
from emberlet.micro.builder.quantization.sixteen import DifferenceRequant, SumRequant


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:8]


def words(value: Any, exact: bool = True) -> str:
    """A value with everything in it. Without `exact`, of arrays only the shape, no floats, factors, zero points or
    large integers: those that a platform's rounding could change."""
    if not exact and isinstance(value, Requant | SumRequant | DifferenceRequant):
        return type(value).__name__
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}" + (digest(value.tobytes()) if exact else "")
    if is_dataclass(value):
        shown = [f.name for f in fields(value) if exact or not f.name.startswith(("factor", "zero"))]
        return f"{type(value).__name__}({', '.join(words(getattr(value, name), exact) for name in shown)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{words(k)}: {words(v, exact)}' for k, v in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(words(v, exact) for v in value)}]"
    if isinstance(value, set | frozenset):
        return words(sorted(value), exact)
    if not exact and (isinstance(value, float) or (isinstance(value, int) and abs(value) > 1 << 12)):
        return type(value).__name__
    return repr(value)


ABOUT = {field.name for field in fields(Graph)} - {"layers", "name", "shapes", "inputs", "outputs", "grids"}


def described(graph: Graph, exact: bool = True) -> list[str]:
    """A line for each layer, and one for what else the graph says."""
    empty = Graph(graph.name, (), {}, (), ())
    lines = []
    for layer in graph.layers:
        shape, grid = graph.shapes[layer.output], graph.grids.get(layer.output)
        bits = f" {grid.bits} bits" if grid else ""
        if grid and exact:
            bits += f" {grid.scale:.6g} {grid.zero}"
        lines.append(
            f"  {layer.kind} {' '.join(layer.inputs)} -> {layer.output} {shape}{bits} {digest(words(layer, exact))}"
        )
    own = {name: getattr(graph, name) for name in sorted(ABOUT) if getattr(graph, name) != getattr(empty, name)}
    own = {n: v for n, v in own.items() if n != "is_float" and (exact or not n.startswith("weight_"))}
    return [*lines, f"  {words(own, exact)}"]


def planned(program: Program, exact: bool = True) -> list[str]:
    """The memory of a program: the arena, where each step reads and writes, the ports, what is kept."""
    places = ["/".join(map(str, step.places.values())) for step in program.steps]
    ports = [words(port, exact) for port in (*program.inputs, *program.outputs)]
    return [
        f"  arena {program.arena} at {program.peak}, weights {program.weights.size}, words {len(program.words)}, "
        f"macs {program.macs}, fill {program.calls_to_fill}: {' '.join(places)}",
        f"  {digest(' '.join(ports))} {words(program.states)} {words(program.kept)}",
    ]
