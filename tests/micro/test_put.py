"""`put` gives the bytes that NumPy gives, whatever holds the numbers, on every kind of processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.compile import compile_mpy
from emberlet.micro.builder.emit.inputs import grid_table, inputs_source
from emberlet.micro.builder.emit.kernels import kernels_source, machine_code
from emberlet.micro.builder.emit.model import model_source
from emberlet.micro.builder.emit.ranks import MOST_FEATURES
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Columns
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.program import Port, Program
from emberlet.micro.builder.quantization.calibrate import samples_from
from emberlet.micro.builder.quantization.reference import quantize
from onnxruntime import InferenceSession
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor
from support.draws import generator
from support.rows import every

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.models import build_digits, deployed, desktop_boards
from tools.microcontrollers.networks import SMALL, samples
from tools.microcontrollers.running import module_files
from tools.micropython import Port as MicroPython
from tools.micropython_builds import firmware
from tools.paths import ROOT

SCALES = (1 / 255, 2 / 255, 0.1, 1.0, 2.0**-8, 0.7734, 3.3e-4, 812.5)


def program(*ports: Port) -> Program:
    return Program("net", False, (), ports, ports[:1], 40, np.zeros(0, np.uint8), ())


def numbers(scale: float, rng: np.random.Generator) -> Array:
    """Numbers inside and outside of a grid, halfway between its steps, and at the ends of float32."""
    far = [0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 0.5, -0.5]
    drawn = [rng.standard_normal(300) * 150 * scale, rng.integers(-600, 600, 300) / 2 * scale, far]
    return np.concatenate(drawn).astype(np.float32)


PUT = """
import struct
from array import array
import kernels

with open("{folder}/numbers", "rb") as f:
    x = array("f", f.read())
