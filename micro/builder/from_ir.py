"""Imports an ONNX model through the compiler's typed IR."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from emberlet.codegen.ir.argument import Argument
from emberlet.codegen.ir.graph import Model
from emberlet.codegen.ir.problem import MALFORMED, explained
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from emberlet.codegen.records import replace
from emberlet.errors import ModelError
from emberlet.host.listing import listed

from .graph import Graph
from .importer.channels import input_order
from .importer.labels import settle
from .importer.layout import Order, channels_last, dims_of
from .importer.outputs import Outputs
from .importer.ranks import ranks_alone
from .importer.shapes import sized
from .importer.state import Importer
from .importer.translation import translate

FORMULAS = ("activations", "norms", "tables", "dead")  # the compiler's passes that make one layer of several operators


def read_graph(
    source: str | os.PathLike[str] | bytes,
    name: str | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
    states: Mapping[str, str] | None = None,
) -> Graph:
    """The float32 graph of an ONNX model or a .tflite file; an open batch is 1.

    sizes: the sizes of inputs or symbolic dimensions, by name. states: input -> output; the input starts as zeros and
    then takes the output of the previous inference. Raises ModelError, which lists every unsupported operator, and
    OSError.
    """
    if (source[4:8] == b"TFL3") if isinstance(source, bytes) else str(source).endswith(".tflite"):
        from .tflite.importing import read_tflite

        if isinstance(source, bytes):
            return read_tflite(source, name or "model")
        return read_tflite(Path(source).read_bytes(), name or Path(source).stem, Path(source).name)
    model = read_model(source, name)
    model = replace(model, graph=run_passes(model.graph, FORMULAS)[0])
    return graph_of(model, name or (Path(source).stem if not isinstance(source, bytes) else "model"), sizes, states)


def graph_of(
    model: Model,
    name: str,
    sizes: Mapping[str, Sequence[int]] | None = None,
    states: Mapping[str, str] | None = None,
) -> Graph:
    """The graph of a model that has been read. Raises ModelError.

    Images (inputs of rank 4) are passed channels last, and so are inputs of rank 3 whose channel axis a layer
    determines. For others, the order that moves fewer elements is chosen.
    """
    inputs = sized(model.graph.inputs, sizes or {})
    states = states or {}
    _check_states(model, states)
    plain = {a.name: tuple(range(len(dims_of(a)))) for a in inputs}
    first = _import(model, name, inputs, plain, states)
    known = {a.name: first.channels.axis.get(a.name) for a in inputs}
    orders = {
        a.name: input_order(dims_of(a), known[a.name])
        if len(dims_of(a)) == 4 or (len(dims_of(a)) == 3 and known[a.name] is not None)
        else plain[a.name]
        for a in inputs
    }
    importers = [first if orders == plain else _import(model, name, inputs, orders, states)]
    open_ = [a.name for a in inputs if len(dims_of(a)) == 3 and known[a.name] is None]
    if open_:
        importers.append(_import(model, name, inputs, orders | dict.fromkeys(open_, channels_last(3)), states))
    best = min(importers, key=lambda importer: (len(importer.problems), importer.layout.moved))
    if best.problems:
        raise ModelError(f"{name} cannot run on a microcontroller:\n" + listed(best.problems))
    return best.graph()


def _check_states(model: Model, states: Mapping[str, str]) -> None:
    """Raises ModelError if a state names an unknown input or output, or if all outputs are states."""
    for source, kind, known in (
        (states.keys(), "input", [a.name for a in model.graph.inputs]),
        (states.values(), "output", [a.name for a in model.graph.outputs]),
    ):
        for name in source:
            if name not in known:
                raise ModelError(f"--state: the model has no {kind} {name!r}; its {kind}s are {', '.join(known)}")
    if states and {a.name for a in model.graph.outputs} <= set(states.values()):
        raise ModelError(
            f"--state: every output of the model ({', '.join(states.values())}) would be kept, and none given out; "
            "add an output to the model, such as an Identity of one"
        )


def _import(
    model: Model, name: str, inputs: Sequence[Argument], orders: Mapping[str, Order], states: Mapping[str, str]
) -> Importer:
    """orders: the order of the axes of each input."""
    importer = Importer(name, Outputs.of_model(model))
    importer.ranks.alone = ranks_alone(model)
    known_arguments: dict[str, Argument] = {}
    for argument in inputs:
        known_arguments[argument.name] = argument
        importer.add_input(argument, orders[argument.name])
        importer.channels.add_input(argument)
    problems: list[str] = []
    for node in model.graph.nodes:
        try:
            translate(importer, node, known_arguments)
        except MALFORMED as problem:
            problems.append(f"node {node.name!r} ({node.op()}): {explained(problem)}")
            for output in node.outputs:
                importer.broken.add(output.name)
    for output in model.graph.outputs:
        if not problems:
            try:
                argument = known_arguments.get(output.name, output)
                for kept in [k for k, v in states.items() if v == output.name]:
                    importer.keep_state(known_arguments[kept], argument)
                if output.name not in states.values():
                    importer.add_output(argument)
            except MALFORMED as problem:
                problems.append(f"output {output.name!r}: {explained(problem)}")
    importer.problems = problems or settle(importer)
    return importer
