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
    rng, board = np.random.default_rng(), EmulatedBoard(name)
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
