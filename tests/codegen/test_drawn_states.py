"""The states of drawn models, whose names, shapes and operators say more or less of what returns, are as recorded.

`UPDATE_SNAPSHOTS=1 pytest FILE` records them again after a deliberate change.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import onnx
import pytest
from emberlet.codegen.reader import read_model
from emberlet.codegen.states import find, given
from emberlet.errors import EmberletError
from onnx import TensorProto, helper
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "drawn_states.txt"
GROUP = 60
NAMES = [
    ("past_key_values.{n}.key", "present.{n}.key"), ("past_{n}", "present_{n}"), ("k_cache_{n}", "k_cache_{n}_out"),
    ("h{n}", "h{n}_out"), ("h0", "hn"), ("state", "stateN"), ("state_in{n}", "state_out{n}"), ("c_{n}", "new_c_{n}"),
    ("a{n}", "b{n}"), ("mask_in", "mask_out"), ("prev_hidden", "hidden"), ("memory{n}", "memory{n}_next"),
    ("cache{n}", "cache{n}"), ("x_past{n}", "y{n}"), ("kv{n}", "kv{n}_updated"), ("buffer.{n}", "/net/buffer.{n}_n"),
]  # fmt: skip
SIZES: list[Any] = ["batch", "past", 2, 4, 1, None]


def drawn(seed: int) -> onnx.ModelProto:
    draw = random.Random(seed)
    kind = draw.choice([TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64])
    rank = draw.choice([2, 3, 3, 4])
    sizes = [draw.choice(["batch", 2, "length"]) for _ in range(rank)]
    inputs = [helper.make_tensor_value_info("x", kind, sizes)]
    outputs, nodes = [], [helper.make_node("Abs", ["x"], ["fresh"])]
    read: list[str] = []
    for n in range(draw.randint(1, 3)):
        before, after = (name.format(n=n) for name in draw.choice(NAMES))
        if before == after:
            after += "'"
        if any(before == i.name for i in inputs):
            continue
        shape, axis = [draw.choice(SIZES) for _ in range(rank)], draw.randint(-1, rank - 1)
        if draw.random() < 0.5:
            shape = [*sizes]
            shape[axis] = draw.choice(["past", "past", None, 3])
        inputs.append(helper.make_tensor_value_info(before, draw.choice([kind, kind, kind, TensorProto.FLOAT]), shape))
        how = draw.choice(
            ["concat", "concat", "concat last", "moved", "Neg", "Identity", "cast", "sum", "other", "gru"]
        )
        if draw.random() < 0.3:
            nodes.append(helper.make_node("Identity", [before], [f"same{n}"]))
        source = f"same{n}" if nodes[-1].output[0] == f"same{n}" else before
        other = draw.choice(["fresh", "fresh", source, "x"])
        if how == "concat":
            nodes.append(helper.make_node("Concat", [source, other], [after], axis=axis))
        elif how == "concat last":
            nodes.append(helper.make_node("Concat", [other, source], [after], axis=axis))
        elif how == "moved":
            nodes.append(helper.make_node("Transpose", [source], [f"turned{n}"]))
            nodes.append(helper.make_node("Concat", [f"turned{n}", f"turned{n}"], [f"twice{n}"], axis=axis))
            nodes.append(helper.make_node("Transpose", [f"twice{n}"], [after]))
        elif how == "cast":
            nodes.append(helper.make_node("Cast", [source], [after], to=kind))
        elif how == "sum":
            nodes.append(helper.make_node("Concat", [source, other], [f"joined{n}"], axis=axis))
            nodes.append(helper.make_node("Abs", [f"joined{n}"], [after]))
        elif how == "gru":
            nodes.append(helper.make_node("GRU", ["x", "w", "r", "", "", source], ["", after], hidden_size=4))
            nodes.extend(helper.make_node("CastLike", ["half", "x"], [w]) for w in "wr" if not read)
        else:
            op, taken = ("Abs", "fresh") if how == "other" else (how, source)
            nodes.append(helper.make_node(op, [taken], [after]))
        read.append(after)
        outputs.append(helper.make_empty_tensor_value_info(after))
    made = "x" if draw.random() < 0.2 or not read else draw.choice(read)
    nodes.append(helper.make_node("ReduceMax", [made], ["y"], keepdims=0))
    outputs.append(helper.make_empty_tensor_value_info("y"))
    if draw.random() < 0.3:
        nodes.append(helper.make_node("ReduceMax", [draw.choice(read)], ["z"], keepdims=0))
        outputs.append(helper.make_empty_tensor_value_info("z"))
    held = [helper.make_tensor("half", TensorProto.FLOAT, [1, 12, 4], [0.5] * 48)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def found(seed: int) -> str:
    try:
        model = read_model(drawn(seed))
    except EmberletError:
        return "refused"
    states = find(model)
    said = " ".join(f"{model.inputs[s.input]}={model.outputs[s.output]}:{s.axis}" for s in states) or "none"
    words = [f"{i}={o}" for i, o in zip(model.inputs[1:], model.outputs, strict=False)]
    try:
        asked = [f"{s.input}={s.output}:{s.axis}" for s in given(model, words[:1], states)]
        return f"{said}; with {words[0]}: {' '.join(asked)}"
    except EmberletError as error:
        return f"{said}; {error}"


@pytest.mark.parametrize("first", range(0, 480, GROUP))
def test_the_states_of_drawn_models_are_as_recorded(first: int) -> None:
    lines = [f"{seed}: {found(seed)}" for seed in range(first, first + GROUP)]
    assert_recorded(RECORDED, f"from {first:03} on", "\n".join(lines))
