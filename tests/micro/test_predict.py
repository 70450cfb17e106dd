"""`predict` in machine code rounds numbers to bytes as NumPy does, and gives the floats that `get` gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession
from support.draws import generator
from support.machine_learning import one_node

from tools.boards_in_qemu import EmulatedBoard
from tools.micropython_builds import firmware

SIZE = 8

SCRIPT = """
from array import array
import model

with open("/rom/numbers", "rb") as f:
    x = array("f", f.read())
print(model._whole is model.run)
for k in range(0, len(x), {size}):
    part = x[k : k + {size}]
    for given in (list(part), part):
        print(*[round(v / {scale} + {zero}) for v in model.predict(given)])
        if model.predict(given) != model.get():
            print("differs", given, model.predict(given), model.get())
"""


def identity() -> bytes:
    """A dense layer whose output is its input."""
    weights = numpy_helper.from_array(np.eye(SIZE, dtype=np.float32), "w")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, SIZE)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "model", ports[:1], ports[1:], [weights])
    written: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    onnx.checker.check_model(written)
    return written


def drawn(scale: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers inside and outside of a grid, on its steps, halfway between them and beside that, and tiny ones."""
    steps = rng.integers(-600, 600, 400) / 2
    steps[steps == 0] = 1
    near = np.float32(steps[:200] * scale)
    beside = near.view(np.int32) + rng.integers(-3, 4, 200).astype(np.int32)
    tiny = [0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 1e20, -1e20]
    parts = [rng.standard_normal(392) * 100 * scale, beside.view(np.float32), steps[200:] * scale, tiny]
    return rng.permutation(np.concatenate(parts).astype(np.float32))


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.BOARDS)
def test_predict_rounds_as_numpy(name: str) -> None:
    rng, board = generator(__name__), EmulatedBoard(name)
    ends = rng.uniform(0.01, 100) * np.array([-1, rng.uniform(0.2, 5)], np.float32)
    given = rng.uniform(*ends, (90, SIZE)).astype(np.float32)
    given[0, :2] = ends
    options = Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)], method="minmax")
    built = build(read_graph(identity(), "model"), options, {"x": given})
    port, out = built.program.inputs[0], built.program.outputs[0]
    assert (port.scale, port.zero) == (out.scale, out.zero)
    x = drawn(port.scale, rng)
    script = SCRIPT.format(size=SIZE, scale=port.scale, zero=port.zero)
    first, *lines = board.run(script, {**built.deployed[board.arch], "numbers": x.tobytes()}).splitlines()
    assert first == "True"
    found = np.array([line.split() for line in lines if line], int).reshape(-1, 2, SIZE)
    quotient = x.astype(float).reshape(-1, 1, SIZE) / port.scale
    due = np.clip(np.rint(quotient) + port.zero, 0, 255)
    # Only a number that float32 rounds to a tie may go to either side of it.
    tie = np.abs(quotient - np.floor(quotient) - 0.5) <= np.abs(quotient) * 2.0**-24
    np.testing.assert_array_equal(np.where(tie, due, found), np.broadcast_to(due, found.shape))
    assert np.abs(found - due).max() <= 1


INTEGERS = """
import micropython
import model

assert model._whole is model.run
for row in {rows}:
    found = model.predict(row)
    assert found == model.predict([float(n) for n in row]) and type(found[0]) is int
    print(*found)
micropython.heap_lock()
try:
    print(model.predict(row))
except MemoryError:
    print("no memory")
micropython.heap_unlock()
print(model.predict(row) == found)
"""


def integers() -> bytes:
    """A dense layer of int8 numbers."""
    tensors = {
        "w": np.random.default_rng(2).integers(-127, 128, (SIZE, 3)).astype(np.int8),
        **{"none": np.int8(0), "x0": np.int8(-20), "y0": np.int8(7)},
        **{"ws": np.float32(0.01), "xs": np.float32(0.1), "ys": np.float32(0.17)},
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "x0"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "none"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "ys", "y0"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.INT8, (1, k)) for n, k in (("x", SIZE), ("y", 3)))
    own = [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()]
    graph = helper.make_graph(nodes, "model", [x], [y], own)
    written: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return written


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.BOARDS)
def test_predict_gives_integers_for_integers(name: str) -> None:
    board = EmulatedBoard(name)
    options = Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)])
    text = integers()
    built = build(read_graph(text, "model"), options, None)
    rows = generator(__name__).integers(-128, 128, (20, SIZE)).astype(np.int8)
    (due,) = zip(*(InferenceSession(text).run(None, {"x": row[None]}) for row in rows), strict=True)
    lines = board.run(INTEGERS.format(rows=rows.tolist()), built.deployed[board.arch]).splitlines()
    found = np.array([line.split() for line in lines[:20]], int)
    assert np.abs(found - np.concatenate(due)).max() <= 1  # onnxruntime adds in float32
    assert lines[20:22] == ["no memory", "True"]


def stump(leaves: list[float]) -> bytes:
    """A tree of two leaves."""
    nodes = {"nodeids": [0, 1, 2], "values": [0.0] * 3, "truenodeids": [1, 0, 0], "falsenodeids": [2, 0, 0]}
    nodes |= {"treeids": [0] * 3, "featureids": [0] * 3, "modes": ["BRANCH_LEQ", "LEAF", "LEAF"]}
    how = {f"nodes_{key}": value for key, value in nodes.items()}
    how |= {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": leaves}
    return one_node("TreeEnsembleRegressor", [np.zeros((1, 2), np.float32)], n_targets=1, **how).SerializeToString()


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.KINDS)
def test_predict_gives_the_scores_of_trees_of_any_size(name: str) -> None:
    """Scores are multiples of powers of two, which a board's 32-bit floats have to hold exactly."""
    board, files, due, script = EmulatedBoard(name), {}, [], ""
    for k, power in enumerate((-50, -28, -3, -1, 0, 2, 30, 90)):
        text = stump([0.7 * 2.0**power, -0.2 * 2.0**power])
        options = Options(f"m{k}", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)])
        files |= build(read_graph(text, f"m{k}"), options, None).deployed[board.arch]
        script += f"import m{k} as m\nfor x in (-1, 1):\n    print(*m.predict([x, 0]), *m.get())\n"
        for x in (-1, 1):
            due.append(InferenceSession(text).run(None, {"x0": np.array([[x, 0]], np.float32)})[0].item())
    found = np.array([line.split() for line in board.run(script, files).splitlines()], float)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_allclose(found[:, 0], due, rtol=1e-5)
