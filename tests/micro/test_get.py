"""`get` gives an output's numbers, also where a large one's list is filled in machine code."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.micro.builder.emit.outputs import LARGE
from emberlet.micro.builder.program import Port, Program

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.running import module_files
from tools.micropython_builds import firmware

GIVEN = """
import gc, net

print(hasattr(net._kernels, "numbers"))
kept = []
for first in (0, 100):
    for i in range(len(net.A)):
        net.A[i] = first + i * i * 7 & 255
    kept.append([net.get(which) for which in {outputs}])
    net.A[:] = bytes(len(net.A))
    gc.collect()  # nothing of what was given may be reused
    junk = [float(i) for i in range(500)]
for lists in kept:
    for numbers in lists:
        print(*numbers)
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.EVERY)
@pytest.mark.parametrize("size", [LARGE, LARGE + 1, 700])
def test_an_output_has_the_numbers_of_its_bytes(name: str, size: int) -> None:
    board = EmulatedBoard(name)
    outputs = (Port("y", (size,), 10, 0.125, 77), Port("z", (9,), 2, 2.0, 255), Port("k", (size,), 1, 0.5, integer=128))
    made = Program("net", False, (), (Port("x", (4,), 0, 0.5),), outputs, size + 20, np.zeros(0, np.uint8), ())
    said = board.run(GIVEN.format(outputs=[0, 1, 2, -3]), module_files(made, board.arch)).splitlines()
    assert said[0] == str(size > LARGE)
    every = (np.arange(size + 20) ** 2 * 7 + np.array([[0], [100]])) & 255
    for k, line in enumerate(said[1:]):
        port = outputs[(0, 1, 2, 0)[k % 4]]
        read = every[k // 4, port.place : port.place + port.size]
        due = read - 128.0 if port.integer else port.scale * (read - port.zero)
        assert list(map(float, line.split())) == due.tolist()
    assert len(said) == 9