y = bytearray(len(x) // {cases})
for k, table in enumerate({tables}):
    part = x[k * len(y) : (k + 1) * len(y)]
    for i, end in ((0, 64), (64, len(y))):
        assert kernels.put(part[i:end], y, i, end, array("I", table), 0) == 0
    print(*y)
"""

DIRECT = """
from array import array
import kernels

with open("/rom/numbers", "rb") as f:
    x = array("f", f.read())
A = bytearray({size} * {cases})
W, T = kernels.prepare(b"", b"")
kernels.bind(A, W, T)
tables = [(None, {size}, array("I", table)) for table in {tables}]
direct = kernels.direct(A, tables)
for which in range({cases}):
    part = x[which * {size} : (which + 1) * {size}]
    own = memoryview(A)[which * {size} : (which + 1) * {size}]
    for way, numbers in ((1, list(part)), (2, part)):
        own[:] = bytes({size})
        assert direct(numbers, which, way) == 0
        print(*own)
    own[:] = bytes({size})
    for i in range(0, {size}, 64):
        end = min(i + 64, {size})
        assert kernels.put(part[i:end], None, i, end, tables[which][2], which) == 0
    print(*own)
part = list(part)
before = bytes(A)
print(direct(part[1:], which, 1), direct(array("f", part[1:]), which, 2), before == bytes(A))
print(direct(array("i", bytes(4 * {size})), which, 2), direct(array("d", part), which, 2), before == bytes(A))
for wrong in (5, "a", None, 1 << 40, -3):
    print(direct(part[:7] + [wrong] + part[8:], which, 1))
for wrong in (float("inf"), float("nan"), -float("inf")):
    print(direct(part[:7] + [wrong] + part[8:], which, 1))
"""


def cases() -> tuple[list[Port], Array]:
    """Ports, the last one with columns, and numbers for each."""
    rng = generator(__name__)
    ports = [Port("x", (608,), 0, s, int(z)) for s in SCALES for z in (0, 255, rng.integers(1, 255))]
    x = [numbers(port.scale, rng) for port in ports]
    offset = (rng.standard_normal(608) * 10.0 ** rng.integers(-3, 5, 608)).astype(np.float32)
    offset[rng.random(608) < 0.2] = 0
    step = rng.choice(SCALES, 608)
    near = offset + step * rng.integers(-300, 300, 608) / 2
    far = rng.choice(numbers(1.0, rng), 608)
    ports.append(Port("x", (608,), 0, 1.0, 100, columns=Columns(offset.astype(float), 1 / step)))
    x.append(np.where(rng.random(608) < 0.7, near, far).astype(np.float32))
    return [replace(port, place=608 * k) for k, port in enumerate(ports)], np.stack(x)


def check(ports: list[Port], x: Array, said: str, times: int = 1) -> None:
    lines = [line.split() for line in said.splitlines() if line][: times * len(ports)]
    for k, y in enumerate(np.array(lines, int)):
        port, given = ports[k // times], x[k // times]
        scale: Any = port.scale
        if port.columns is not None:
            given = given - port.columns.offset.astype(np.float32)
            scale = port.scale / port.columns.factor
        quotient = given.astype(float) / scale
        due = np.clip(np.rint(quotient) + port.zero, 0, 255)
        # Only a number that float32 rounds to a tie may go to either side of it.
        tie = np.abs(quotient - np.floor(quotient) - 0.5) <= np.abs(quotient) * 2.0**-24
        np.testing.assert_array_equal(y[~tie], due[~tie], f"{port.scale} {port.zero}")
        assert np.abs(y - due).max() <= 1
        halves = np.rint(quotient * 2) / 2 == quotient
        exact = tie & halves & (np.float32(scale) == scale)
        np.testing.assert_array_equal(y[exact], due[exact])


@pytest.mark.parametrize("dialect", ["viper", "bytecode"])
@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_numbers_become_bytes(dialect: str, port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    port: MicroPython = request.getfixturevalue(port_name)
    ports, x = cases()
    head = "import micropython\n" if dialect == "viper" else ""
    script = f"import sys\nsys.path.insert(0, '{tmp_path}')\n"
    for some, rows in ((ports[:-1], x[:-1]), (ports[-1:], x[-1:]), (ports[:2] + ports[-1:], x[[0, 1, -1]])):
        (tmp_path / "kernels.py").write_text(head + inputs_source(program(*some), dialect), encoding="utf-8")
        (tmp_path / "numbers").write_bytes(rows.tobytes())
        own = script + PUT.format(folder=tmp_path, cases=len(some), tables=[grid_table(p) for p in some])
        check(some, rows, port.run(own, micropypath=[]).check().stdout)


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_numbers_become_bytes_on_boards(name: str) -> None:
    board = EmulatedBoard(name)
    ports, x = cases()
    source = "import micropython\n" + inputs_source(program(*ports), "viper")
    files = {"kernels.mpy": compile_mpy(source, "kernels", board.arch), "numbers": x.tobytes()}
    script = PUT.format(folder="/rom", cases=len(ports), tables=[grid_table(p) for p in ports])
    check(ports, x, board.run(script, files))


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_lists_and_arrays_become_bytes_in_assembly(name: str) -> None:
    board = EmulatedBoard(name)
    ports, x = cases()
    made = program(*ports)
    source, code = kernels_source(made, "viper", board.arch), machine_code(made, board.arch)
    files = {"kernels.mpy": compile_mpy(source, "kernels", board.arch, code=code), "numbers": x.tobytes()}
    script = DIRECT.format(size=608, cases=len(ports), tables=[grid_table(p) for p in ports])
    said = board.run(script, files)
    check(ports, x, said, times=3)
    assert said.splitlines()[3 * len(ports) :] == ["2 2 True", "2 2 True", *["2"] * 5, *["1"] * 3]


WHICH = """
import net
from array import array

print(hasattr(net, "_direct") and net._direct is not None)
start = bytes(range(170, 188))
for which, n in {counts}:
    for numbers in ([1.0] * n, array("f", [1] * n), (1,) * n, array("O", [1.0] * n), iter([1] * n)):
        net.A[:] = start
        try:
            net.put(numbers, which)
        except IndexError:
            assert net.A == start
            print("refused")
        else:
            print(*net.A)
"""


@pytest.mark.needs("emulated-boards")
@every("name", firmware.KINDS)
@every("widths", [(1, 1), (2, 1), (1, 2), (2, 2)], share=2)
def test_numbers_go_to_one_of_the_inputs_or_nowhere(name: str, widths: tuple[int, int]) -> None:
    """Inputs may be counted from the last. Where floats lie in objects' own words, a driver takes none of them."""
    board = EmulatedBoard(name)
    ports = [Port("x", (4,), 6, 0.5, 3, width=widths[0]), Port("y", (2,), 14, 0.5, 3, width=widths[1])]
    made = replace(program(*ports), arena=18)
    files = module_files(made, board.arch)
    counts = {-3: 2, -2: 4, -1: 2, 0: 4, 1: 2, 2: 2, 3: 4}
    said = board.run(WHICH.format(counts=list(counts.items())), files).split("\n")
    assert said[0] == str(widths != (2, 2) and name != firmware.FLOATS_IN_WORDS.name)
    for k, which in enumerate(counts):
        due = np.arange(170, 188)
        if -3 < which < 2:
            port = ports[which]
            due[port.place : port.place + port.size] = [5, 0][: port.width] * port.shape[0]
        assert set(said[1 + 5 * k : 6 + 5 * k]) == {" ".join(map(str, due)) if -3 < which < 2 else "refused"}, which


COUNTED = """
import digits, gc
x = [i / 64 for i in range(64)]
digits.put(x)
start = end = 0
start = count()
gc.collect()
start = count()
digits.put(x)
end = count()
print((end - start) // 64)
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", ["m7", "m0"])
def test_a_number_of_a_list_takes_few_instructions(name: str) -> None:
    """A count, not a time; in bytecode they were 2,000 and 3,500, from an array of floats 610 and 780."""
    board = EmulatedBoard(name)
    built = build_digits(boards=[replace(BOARDS["rp2"], name=name, arch=board.arch)])
    assert int(board.run(COUNTED, built.deployed[board.arch])) < 300


KINDS = """
import json, sys
sys.path[:] = ["{folder}"]
import digits
from array import array

x = [i % 17 / 16 for i in range(64)]


def written(numbers):
    digits.input[:] = bytes(64)
    digits.put(numbers)
    return list(digits.input)


due = written(x)
for numbers in (tuple(x), array("f", x), array("d", x), memoryview(array("f", x)), (v for v in x), iter(x)):
    assert written(numbers) == due, numbers
whole = [i % 3 for i in range(64)]
due = written(whole)
for numbers in (bytes(whole), bytearray(whole), memoryview(bytes(whole)), array("h", whole), range(0)):
    if len(numbers):
        assert written(numbers) == due, numbers
for wrong in (x[:63], x + [0.0], [], (v for v in x[:5]), (v for v in x + x), bytes(65), ["a"] * 64,
              x[:63] + [float("nan")], [float("inf")] + x[1:]):
    try:
        digits.put(wrong)
        print("taken:", wrong)
    except (ValueError, TypeError) as error:
        print(error)
"""


def test_numbers_may_lie_in_anything(unix_port: MicroPython, tmp_path: Path) -> None:
    options = Options("digits", "file", desktop_boards())  # type: ignore[arg-type]
    for folder in (deployed(build_digits(boards=desktop_boards()), options, tmp_path, "x64"), tmp_path):
        said = unix_port.run(KINDS.format(folder=folder), micropypath=[]).check().stdout.splitlines()
        counts = [f"input 0 takes 64 numbers, found {n}" for n in (63, 65, 0, 5, 128, 65)]
        assert said[:6] == counts and "str" in said[6] + "str"
        assert said[7:] == ["input 0 takes finite numbers"] * 2


WHOLE = """
import net
from array import array

whole = [(i * 37 + 11) % 256 for i in range(40)]
signed = [i - 128 for i in whole]
arrays = (array("B", whole), array("h", whole), array("f", whole))
for numbers in (bytes(whole), bytearray(whole), whole, iter(whole)) + arrays:
    net.put(numbers)
    print(*net.input)
for numbers in (array("b", signed), memoryview(array("b", signed)), array("i", signed), signed, array("f", signed)):
    net.put(numbers)
    print(*net.input)
for wrong in (bytes(39), bytearray(41), array("b", signed[1:]), array("f", signed[1:])):
    try:
        net.put(wrong)
        print("taken")
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("zero", [0, 3, 128, 255])
def test_bytes_and_arrays_of_a_models_integers_are_taken_as_a_whole(
    zero: int, unix_port: MicroPython, armhf_port: MicroPython, tmp_path: Path
) -> None:
    """Also in bytecode. As with other numbers, those beyond the ends become the ends."""
    made = program(Port("x", (40,), 0, 1.0, zero))
    texts = {"net": model_source(made), "net_weights": "W = T = b''\n"}
    texts["net_bytecode"] = kernels_source(made, "bytecode")
    whole = (np.arange(40) * 37 + 11) % 256
    due = [np.clip(whole + zero, 0, 255)] * 7 + [np.clip(whole - 128 + zero, 0, 255)] * 5
    for kernels in (True, False):
        if not kernels:
            (tmp_path / "net_kernels.py").unlink()
        for name, text in (texts | ({"net_kernels": kernels_source(made, "viper")} if kernels else {})).items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        for port in (unix_port, armhf_port):
            said = port.run(WHOLE, micropypath=[tmp_path]).check().stdout.splitlines()
            np.testing.assert_array_equal(np.array([line.split() for line in said[:12]], int), due)
            assert said[12:] == [f"input 0 takes 40 numbers, found {n}" for n in (39, 41, 39, 39)]


RANK = """
from array import array
import kernels


def read(name, kind):
    with open("{folder}/" + name, "rb") as f:
        return array(kind, f.read())


x = read("numbers", "f")
y = bytearray(len({starts}) - 1)
cuts = read("cuts", "f")
if hasattr(kernels, "order"):
    kernels.order(cuts, len(cuts))
for k in range(0, len(x), len(y)):
    kernels.rank(x[k : k + len(y)], y, len(y), cuts, array("H", {starts}), array("H", {nan}))
    print(*y)
"""


def ranked() -> tuple[Port, dict[str, Any], Array, Array]:
    """A port with thresholds, what the script needs, rows of numbers, and their ranks."""
    rng = generator(__name__)
    cuts = [np.unique(np.float32(rng.standard_normal(n) * 10.0**k)) for k, n in enumerate((1, 0, 7, 200, 3, 30))]
    cuts[2] = np.unique(np.float32([-3.4e38, -1e-40, 0.0, 1e-40, 5.5, 3.4e38]))
    nan = rng.integers(0, 3, len(cuts)).tolist()
    rows = [[rng.choice(c) if len(c) and k % 3 == 0 else rng.standard_normal() * 30 for c in cuts] for k in range(60)]
    rows += [[v] * len(cuts) for v in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40, 3.4e38)]
    x = np.array(rows, np.float32)
    due = np.array([[nan[i] if v != v else np.searchsorted(cuts[i], v) for i, v in enumerate(row)] for row in x])
    starts = [0, *np.cumsum([len(c) for c in cuts]).tolist()]
    port = Port("x", (len(cuts),), 0, cuts=tuple(tuple(map(float, c)) for c in cuts))
    return port, {"starts": starts, "nan": nan, "cuts": np.concatenate(cuts)}, x, due


