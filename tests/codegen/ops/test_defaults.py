"""Omitted attributes and arguments have ONNX's defaults, in functions and in layers."""

from __future__ import annotations

import inspect
from typing import Any

import emberlet
import onnx
import pytest
from conformance.cases import node_cases
from emberlet import functional as F
from emberlet import nn
from emberlet.codegen.generation import translate
from emberlet.functional.elementwise.activations_by_name import ACTIVATIONS
from onnx import helper


def spelled_out(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """A copy whose nodes state the attributes that they omit, with ONNX's defaults; None if there are none."""
    copy, added = onnx.ModelProto(), False
    copy.CopyFrom(model)
    versions = {opset.domain: opset.version for opset in model.opset_import}
    for node in copy.graph.node:
        schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
        given = {attribute.name for attribute in node.attribute}
        for name, attribute in schema.attributes.items():
            if name == "activations":
                continue  # ONNX's default of an RNN is for both directions, whatever the node's direction is
            if name not in given and attribute.default_value.name:
                node.attribute.append(attribute.default_value)
                added = True
    return copy if added else None


def whole(model: onnx.ModelProto) -> tuple[Any, ...]:
    """The part of a model that determines which attributes it omits."""
    return tuple((n.domain, n.op_type, *sorted(a.name for a in n.attribute)) for n in model.graph.node)


def test_an_attribute_that_is_left_out_has_the_value_that_onnx_gives_it() -> None:
    """Every operator's code is the same if ONNX's defaults are stated."""
    seen, compared, other = set(), 0, []
    for name, case in sorted(node_cases().items()):
        if len(case.model.graph.node) > 1 or whole(case.model) in seen:
            continue
        seen.add(whole(case.model))
        longer = spelled_out(case.model)
        if longer is not None:
            compared += 1
            if translate(longer, "m")[1].source != translate(case.model, "m")[1].source:
                other.append(name)
    assert not other
    assert compared > 180  # ONNX 1.22 has 194


def test_a_default_of_the_function_is_left_out_and_another_value_is_written() -> None:
    def line(**attributes: Any) -> str:
        node = helper.make_node("Selu", ["x"], ["y"], **attributes)
        ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N"]) for n in "xy"]
        graph = helper.make_graph([node], "g", ports[:1], ports[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
        return translate(model, "m")[1].source.strip().splitlines()[-1].strip()

    assert line() == line(alpha=1.67326319217681884765625) == "return F.selu(x)"
    assert line(alpha=1.673) == "return F.selu(x, alpha=1.673)"


LAYERS = {
    "Elu": F.elu, "Gelu": F.gelu, "HardSigmoid": F.hard_sigmoid, "LeakyRelu": F.leaky_relu, "Softplus": F.softplus,
    "Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Glu": F.glu,
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_its_functions_defaults(name):
    wanted = {p.name: p.default for p in inspect.signature(LAYERS[name]).parameters.values() if p.name != "x"}
    found = {p.name: p.default for p in inspect.signature(getattr(nn, name)).parameters.values()}
    assert {k: v for k, v in found.items() if v is not inspect.Parameter.empty} == {
        k: wanted[k] for k in found if k in wanted
    }


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_takes_its_parameters_in_onnxs_order(name):
    function, parameters = ACTIVATIONS[name]
    signature = list(inspect.signature(function).parameters)
    assert signature == ["x", *parameters] or name in ("Softplus",)
    x = emberlet.asarray([-2.0, 0.5, 3.0])
    values = [0.75, 0.25][: len(parameters)]
    given = F.activation(name.upper(), values[:1], values[1:])(x)
    assert given.tolist() == function(x, *values).tolist()
    assert F.activation(name)(x).tolist() == function(x).tolist()
