"""`get` gives an output's numbers, also where machine code makes them or fills a large one's list."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.micro.builder.emit.outputs import LARGE
from emberlet.micro.builder.program import Port, Program
from support.draws import generator

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
@pytest.mark.parametrize("name", firmware.KINDS)
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


LISTED = """
import net, struct

assert net._direct
for k, output in enumerate(net.outputs):
    first = {firsts}[k]
    output[:] = bytes((i + first) % 256 for i in range(len(output)))
    for numbers in (net.get(k), net.get(k - len(net.outputs))):
        assert type(numbers) is list
        print(*struct.pack("<%df" % len(numbers), *numbers))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_numbers_are_those_of_float32_arithmetic(name: str) -> None:
    """All bytes, on drawn grids, in outputs of every kind of size."""
    rng = generator(__name__)
    sizes = [256] * 12 + [1, 5, 12, 13, 64, 65, 100, 300]
    scales = [1 / 255, 2.0**-8, 1 - 2.0**-24, 1.0, 7e-31, 3e29, *10.0 ** rng.uniform(-20, 20, len(sizes) - 6)]
    zeros = [0, 255, 128, *rng.integers(0, 256, len(sizes) - 3).tolist()]
    firsts = [0] * 12 + rng.integers(0, 256, len(sizes) - 12).tolist()
    places = np.cumsum([0, *sizes]).tolist()
    ports = [
        Port(f"y{k}", (size,), place, float(np.float32(scale)), zero)
        for k, (size, place, scale, zero) in enumerate(zip(sizes, places, scales, zeros, strict=False))
    ]
    inputs = (Port("x", (4,), 0, 0.1, 3),)
    made = Program("net", False, (), inputs, tuple(ports), places[-1], np.zeros(0, np.uint8), ())
    board = EmulatedBoard(name)
    said = board.run(LISTED.format(firsts=firsts), module_files(made, board.arch)).splitlines()
    for k, port in enumerate(ports):
        steps = (np.arange(port.size) + firsts[k]) % 256 - port.zero
        due = np.float32(port.scale) * steps.astype(np.float32)
        for line in said[2 * k : 2 * k + 2]:
            found = np.frombuffer(bytes(map(int, line.split())), np.float32)
            if port.size < 12 or port.size > 256:  # MicroPython's own reading of the step may be one bit off
                np.testing.assert_allclose(found, due, rtol=2**-23 + 2**-23)  # and both products are rounded
            else:
                np.testing.assert_array_equal(found.view(np.uint32), due.view(np.uint32))