@pytest.mark.parametrize("dialect", ["viper", "bytecode"])
@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port"])
def test_features_become_ranks(dialect: str, port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    running: MicroPython = request.getfixturevalue(port_name)
    port, told, x, due = ranked()
    head = "import micropython\n" if dialect == "viper" else ""
    (tmp_path / "kernels.py").write_text(head + inputs_source(program(port), dialect), encoding="utf-8")
    (tmp_path / "numbers").write_bytes(x.tobytes())
    (tmp_path / "cuts").write_bytes(told["cuts"].tobytes())
    script = f"import sys\nsys.path.insert(0, '{tmp_path}')\n"
    script += RANK.format(folder=tmp_path, starts=told["starts"], nan=told["nan"])
    said = running.run(script, micropypath=[]).check().stdout
    np.testing.assert_array_equal(np.array([line.split() for line in said.splitlines()], int), due)


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.FAMILIES)
def test_features_become_ranks_on_boards(name: str) -> None:
    board = EmulatedBoard(name)
    port, told, x, due = ranked()
    source = "import micropython\n" + inputs_source(program(port), "viper")
    files = {"kernels.mpy": compile_mpy(source, "kernels", board.arch)}
    files |= {"numbers": x.tobytes(), "cuts": told["cuts"].tobytes()}
    said = board.run(RANK.format(folder="/rom", starts=told["starts"], nan=told["nan"]), files)
    np.testing.assert_array_equal(np.array([line.split() for line in said.splitlines() if line], int), due)


