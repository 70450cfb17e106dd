"""The shapes inferred for ONNX's node cases are at least as precise as onnx's own inference."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.reader import read_model

from .cases import node_cases


def _without_output_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return copy


def _dims(output: onnx.ValueInfoProto) -> tuple[int | None, ...] | None:
    tensor = output.type.tensor_type
    if not output.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)


@cache
def _outputs(name: str) -> list[Any]:
    """What is inferred about a case's outputs."""
    return list(read_model(_without_output_shapes(node_cases()[name].model)).graph.outputs)


def test_what_onnx_infers_is_inferred() -> None:
    vague, compared = [], 0
    for name, case in sorted(node_cases().items()):
        model = _without_output_shapes(case.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
            except Exception:
                continue
        for argument, known in zip(_outputs(name), map(_dims, theirs), strict=True):
            if known is None or not isinstance(argument.type, TensorType):
                continue
            compared += 1
            shape = argument.type.shape
            found = (None,) * len(known) if shape is None else shape
            if len(found) != len(known) or any(
                isinstance(k, int) and f != k for f, k in zip(found, known, strict=True)
            ):
                vague.append(f"{name}: {argument.name} is {shape}, onnx says {known}")
    assert not vague, f"{len(vague)} of {compared}:\n" + "\n".join(vague)
    assert compared > 1500


def test_what_is_inferred_is_what_the_cases_expect() -> None:
    """Dtypes and known sizes, against the outputs that the cases hold."""
    wrong, compared = [], 0
    for name, case in sorted(node_cases().items()):
        for _, outputs in case.data_sets or ():
            for argument, value in zip(_outputs(name), outputs, strict=True):
                known = argument.type
                if not isinstance(known, TensorType) or not isinstance(value, np.ndarray):
                    continue
                compared += 1
                shape = value.shape if known.shape is None else known.shape
                if len(shape) != value.ndim or any(
                    isinstance(d, int) and d != n for d, n in zip(shape, value.shape, strict=True)
                ):
                    wrong.append(f"{name}: {argument.name} is said to be {shape}, and is {value.shape}")
                if value.dtype.kind in "fiub" and value.dtype.isnative and known.dtype.name != value.dtype.name:
                    wrong.append(f"{name}: {argument.name} is said to be {known.dtype}, and is {value.dtype}")
    assert not wrong, f"{len(wrong)} of {compared}:\n" + "\n".join(wrong)
    assert compared > 1500


@pytest.mark.parametrize(
    ("equation", "shapes", "wanted"),
    [
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 6)], (5, 4, 2, 6)),
        ("...ij,...jk", [(5, 1, 2, 3), (4, 3, 6)], (5, 4, 2, 6)),
        ("...ii->...i", [(4, 3, 3)], (4, 3)),
        ("i...->...", [(2, 7, 3)], (7, 3)),
        ("ij,...k->...ik", [(2, 3), (7,)], (2, 7)),
    ],
)
def test_an_ellipsis_of_einsum_has_the_axes_that_broadcast(
    equation: str, shapes: list[tuple[int, ...]], wanted: tuple[int, ...]
) -> None:
    names = "abc"[: len(shapes)]
    given = ", ".join(f"float[{','.join(map(str, shape))}] {name}" for name, shape in zip(names, shapes, strict=True))
    text = f'<ir_version: 8, opset_import: ["": 20]> g ({given}) => (float y) '
    text += f'{{ y = Einsum<equation="{equation}">({", ".join(names)}) }}'
    assert np.einsum(equation, *map(np.zeros, shapes)).shape == wanted
    (found,) = read_model(onnx.parser.parse_model(text)).graph.outputs
    assert isinstance(found.type, TensorType)
    assert found.type.shape == wanted
