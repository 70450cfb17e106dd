"""LSTM, GRU and RNN nodes become layers wherever emberlet.nn has one, and compute what onnxruntime computes."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from onnx import helper, numpy_helper
from support.onnx_models import assert_same, expected, generated
from support.rows import every

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


class Drawn:
    """A model of one recurrent node as exporters write it, in options drawn at random.

    layer: whether emberlet.nn has a layer with its options. inputs: arrays by the model's inputs.
    """

    def __init__(self, seed: int) -> None:
        self.choose = choose = random.Random(seed)
        self.arrays = np.random.default_rng(seed)
        self.op = op = choose.choice(list(GATES))
        self.direction = choose.choice(["forward", "reverse", "bidirectional"])
        n = 2 if self.direction == "bidirectional" else 1
        steps, batch, features, hidden = choose.choice([1, 3]), choose.choice([1, 2]), 3, choose.choice([1, 4])
        rows = GATES[op] * hidden
        self.layer = True
        self.initializers: list[Any] = []
        self.nodes: list[Any] = []
        self.inputs: dict[str, np.ndarray] = {}
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": self.direction}
        turned = choose.random() < 0.4  # a layer that PyTorch calls batch_first
        self.inputs["x"] = self.floats(batch, steps, features) if turned else self.floats(steps, batch, features)
        x = "x"
        if turned:
            self.nodes.append(helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]))
            x = "turned"
        if choose.random() < 0.15:
            x = self.of_unknown_rank(x)
        given = [x, "w", "r", "", "", "", "", ""]
        self.constant("w", self.floats(n, rows, features))
        self.constant("r", self.floats(n, rows, hidden))
        if choose.random() < 0.8:
            given[3] = "b"
            self.constant("b", self.floats(n, 2 * rows))
        if choose.random() < 0.1:
            given[4] = "lengths"
            self.inputs["lengths"] = np.full(batch, choose.randint(1, steps), np.int32)
            self.layer = False
        for i, name in ((5, "h"), (6, "c")):
            if (i == 5 or op == "LSTM") and choose.random() < 0.5:
                given[i] = name
                if choose.random() < 0.5:
                    self.constant(name, np.zeros((n, batch, hidden), np.float32))
                else:
                    self.inputs[name] = self.floats(n, batch, hidden)
        if op == "LSTM" and choose.random() < 0.1:
            given[7] = "p"
            self.constant("p", self.floats(n, 3 * hidden))
            self.layer = False
        if choose.random() < 0.2:
            attributes["clip"] = 0.7
        if op == "GRU" and choose.random() < 0.7:
            attributes["linear_before_reset"] = 1
        if op == "LSTM" and choose.random() < 0.1:
            attributes["input_forget"] = 1
        if choose.random() < 0.3:
            names = choose.choice([USUAL[op], ["Relu"] * len(USUAL[op]), ["Sigmoid"] * len(USUAL[op])])
            attributes["activations"] = names * n
            self.layer = self.layer and (names == USUAL[op] or op == "RNN")
        while given[-1] == "":
            given.pop()
        asked = choose.choice([1, 2, 3]) if op == "LSTM" else choose.choice([1, 2])
        outputs = ["y", "y_h", "y_c"][:asked]
        if asked > 1 and choose.random() < 0.3:
            outputs[0] = ""
        self.nodes.append(helper.make_node(op, given, outputs, name="rnn/layer", **attributes))
        self.results = [o for o in outputs if o]
        if outputs[0]:
            self.results[0] = self.behind(n, hidden, turned)

    def of_unknown_rank(self, x: str) -> str:
        """The name of the same input behind a condition, as exporters write a module that also takes no batch."""
        self.inputs["batched"] = np.array(True)
        self.constant("first", np.array(0))
        branches = {}
        for name, operator in (("then_branch", ["Identity", x]), ("else_branch", ["Gather", x, "first"])):
            node = helper.make_node(operator[0], operator[1:], [name])
            branches[name] = helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=name)])
        self.nodes.append(helper.make_node("If", ["batched"], ["either"], **branches))
        return "either"

    def behind(self, n: int, hidden: int, turned: bool) -> str:
        """The nodes that exporters write after it to put directions side by side."""
        if self.choose.random() < 0.3:
            return "y"
        if n == 1:
            self.constant("axis", np.array([1]))
            self.nodes.append(helper.make_node("Squeeze", ["y", "axis"], ["z"]))
        else:
            self.constant("shape", np.array([0, 0, 2 * hidden]))
            self.nodes.append(helper.make_node("Transpose", ["y"], ["apart"], perm=[0, 2, 1, 3]))
            self.nodes.append(helper.make_node("Reshape", ["apart", "shape"], ["z"]))
        if not turned:
            return "z"
        self.nodes.append(helper.make_node("Transpose", ["z"], ["back"], perm=[1, 0, 2]))
        return "back"

    def floats(self, *shape: int) -> np.ndarray:
        return self.arrays.standard_normal(shape).astype(np.float32)

    def constant(self, name: str, value: np.ndarray) -> None:
        self.initializers.append(numpy_helper.from_array(value, name))

    def model(self, opset: int) -> onnx.ModelProto:
        infos = [
            helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for k, v in self.inputs.items()
        ]
        outputs = [onnx.ValueInfoProto(name=o) for o in self.results]
        graph = helper.make_graph(self.nodes, "drawn", infos, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.parametrize("backend", ["numpy", "python"])
@every("seed", range(12), share=3)
def test_drawn_recurrent_nodes_are_layers_and_give_what_onnxruntime_gives(seed: int, backend: str) -> None:
    for number in range(10):
        drawn = Drawn(100 * seed + number)
        model = drawn.model(drawn.choose.choice([13, 14, 21, 22]))
        want = expected(model, drawn.inputs)
        assert_same(generated(model, drawn.inputs.values(), backend), want, atol=2e-5)
        source = translate(model)[1].source
        function = f"F.{drawn.op.lower()}("
        assert (function not in source) is drawn.layer, (100 * seed + number, source)
        assert bool(re.search(r"= nn\.(Bi)?(Lstm|Gru|Rnn)\(", source)) is drawn.layer
        back = [r for r in drawn.results if r in ("z", "back")]
        if back and drawn.layer and drawn.results == back and set(drawn.inputs) == {"x"}:
            assert "permute" not in source and "reshape" not in source, source


def test_the_weights_of_a_layer_have_the_names_that_it_gives_them() -> None:
    from emberlet import nn

    def fits(d: Drawn) -> bool:
        shapes = {i.name: tuple(i.dims) for i in d.initializers}
        return d.op == "LSTM" and d.layer and shapes["r"] == (2, 16, 4) and "b" in shapes and "batched" not in d.inputs

    drawn = next(d for d in map(Drawn, range(1000)) if fits(d))
    names = [name.partition(".")[2] for name, _ in load(drawn.model(21), "numpy").named_params()]
    assert names == [name for name, _ in nn.BiLstm(3, 4, backend="numpy").named_params()]


def test_a_layer_of_layout_1_has_the_batch_first_everywhere() -> None:
    for op, rows in GATES.items():
        for direction, n in (("forward", 1), ("bidirectional", 2)):
            rng = np.random.default_rng(n)
            weights = [
                numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), k)
                for k, s in (("w", (n, rows * 4, 3)), ("r", (n, rows * 4, 4)))
            ]
            states = ["y_h", "y_c"] if op == "LSTM" else ["y_h"]
            node = helper.make_node(
                op, ["x", "w", "r", "", "", "h"], ["y", *states], hidden_size=4, direction=direction, layout=1
            )
            infos = [helper.make_tensor_value_info(k, 1, s) for k, s in (("x", (2, 5, 3)), ("h", (2, n, 4)))]
            outputs = [onnx.ValueInfoProto(name=o) for o in ["y", *states]]
            graph = helper.make_graph([node], "g", infos, outputs, weights)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
            inputs = [rng.standard_normal(s).astype(np.float32) for s in ((2, 5, 3), (2, n, 4))]
            assert f"F.{op.lower()}(" not in translate(model)[1].source
            assert_same(generated(model, inputs), generated(model, inputs, passes=[]))