PREDICTED = """
import gc
from array import array
import model

with open("/rom/numbers", "rb") as f:
    x = array("f", f.read())
print(model._whole is model.run)
for k in range(0, len(x), {size}):
    part = x[k : k + {size}]
    for given in (list(part), part, tuple(part), iter(part)):
        print(*model.predict(given))
nan = [0.5] * {size}
nan[-1] = float("nan")
for wrong in ([0.5] * ({size} + 1), [], array("f", [0.5] * ({size} - 1)), nan):
    try:
        print("taken:", model.predict(wrong))
    except ValueError as error:
        print(error)
one = model.predict([1.0] * {size})
print(model.predict([1] * {size}) == one, model.predict(array("h", [1] * {size})) == one)
ones = [1.0] * {size}
print(model.predict(numbers=ones) == one)
for arguments in ((), (ones, 0), (ones, 1, 2)):
    try:
        print("taken:", model.predict(*arguments))
    except TypeError:
        print("refused")
kept, junk = [model.predict(ones) for _ in range(20)], None
for turn in range(40):  # some of the lists are made while memory is collected
    junk = [[float(k)] for k in range(100)]
    kept[turn % 20] = model.predict(ones)
gc.collect()
junk = [[float(k)] for k in range(300)]
kept[0].append(2.5)
print(kept[0] == one + [2.5], all(numbers == one for numbers in kept[1:]), type(kept[1]))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.KINDS)
@pytest.mark.parametrize("kind", ["sine", "columns", "recurrent"])
def test_predict_takes_numbers_in_any_kind_of_sequence(name: str, kind: str) -> None:
    board = EmulatedBoard(name)
    if kind == "sine":
        graph = read_graph(ROOT / "examples" / "sine" / "sine.onnx", "model")
        given = samples_from(ROOT / "examples" / "sine" / "heldout.npz", graph)
    else:
        graph = replace(SMALL["dense 16 → 16" if kind == "columns" else "GRU 8 → 8, 24 steps"](), name="model")
        given = samples(graph)
    built = build(graph, Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)]), given)
    (port,), (out,) = built.program.inputs, built.program.outputs
    x = next(iter(given.values()))[:4].reshape(4, -1).astype(np.float32)
    assert (port.columns is not None) == (kind == "columns")
    q = quantize(port.columns.of(x) if port.columns else x, port.scale, port.zero)
    (source,), (target,) = built.graph.inputs, built.graph.outputs
    due = [built.graph.run({source: row.reshape(port.shape)})[target].reshape(-1) for row in q]
    files = {**built.deployed[board.arch], "numbers": x.tobytes()}
    first, *lines = board.run(PREDICTED.format(size=port.size), files).splitlines()
    assert first == str(board.board.name in firmware.BOARDS)
    for k, line in enumerate(lines[:16]):
        np.testing.assert_allclose(list(map(float, line.split())), out.scale * (due[k // 4] - float(out.zero)), 1e-5)
    counts = [port.size + 1, 0, port.size - 1]
    assert lines[16:19] == [f"input 0 takes {port.size} numbers, found {count}" for count in counts]
    assert lines[19:23] == ["input 0 takes finite numbers", "True True", "True", "refused"]
    assert lines[23:] == ["refused", "refused", "True True <class 'list'>"]


TREES = """
from array import array
import model

