"""Each operator's code and inferred shapes are as recorded.

Some of each operator's node cases are read as they are, with a name for every size, with inputs of unknown rank, and
with constants. Other tests in this folder compare the results. This one shows when the code itself changes, for example
if a size is no longer known, a default is written out, or a step moves to run time. Record again with a release of ONNX
that has other cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError
from models.index import cases
from onnx import numpy_helper
from support.recorded import assert_recorded, recording, sections

from .cases import node_cases
from .test_unknown_shapes import changed

RECORDED = Path(__file__).parent / "snapshots" / "operators.txt"
MOST, IN_EVERY_WAY = 6, 2  # cases per operator: all, and those whose inputs are also less or better known
DRAWN = re.compile(r"-?\d+\.\d{5,}(e-?\d+)?")  # random numbers that differ between releases of ONNX
CASE = re.compile(r"^(test_\w+): ", re.MULTILINE)


def by_operator() -> dict[str, list[str]]:
    """Operator -> cases of that one node, the smallest of each number of inputs and outputs and each attributes; while
    recording all that are chosen, else those that are recorded."""
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for name, case in node_cases().items():
        graph = case.model.graph
        if len(graph.node) != 1 or case.model.functions:
            continue
        node = graph.node[0]
        size = sum(getattr(v, "size", 1) for v in case.data_sets[0][0])
        kind = str((len(node.input), len(node.output), [str(a) for a in node.attribute]))
        of_kind = found.setdefault(node.op_type, {})
        of_kind[kind] = min(of_kind.get(kind, (size, name)), (size, name))
    if recording():
        return {op: [name for _, name in sorted(kinds.values())][:MOST] for op, kinds in found.items()}
    return {op: CASE.findall(sections(RECORDED).get(op, "")) for op in found}


CASES = by_operator()


def code(model: onnx.ModelProto) -> tuple[str, str]:
    """(the types of the outputs, the code without what every module has)."""
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    try:
        source = translate(model, "net", passes=[])[1].source
    except EmberletError as error:
        return "refused", str(error)
    lines = [line.removeprefix("    ") for line in source.splitlines() if line]
    start = next(i for i, line in enumerate(lines) if line.startswith("OUTPUTS = "))
    body = next(i for i, line in enumerate(lines) if line.startswith("def __init__"))
    kept = [DRAWN.sub("#", line) for line in lines[body:] if "get_backend" not in line and "def __init__" not in line]
    return " ".join(line.strip() for line in lines[start:body]).removeprefix("OUTPUTS = "), "\n".join(kept)


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a name for each size of its inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for n, info in enumerate(made.graph.input):
        for i, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{'abcdefghijk'[n]}{i}"
    return made


def one_by_one(model: onnx.ModelProto, arrays: list[np.ndarray]) -> Iterator[tuple[str, onnx.ModelProto]]:
    """One input of unknown rank, or with a constant in its place, and all else as it was."""
    for i, (info, array) in enumerate(zip(model.graph.input, arrays, strict=True)):
        for way in ("of unknown rank", "constant"):
            made = named(model)
            if way == "constant":
                made.graph.initializer.append(numpy_helper.from_array(array, info.name))
                del made.graph.input[i]
            else:
                made.graph.input[i].type.tensor_type.ClearField("shape")
            yield f"{info.name} {way}", made


def said(name: str, model: onnx.ModelProto, inputs: list[Any], in_every_way: bool) -> list[str]:
    """Lines about a case; only the types for ways that give the same code as the first."""
    types, plain = code(model)
    out = [f"{name}: {types}", plain]
    if not in_every_way:
        return out
    ways = {"named": named(model)}
    if all(isinstance(v, np.ndarray | np.generic) and v.dtype != object for v in inputs):
        arrays = [np.asarray(v) for v in inputs]
        ways |= {way: changed(model, arrays, way)[0] for way in ("rank", "constants but the first")}
        ways |= dict(one_by_one(model, arrays)) if 1 < len(inputs) < 8 else {}
    for way, other in ways.items():
        types, text = code(other)
        out += [f"{way}: {types}", *([text] if text != plain else [])]
    return out


@pytest.mark.parametrize("operator", sorted(CASES))
def test_the_code_of_an_operator_reads_as_recorded(operator: str) -> None:
    lines: list[str] = []
    for n, name in enumerate(CASES[operator]):
        if name in node_cases():
            case = node_cases()[name]
            lines += said(name, case.model, case.data_sets[0][0], n < IN_EVERY_WAY)
    assert_recorded(RECORDED, operator, "\n".join(lines))


@pytest.mark.parametrize("case", list(cases(contrib=True)), ids=lambda c: c.id)
def test_the_code_of_an_operator_of_microsoft_reads_as_recorded(case: Any) -> None:
    model, arrays = onnx.load(case.model), case.inputs()
    lines = said(case.id, model, [arrays[i.name] for i in model.graph.input], True)
    assert_recorded(RECORDED, f"microsoft: {case.id}", "\n".join(lines))
