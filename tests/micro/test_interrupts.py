"""An inference that is interrupted at any moment leaves the state of before or after it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from support.draws import draw
from support.microcontrollers.over_time import network_over_time
from support.microcontrollers.quantized import samples_of
from support.microcontrollers.stateful import stateful

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.tflite_lstm import drawn_lstm
from tools.micropython import Port, Result


def stream(floats: bool = False) -> BuildResult:
    """Convolutions over time, whose past is kept from call to call."""
    model, axis = network_over_time(1)
    graph, samples = read_graph(model.SerializeToString(), "m"), {"x": samples_of(model, 12)}
    return build(graph, Options("m", stream=axis), None if floats else samples)


def recurrent(seed: int, floats: bool = False) -> BuildResult:
    """LSTM layers, or with an odd seed GRU layers."""
    model, _ = stateful(seed)
    graph, samples = read_graph(model.SerializeToString(), "m"), {"x": samples_of(model, 40, 3)}
    return build(graph, Options("m"), None if floats else samples)


def tflite_lstm() -> BuildResult:
    return build(read_graph(drawn_lstm(np.random.default_rng(0), 5, 3, 4).written(), "m"), Options("m"))


MODELS: dict[str, Callable[[], BuildResult]] = {
    "stream": stream,
    "stream of floats": lambda: stream(True),
    "LSTM": lambda: recurrent(0),
    "GRU": lambda: recurrent(1),
    "GRU of floats": lambda: recurrent(1, True),
    "LSTM of a .tflite file": tflite_lstm,
}

BEGIN = """
import sys
sys.path.insert(0, {folder!r})
import m

x = {x}
m.reset()
first = m.predict(x[0])
due = m.predict(x[1]), m.predict(x[2])
"""

CALLS = """
import m_kernels as kernels

left, behind, calls = 0, False, 0


def counting(function):
    def call(*given):
        global left
        left -= 1
        if left == 0 and not behind:
            raise KeyboardInterrupt
        result = function(*given)
        if left == 0 and behind:
            raise KeyboardInterrupt
        return result

    return call


def interrupted(call, *given):
    try:
        call(*given)
        return False
    except KeyboardInterrupt:
        return True


def check(what):
    if (m.predict(x[1]), m.predict(x[2])) != due:
        print("interrupted at call", moment, behind, what, "the state is not that of before")


for name in dir(kernels):
    if name[:2] != "__" and name not in ("bind", "put"):
        if callable(getattr(kernels, name)):
            setattr(kernels, name, counting(getattr(kernels, name)))

for behind in (False, True):
    for moment in range(1, 1000):
        m.reset()
        m.predict(x[0])
        left = moment
        if not interrupted(m.predict, x[1]):
            break
        check("of predict")
        calls += 1
    left = 0
    for moment in (1, 2) if {resets} else ():
        m.reset()
        m.predict(x[0])
        left = moment if not behind else 2
        if not interrupted(m.reset):
            print("no interrupt")
        check("of reset")
print(calls > 4)
"""

# A timer of the operating system sends SIGINT, which the port raises wherever it is, in machine code too. Models of
# floats allocate, and the port does not survive an interrupt in that.
MOMENTS = """
import ffi
import gc
import struct
import time

libc = ffi.open("libc.so.6")
create, arm = libc.func("i", "timer_create", "iPP"), libc.func("i", "timer_settime", "PiPP")
timer = bytearray(8)
assert create(1, struct.pack("qii", 0, 2, 0) + bytes(48), timer) == 0
timer = struct.unpack("Q", timer)[0]

span = 1 << 30  # nanoseconds of the fastest inference
for _ in range(20):
    begun = time.ticks_us()
    m.predict(x[1])
    span = min(span, 1000 * time.ticks_diff(time.ticks_us(), begun) + 1000)