with open("/rom/numbers", "rb") as f:
    x = array("f", f.read())
print(model._whole is model.run)
for k in range(0, len(x), {size}):
    part = x[k : k + {size}]
    for given in (list(part), part, tuple(part)):
        print(*model.predict(given))
        if model.predict(given) != model.get():
            print("differs", model.get())
for wrong in ([0.5] * ({size} + 1), array("f")):
    try:
        print("taken:", model.predict(wrong))
    except ValueError as error:
        print(error)
print(model.predict([1] * {size}) == model.predict([1.0] * {size}))
"""


@pytest.mark.needs("emulated-boards")
@pytest.mark.parametrize("name", firmware.KINDS)
@pytest.mark.parametrize("kind", ["few thresholds", "many thresholds"])
@pytest.mark.parametrize("features", [6, MOST_FEATURES + 1])
def test_trees_compare_numbers_in_any_kind_of_sequence(name: str, kind: str, features: int) -> None:
    """Beside onnxruntime: missing numbers, the largest, thresholds, and a feature that no tree reads."""
    rng, board = generator(__name__), EmulatedBoard(name)
    x = rng.integers(-9, 9, (300, features)) if kind[0] == "f" else rng.standard_normal((900, features))
    x = x.astype(np.float32)
    y, x[:, 3] = np.abs(x[:, :6]) @ rng.uniform(2, 4, (6, 1 if kind[0] == "f" else 3)), 1.5
    x[:, 6:] = x[:, 6:] if kind[0] == "f" else 1.5
    x[rng.random(x.shape) < 0.1] = np.nan
    forest = RandomForestRegressor(4 if kind[0] == "f" else 12, random_state=0).fit(x, y.squeeze())
    rows = np.concatenate([x[:12], (x[12:20] - 0.5).astype(np.float32), -x[20:24], np.full((1, features), np.nan)])
    far = np.resize([0.0, -0.0, 3e38, -3e38, 1e-40, -1e-40, np.inf, -np.inf], (4, features))
    rows = np.concatenate([rows, far]).astype(np.float32)
    text = to_onnx(forest, x[:1]).SerializeToString()
    (due,) = InferenceSession(text).run(None, {"X": rows})
    options = Options("model", "romfs", [replace(BOARDS["rp2"], name=name, arch=board.arch)])
    built = build(read_graph(text, "model"), options, None)
    cuts = built.program.inputs[0].cuts
    assert cuts and (max(map(len, cuts)) > 255) == (kind[0] == "m")
    files = {**built.deployed[board.arch], "numbers": rows.tobytes()}
    first, *lines = board.run(TREES.format(size=features), files).splitlines()
    assert first == str(board.board.name in firmware.BOARDS)
    found = [list(map(float, line.split())) for line in lines[: 3 * len(rows)]]
    np.testing.assert_allclose(found, np.repeat(due, 3, 0), 1e-4, 1e-4)
    refused = [f"the model takes {features} features, found {n}" for n in (features + 1, 0)]
    assert lines[3 * len(rows) :] == [*refused, "True"]
