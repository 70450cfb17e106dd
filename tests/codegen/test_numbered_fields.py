"""Numbers and words under one name of a file: each has a field of its own, and the code computes the same."""

from __future__ import annotations

import ast

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from onnx import TensorProto, helper, numpy_helper

SIZE = 4
LOOP = " ".join(f"blocks.{n}.{part}/" for n in range(3) for part in "abcdefgh")
FIELDS = {  # the layers in the order in which they run: the name of a weight, and a word for its kind
    "the same layer twice": "blocks.0/ blocks.0/2 blocks.1/",
    "three times": "blocks.0/ blocks.0/2 blocks.0/3",
    "a vector after the numbers": "blocks.0/ blocks.1/ blocks.gamma",
    "a vector before the numbers": "blocks.gamma blocks.0/ blocks.1/",
    "a vector between the numbers": "blocks.0/ blocks.gamma blocks.1/",
    "a layer before the numbers": "blocks/ blocks.0/ blocks.1/",
    "a layer after the numbers": "blocks.0/ blocks.1/ blocks/",
    "words after numbers": "blocks.0/ blocks.last/ blocks.1/",
    "numbers below a word": "net.first/ net.0.fc/ net.1.fc/",
    "numbers above a word": "net.0.fc/ net.first.fc/ net.1.fc/",
    "loops after a vector": f"blocks.gamma {LOOP}",
    "loops after a layer": f"blocks/ {LOOP}",
    "loops before a vector": f"{LOOP} blocks.gamma",
    "a name that is free no more": "a.0/ a.0/2 a_0/",
}


def network(fields: str) -> onnx.ModelProto:
    """name/: a convolution with the weight name.weight; name/2: the same dilated; other names: factors."""
    random = np.random.default_rng(0)
    nodes, held = [], {}
    x = "x"
    for n, said in enumerate(fields.split()):
        layer, is_layer, wide = said.partition("/")
        if is_layer:
            weight = f"{layer}.weight"
            held.setdefault(weight, random.standard_normal((SIZE, SIZE, 3, 3)).astype(np.float32) / 4)
            d = int(wide or 1)
            nodes.append(helper.make_node("Conv", [x, weight], [f"v{n}"], pads=[d] * 4, dilations=[d, d]))
        else:
            held[layer] = random.standard_normal((SIZE, 1, 1)).astype(np.float32)
            nodes.append(helper.make_node("Mul", [x, layer], [f"v{n}"]))
        around = "/" + layer.rpartition(".")[0].replace(".", "/")
        nodes[-1].name = f"/{layer.replace('.', '/')}/{nodes[-1].op_type}"
        nodes.append(helper.make_node("Relu", [f"v{n}"], [x := f"r{n}"], f"{around}/Relu_{n}"))
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", SIZE, 8, 8])  # noqa: E731
    weights = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", [value("x")], [value(x)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("case", FIELDS)
def test_numbers_and_words_below_one_name_have_fields_of_their_own(case: str) -> None:
    model = network(FIELDS[case])
    source = translate(model, "net")[1].source
    ast.parse(source)
    x = np.random.default_rng(1).standard_normal((2, SIZE, 8, 8)).astype(np.float32)
    assert load(model, "numpy")(x).tolist() == load(model, "numpy", flat=True)(x).tolist()
