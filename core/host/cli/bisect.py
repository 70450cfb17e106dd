"""`emberlet verify --bisect`: the first node of a model whose value differs from the reference's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...errors import EmberletError
from ...tensor import Tensor


class Outcome(NamedTuple):
    """reference: the engine compared with. compared: the number of values. node: "name (operator)" of the first node
    that differs, or "" if none does; output: the value that differs; note: by how much."""

    reference: str
    compared: int
    node: str
    output: str
    note: str


Compare = Callable[[str, Any, Any], tuple[bool, str]]
"""(name, ours, the reference's) -> (whether they are near enough, in words)"""


def first_difference(
    path: str,
    backend: str | None,
    inputs: Mapping[str, Tensor],
    frozen: Mapping[str, Tensor],
    reference: Callable[[Any], Any],
    compare: Compare,
) -> Outcome:
    """Run the model with every value of its main graph as an output, here and in the reference, and compare in the
    model's order.

    frozen: inputs that are constants here. reference: an exposed ModelProto -> (name, function from inputs to outputs).
    Raises EmberletError.
    """
    from emberlet.codegen import load

    exposed, producers = with_all_outputs(path)
    try:
        model = load(exposed, backend, freeze=frozen)
    except EmberletError as error:
        raise EmberletError(f"the model cannot be compared node by node: {error}") from None
    found = model(*[inputs[name] for name in _inputs(exposed) if name not in frozen])
    ours = dict(
        zip([o.name for o in exposed.graph.output], found if isinstance(found, tuple) else (found,), strict=True)
    )
    name, wanted = reference(exposed)
    compared = 0
    for output, (label, operator) in producers.items():
        if output not in ours or output not in wanted:
            continue
        near, note = compare(output, ours[output], wanted[output])
        compared += 1
        if not near:
            return Outcome(name, compared, f"{label} ({operator})", output, note)
    return Outcome(name, compared, "", "", "")


def with_all_outputs(path: str) -> tuple[Any, dict[str, tuple[str, str]]]:
    """(the model with all values as outputs, value -> (node's name, operator) in the order they are computed)"""
    import onnx
    from emberlet.codegen.reader.with_data import model_with_data

    model = model_with_data(path)
    known = {o.name: o for o in (*model.graph.value_info, *model.graph.output)}
    producers: dict[str, tuple[str, str]] = {}
    for i, node in enumerate(model.graph.node):
        for o in node.output:
            if o:
                producers[o] = (node.name or f"number {i}", node.op_type)
    had = {o.name for o in model.graph.output}
    for name in producers:
        if name not in had:
            model.graph.output.append(known.get(name) or onnx.ValueInfoProto(name=name))
    return model, producers


def _inputs(model: Any) -> list[str]:
    constants = {t.name for t in model.graph.initializer} | {s.values.name for s in model.graph.sparse_initializer}
    return [i.name for i in model.graph.input if i.name not in constants]