drawn, before, after = {seed}, 0, 0
while before < 60 and after < 3000:
    drawn = (drawn * 1103515245 + 12345) & 0x7FFFFFFF
    m.reset()
    m.predict(x[0])
    gc.collect()  # the port does not survive an interrupt in it
    at = struct.pack("qqqq", 0, 0, 0, 1 + drawn % (span + span // 4))
    try:
        arm(timer, 0, at, None)
        m.predict(x[1])
        time.sleep_ms(1000)
    except KeyboardInterrupt:
        pass
    found = m.predict(x[1])
    if found == due[0]:
        before += 1
        found = m.predict(x[2])
    else:
        after += 1
        m.reset()
        m.predict(x[0])
        m.predict(x[1])
        if m.predict(x[1]) != found:
            print("neither")
        found = due[1]
    if found != due[1]:
        print("neither")
print(before)
"""


BETWEEN = """
import m_kernels as kernels


def interrupt(*given):
    raise KeyboardInterrupt


names = [name for name in dir(kernels) if name[-1] in "0123456789"]
for name in names:
    kernel = getattr(kernels, name)
    m.reset()
    m.predict(x[0])
    setattr(kernels, name, interrupt)
    try:
        m.predict(x[1])
    except KeyboardInterrupt:
        pass
    setattr(kernels, name, kernel)
    found = m.predict(x[1])
    if found == due[0]:
        found = m.predict(x[2])
    else:
        m.reset()
        m.predict(x[0])
        m.predict(x[1])
        if m.predict(x[1]) != found:
            print("neither")
        found = due[1]
    if found != due[1]:
        print("neither")
print(len(names), "kernels", hasattr(kernels, "hold"))
"""


# An interrupt that finds the port in its allocator leaves the allocator's lock held, and the port waits for it forever
# (seen in a debugger), or leaves a block half linked.
PORT_BROKE = (124, -signal.SIGSEGV)


def start(result: BuildResult, script: str, port: Port, folder: Path) -> Result:
    """Run a script with the module as `m` and three inputs in `x`."""
    for file, text in {**{k: v.encode() for k, v in result.sources.items()}, **result.extra}.items():
        (folder / file).write_bytes(text)
    given = result.program.inputs[0]
    x = (np.random.default_rng(5).integers(-100, 100, (3, given.size)) / 100).tolist()
    head = BEGIN.format(folder=str(folder), x=x)
    return port.run(head + script, heap="32M", micropypath=[], timeout=40)


def run(result: BuildResult, script: str, port: Port, folder: Path) -> list[str]:
    """What the script prints."""
    return start(result, script, port, folder).check().stdout.splitlines()


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupt_between_two_calls_leaves_the_state_of_before(name: str, unix_port: Port, tmp_path: Path) -> None:
    assert run(MODELS[name](), CALLS.format(resets="stream" not in name), unix_port, tmp_path) == ["True"]


@pytest.mark.parametrize("name", [name for name in MODELS if "floats" not in name])
def test_an_interrupt_at_any_moment_leaves_the_state_of_before_or_after(
    name: str, unix_port: Port, tmp_path: Path
) -> None:
    r, result = draw(__name__), MODELS[name]()
    for _ in range(6):
        seed = r.randrange(1 << 31)
        print(f"seed {seed}")
        ended = start(result, MOMENTS.format(seed=seed), unix_port, tmp_path)
        if ended.rc not in PORT_BROKE or ended.stdout:  # a state that is wrong
            break
    assert ended.check().stdout.splitlines() == ["60"]


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "rv32"])
def test_on_a_board_one_call_changes_the_whole_state(name: str) -> None:
    """So nothing is copied. Beside the driver, this stream has kernels in viper, where it may be interrupted."""
    board = EmulatedBoard(name)
    model, axis = network_over_time(1)
    options = Options("m", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)], stream=axis)
    result = build(read_graph(model.SerializeToString(), "m"), options, {"x": samples_of(model, 12)})
    x = (np.random.default_rng(5).integers(-100, 100, (3, result.program.inputs[0].size)) / 100).tolist()
    out = board.run(BEGIN.format(folder="/rom", x=x) + BETWEEN, result.deployed[board.arch])
    assert out.split() == ["2", "kernels", "False"]
    assert result.costs[board.arch].held == 0
