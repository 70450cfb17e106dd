"""Random models with states, and onnxruntime stepping through them manually."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

WIDTH, RING = 4, 3


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """A model that reads x (batch, new, 4) and returns y like it, with one to four states among: a cache that grows
    along a drawn axis, one that takes two parts at once, a sum that is replaced, and a ring of the last three rows."""
    kinds = draw(st.lists(st.sampled_from(["cache", "twice", "hidden", "sum", "ring"]), min_size=1, max_size=4))
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "new", WIDTH])]
    outputs: list[onnx.ValueInfoProto] = []
    seed = draw(st.integers(0, 1000))
    random = np.random.default_rng(seed)

    def constant(name: str, value: Any) -> str:
        constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, given: list[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, given, [name], name=name, **attributes))
        return name

    y = "x"
    for n, kind in enumerate(kinds):
        weight = constant(f"w{n}", random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2)
        z = node("MatMul", [y, weight], f"z{n}")
        if kind in ("cache", "twice"):
            axis = draw(st.integers(1, 2))  # of (batch, past, 4) or, transposed, of (batch, 4, past)
            shape: list[str | int | None] = ["batch", "past", WIDTH] if axis == 1 else ["batch", WIDTH, "past"]
            name = f"past_{n}.key"
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            total: list[str | int | None] = [d if d != "past" else "past + new" for d in shape]
            outputs.append(helper.make_tensor_value_info(f"present_{n}.key", TensorProto.FLOAT, total))
            new = z if axis == 1 else node("Transpose", [z], f"t{n}", perm=[0, 2, 1])
            both = ""
            if kind == "twice":  # the past is read by two concatenations, of which one is the state
                both = node("Concat", [name, node("Neg", [new], f"n{n}")], f"o{n}", axis=axis)
            joined = node("Concat", [name, new], f"present_{n}.key", axis=axis)
            if both:
                extra = node("ReduceMean", [both, constant(f"r{n}", np.array([axis]))], f"m{n}", keepdims=1)
                y = node(
                    "Add", [y, extra if axis == 1 else node("Transpose", [extra], f"e{n}", perm=[0, 2, 1])], f"b{n}"
                )
            if draw(st.booleans()):  # an output that shows the state's elements
                outputs.append(helper.make_tensor_value_info(f"shown_{n}", TensorProto.FLOAT, None))
                node("Transpose", [joined], f"shown_{n}", perm=[2, 0, 1])
            keys = joined if axis == 2 else node("Transpose", [joined], f"k{n}", perm=[0, 2, 1])
            values = joined if axis == 1 else node("Transpose", [joined], f"v{n}", perm=[0, 2, 1])
            p = node("Softmax", [node("MatMul", [z, keys], f"s{n}")], f"p{n}", axis=-1)
            y = node("Add", [y, node("MatMul", [p, values], f"q{n}")], f"a{n}")
        elif kind == "hidden":
            name = f"h{n}_0"
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "batch", WIDTH]))
            outputs.append(helper.make_tensor_value_info(f"h{n}_n", TensorProto.FLOAT, [1, "batch", WIDTH]))
            w = [
                constant(f"{role}{n}", random.standard_normal((1, 3 * WIDTH, WIDTH)).astype(np.float32))
                for role in "gu"
            ]
            time_first = node("Transpose", [z], f"t{n}", perm=[1, 0, 2])
            nodes.append(
                helper.make_node("GRU", [time_first, *w, "", "", name], [f"l{n}", f"h{n}_n"], hidden_size=WIDTH)
            )
            last = node("Squeeze", [f"l{n}", constant(f"one{n}", np.array([1]))], f"c{n}")
            y = node("Add", [y, node("Transpose", [last], f"d{n}", perm=[1, 0, 2])], f"a{n}")
        elif kind == "sum":
            name = f"state{n}_in"
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1, WIDTH]))
            outputs.append(helper.make_tensor_value_info(f"state{n}_out", TensorProto.FLOAT, ["batch", 1, WIDTH]))
            mean = node("ReduceMean", [z, constant(f"r{n}", np.array([1]))], f"m{n}", keepdims=1)
            new = node("Tanh", [node("Add", [name, mean], f"s{n}")], f"state{n}_out")
            y = node("Add", [y, new], f"a{n}")
        else:
            name = f"buffer{n}"
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", RING, WIDTH]))
            outputs.append(helper.make_tensor_value_info(f"next_buffer{n}", TensorProto.FLOAT, ["batch", RING, WIDTH]))
            longer = node("Concat", [name, z], f"g{n}", axis=1)
            edges = [constant(f"{e}{n}", np.array([v])) for e, v in (("from", -RING), ("to", 1 << 30), ("ax", 1))]
            ring = node("Slice", [longer, *edges], f"next_buffer{n}")
            y = node(
                "Add", [y, node("ReduceMax", [ring, constant(f"r{n}", np.array([1]))], f"m{n}", keepdims=1)], f"a{n}"
            )
    node("Tanh", [y], "y")
    outputs.insert(draw(st.integers(0, len(outputs))), helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    order = draw(st.permutations(range(len(inputs))))
    graph = helper.make_graph(nodes, f"stateful_{seed}", [inputs[i] for i in order], outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def pairs(model: onnx.ModelProto) -> dict[str, tuple[str, int | None]]:
    """For each state, by its input: its output and the axis that grows, from the names of `models`."""
    found: dict[str, tuple[str, int | None]] = {}
    for i in model.graph.input:
        name = i.name
        if name.startswith("past_"):
            axis = [d.dim_param for d in i.type.tensor_type.shape.dim].index("past")
            found[name] = (name.replace("past", "present"), axis)
        elif name.startswith("h"):
            found[name] = (name.removesuffix("_0") + "_n", None)
        elif name.startswith("state"):
            found[name] = (name.replace("_in", "_out"), None)
        elif name.startswith("buffer"):
            found[name] = ("next_" + name, None)
    return found


class Reference:
    """onnxruntime with its states passed on by hand; all earlier states are kept."""

    def __init__(self, model: onnx.ModelProto, batch: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self.run = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.pairs = pairs(model)
        self.outputs = [o.name for o in model.graph.output]
        self.first: dict[str, np.ndarray] = {}
        for i in model.graph.input:
            if i.name in self.pairs:
                sizes = {"batch": batch, "past": 0}
                shape = [sizes.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
                self.first[i.name] = np.zeros(shape, np.float32)

    def step(self, x: np.ndarray, states: dict[str, np.ndarray]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """(the outputs other than states, the states afterwards)"""
        found = dict(zip(self.outputs, self.run.run(None, {"x": x, **states}), strict=True))
        after = {name: found.pop(output) for name, (output, _) in self.pairs.items()}
        return list(found.values()), after
