"""An inference in steps: the numbers of `predict`, other tasks between the layers, and the state of before or after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from support.microcontrollers.modules import importable
from support.microcontrollers.over_time import network_over_time
from support.microcontrollers.quantized import samples_of

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.models import build_digits
from tools.microcontrollers.tflite_lstm import drawn_lstm
from tools.micropython import Port


def stream(floats: bool = False) -> BuildResult:
    """Convolutions over time, whose past is kept from call to call."""
    model, axis = network_over_time(1)
    graph, samples = read_graph(model.SerializeToString(), "m"), {"x": samples_of(model, 12)}
    return build(graph, Options("m", stream=axis, steps=True), None if floats else samples)


def recurrent() -> BuildResult:
    file = drawn_lstm(np.random.default_rng(0), 5, 3, 4)
    return build(read_graph(file.written(), "m"), Options("m", steps=True))


MODELS = {
    "image": lambda: build_digits(steps=True),
    "floats": lambda: build_digits(floats=True, steps=True),
    "stream": stream,
    "stream of floats": lambda: stream(True),
    "recurrent": recurrent,
}


def run(result: BuildResult, script: str, port: Port, folder: Path) -> list[str]:
    """What a script prints, with the module as `m` and three inputs in `x`."""
    given = result.program.inputs[0]
    numbers = np.random.default_rng(5).integers(-100, 100, (3, given.size // given.width))
    x = (numbers if given.integer is not None else numbers / 100).tolist()
    head = importable(folder, result) + f"import {result.program.name} as m\nx = {x}\n"
    return port.run(head + script, heap="32M", micropypath=[]).check().stdout.splitlines()


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_are_those_of_predict(name: str, unix_port: Port, tmp_path: Path) -> None:
    result = MODELS[name]()
    script = """
due = [m.predict(v) for v in x]
if hasattr(m, "reset"):
    m.reset()
for v, y in zip(x, due):
    print(len([None for _ in m.steps(v)]), m.get() == y)
"""
    assert run(result, script, unix_port, tmp_path) == [f"{len(result.program.steps)} True"] * 3


@pytest.mark.parametrize("name", ["stream", "stream of floats", "recurrent"])
def test_a_run_that_is_abandoned_leaves_the_state_of_before(name: str, unix_port: Port, tmp_path: Path) -> None:
    """After each number of layers, whether `predict`, `steps` or `reset` comes next."""
    result = MODELS[name]()
    script = """
due = [m.predict(v) for v in x]
count = len([None for _ in m.steps(x[0])])
for left in range(count):
    for how in range(3):
        m.reset()
        found = [m.predict(x[0])]
        begun = m.steps(x[2])
        for _ in range(left + 1):
            next(begun)
        if how == 0:
            found.append(m.predict(x[1]))
        elif how == 1:
            for _ in m.steps(x[1]):
                pass
            found.append(m.get())
        else:
            m.reset()
            found = [m.predict(x[0]), m.predict(x[1])]
        try:
            for _ in begun:
                pass
            print("an old run went on")
        except RuntimeError as error:
            said = str(error)
        found.append(m.predict(x[2]))
        if found != due:
            print(left, how, "differs")
print(said)
"""
    assert run(result, script, unix_port, tmp_path) == ["another inference or reset() came in between"]


@pytest.mark.parametrize("name", ["image", "floats"])
def test_numbers_that_are_refused_end_a_run_too(name: str, unix_port: Port, tmp_path: Path) -> None:
    """They may lie in the input's place, which the layers reuse."""
    script = """
for call in (m.predict, m.put):
    for bad in ([1.0] * (len(x[0]) - 1) + ["a"], [1.0] * (len(x[0]) - 1)):
        begun = m.steps(x[0])
        next(begun)
        try:
            call(bad)
        except (TypeError, ValueError):
            pass
        try:
            for _ in begun:
                pass
            print("went on")
        except RuntimeError:
            pass
"""
    assert run(MODELS[name](), script, unix_port, tmp_path) == []


def test_other_tasks_run_between_the_layers(unix_port: Port, tmp_path: Path) -> None:
    script = """
import asyncio

turns = []


async def infer(v):
    for _ in m.steps(v):
        turns.append("layer")
        await asyncio.sleep(0)
    return m.get()


async def other():
    while True:
        turns.append("other")
        await asyncio.sleep(0)


async def main():
    task = asyncio.create_task(other())
    y = await infer(x[0])
    task.cancel()
    return y


y = asyncio.run(main())
print(y == m.predict(x[0]), all(a != b for a, b in zip(turns, turns[1:])), turns.count("layer"))
"""
    result = build_digits(steps=True)
    assert run(result, script, unix_port, tmp_path) == [f"True True {len(result.program.steps)}"]


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0", "rv32"])
def test_steps_run_in_assembly(name: str) -> None:
    board = EmulatedBoard(name)
    result = build_digits("romfs", boards=[replace(BOARDS["rp2"], name=name, arch=board.arch)], steps=True)
    script = "import digits as m\nx = [k % 16 / 16 for k in range(64)]\ny = m.predict(x)\n"
    script += "n = len([None for _ in m.steps(x)])\nprint(n, m.get() == y)"
    assert board.run(script, result.deployed[board.arch]).split() == [str(len(result.program.steps)), "True"]


def test_a_plain_build_has_nothing_of_it() -> None:
    plain = build_digits()
    assert "digits_steps.py" not in plain.sources and "def steps" not in plain.sources["digits.py"]
