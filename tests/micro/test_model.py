"""Built models give the reference's bytes on MicroPython and allocate nothing, wherever their weights are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.emit.loading import Partition
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.kernels.recurrent_float import GruFloat, LstmFloat
from emberlet.micro.builder.quantization.reference import dequantize, quantize
from emberlet.micro.builder.romfs import romfs_image

from tools.microcontrollers.models import (
    build_digits,
    deployed,
    desktop_boards,
    digits_data,
    residual_graph,
    residual_samples,
)
from tools.micropython import Port

PORTS = ["unix_port", "armhf_port"]

INFER = """
import json, sys
sys.path[:] = ["{folder}"]
import {name} as model

with open("{folder}/inputs", "rb") as f:
    data = f.read()
n = len(model.input)
found = []
for k in range(len(data) // n):
    model.input[:] = data[k * n : (k + 1) * n]
    model.run()
    found.append(list(model.output))
{after}
print(json.dumps(found))
"""

COUNT_ALLOCATIONS = """
import gc


def count(times):
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(times):
        model.run()
    after = gc.mem_alloc()
    gc.enable()
    assert after == before, after - before


count({times})
"""


def options_for(weights: str, **more: object) -> Options:
    return Options("digits", weights, desktop_boards(), **more)  # type: ignore[arg-type]


def as_bytes(built: BuildResult, x: Array) -> Array:
    port = built.program.inputs[0]
    return quantize(x, port.scale, port.zero)


def expected(built: BuildResult, x: Array) -> list[list[int]]:
    """The reference's output bytes for each input."""
    name, output = built.graph.inputs[0], built.graph.outputs[0]
    return [built.graph.run({name: v})[output].reshape(-1).tolist() for v in as_bytes(built, x)]


def infer(port: Port, folder: Path, name: str, x: Array, after: str = "", heap: str = "192K") -> Any:
    """A deployed model's output bytes for each input. after: lines to run afterwards."""
    (folder / "inputs").write_bytes(x.tobytes())
    script = INFER.format(folder=folder, name=name, after=after)
    result = port.run(script, heap=heap, micropypath=[], files=[folder]).check()
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("port_name", PORTS)
@pytest.mark.parametrize("weights", ["module", "file", "frozen"])
def test_digits_are_as_the_reference_infers_them_in_a_heap_of_192_KB(
    port_name: str, weights: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port: Port = request.getfixturevalue(port_name)
    built = build_digits(weights, boards=desktop_boards())
    folder = deployed(built, options_for(weights), tmp_path, port.name)
    images = digits_data()[0][:40]
    found = infer(port, folder, "digits", as_bytes(built, images), COUNT_ALLOCATIONS.format(times=1000))
    assert found == expected(built, images)


@pytest.mark.parametrize(("port_name", "times"), [("unix_port", 100), ("armhf_port", 20)])
def test_bytecode_takes_nothing_of_the_heap_either(
    port_name: str, times: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """On 32-bit words an integer of more than 30 bits would be allocated on the heap."""
    port: Port = request.getfixturevalue(port_name)
    built = build_digits()
    folder = deployed(built, Options("digits"), tmp_path, "bytecode")
    images = digits_data()[0][:2]
    found = infer(port, folder, "digits", as_bytes(built, images), COUNT_ALLOCATIONS.format(times=times))
    assert found == expected(built, images)


@pytest.mark.parametrize("port_name", PORTS)
@pytest.mark.parametrize("weights", ["module", "file", "romfs"])
def test_words_are_read_where_they_lie(
    weights: str, port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The words are aligned, as a Cortex-M0+ requires; otherwise `prepare` would have copied them."""
    port: Port = request.getfixturevalue(port_name)
    options = options_for(weights)
    folder = deployed(build_digits(weights, boards=desktop_boards()), options, tmp_path, port.name)
    script = f'import sys\nsys.path[:] = ["{folder}"]\n'
    if weights == "romfs":
        image = folder / "digits.romfs"
        script = MAP + MOUNT.format(image=image, size=image.stat().st_size)
    script += """
import digits, uctypes
where = uctypes.addressof(digits.T)
print(where % 4, uctypes.addressof(digits.W) % 4, where == uctypes.addressof(digits._t))
"""
    assert port.run(script, heap="192K", micropypath=[]).check().stdout == "0 0 True\n"


def test_digits_keep_their_accuracy(unix_port: Port, tmp_path: Path) -> None:
    built = build_digits(boards=desktop_boards())
    folder = deployed(built, options_for("file"), tmp_path, unix_port.name)
    images, labels = digits_data()
    found = infer(unix_port, folder, "digits", as_bytes(built, images), heap="4M")
    floats = build_digits(floats=True).graph
    accuracy = np.mean(np.argmax(found, 1) == labels)
    baseline = np.mean(
        [np.argmax(floats.run({"image": x})["logits"]) == y for x, y in zip(images, labels, strict=True)]
    )
    assert baseline > 0.98
    assert abs(accuracy - baseline) <= 0.005


@pytest.mark.parametrize("port_name", ["unix_port", "wasm_port"])
def test_a_port_without_machine_code_runs_the_bytecode(
    port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port: Port = request.getfixturevalue(port_name)
    built = build_digits()
    folder = deployed(built, Options("digits"), tmp_path, "bytecode")
    assert not (folder / "digits_kernels.mpy").exists()
    if not port.has_viper:  # a SyntaxError there
        (folder / "digits_kernels.py").write_text(built.sources["digits_kernels.py"], encoding="utf-8")
    images = digits_data()[0][:4]
    assert infer(port, folder, "digits", as_bytes(built, images)) == expected(built, images)


def test_machine_code_of_another_processor_falls_back_to_bytecode(unix_port: Port, tmp_path: Path) -> None:
    built = build_digits(boards=desktop_boards())
    folder = deployed(built, options_for("file"), tmp_path, "armhf")
    (folder / "digits_bytecode.py").write_text(built.sources["digits_bytecode.py"], encoding="utf-8")
    images = digits_data()[0][:3]
    assert infer(unix_port, folder, "digits", as_bytes(built, images)) == expected(built, images)


MAP = """
import ffi, uctypes

libc = ffi.open(None)
_open, _mmap = libc.func("i", "open", "si"), libc.func("p", "mmap", "PLiiiL")


def mapped(path, size):
    address = _mmap(None, size, 1, 2, _open(path, 0), 0)
    return uctypes.bytearray_at(address, size)

"""

MOUNT = """
import vfs
vfs.mount(vfs.VfsRom(mapped("{image}", {size})), "/rom")
import sys
sys.path[:] = ["/rom"]
"""


def big_cnn() -> tuple[BuildResult, Options]:
    options = Options("residual", "romfs", desktop_boards())  # type: ignore[arg-type]
    built = build(residual_graph(48), options, {"image": residual_samples()})
    return built, options


@pytest.mark.parametrize("port_name", PORTS)
def test_80_KB_of_weights_in_mapped_flash_leave_a_heap_of_192_KB_free(
    port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port: Port = request.getfixturevalue(port_name)
    built, options = big_cnn()
    assert len(built.program.weight_bytes) > 80_000
    folder = deployed(built, options, tmp_path, port.name)
    image = folder / "residual.romfs"
    before = MAP + MOUNT.format(image=image, size=image.stat().st_size)
    samples = residual_samples(3, seed=5)
    after = COUNT_ALLOCATIONS.format(times=1000) + IN_PLACE
    script = before + INFER.replace('["{folder}"]', '["/rom"]').format(folder=folder, name="residual", after=after)
    (folder / "inputs").write_bytes(as_bytes(built, samples).tobytes())
    result = port.run(script, heap="192K", micropypath=[]).check()
    assert json.loads(result.stdout.splitlines()[-1]) == expected(built, samples)


@pytest.mark.parametrize("port_name", PORTS)
def test_the_bytes_of_a_module_stay_in_a_romfs(port_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    port: Port = request.getfixturevalue(port_name)
    built = build_digits("module", boards=desktop_boards())
    folder = deployed(built, options_for("module"), tmp_path, port.name)
    image = folder / "digits.romfs"
    image.write_bytes(romfs_image({file.name: file.read_bytes() for file in folder.glob("*.mpy")}))
    script = MAP + MOUNT.format(image=image, size=image.stat().st_size)
    script += "import gc\ngc.collect()\nbefore = gc.mem_alloc()\nimport digits\ngc.collect()\n"
    script += "print(gc.mem_alloc() - before, digits.W is digits._w)\n"
    taken, same = port.run(script, heap="192K", micropypath=[]).check().stdout.split()
    assert int(taken) < len(built.program.weight_bytes) and same == "True"


IN_PLACE = """
gc.collect()
assert gc.mem_alloc() < 80000, gc.mem_alloc()
"""


@pytest.mark.parametrize("port_name", PORTS)
def test_a_file_mapped_through_ffi_is_read_in_place(
    port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A partition in memory with the interface of rp2.Flash."""
    port: Port = request.getfixturevalue(port_name)
    partition = Partition("rp2", start=8192)
    options = Options("residual", "partition", desktop_boards(), partition=partition)  # type: ignore[arg-type]
    built = build(residual_graph(48), options, {"image": residual_samples()})
    folder = deployed(built, options, tmp_path, port.name)
    flash = bytes(8192) + built.extra["residual.bpk"]
    flash += b"\xff" * (-len(flash) % 4096)
    (folder / "flash").write_bytes(flash)
    fake = f"""
def Flash(start, len):
    data = mapped("{folder}/flash", {len(flash)})
    return memoryview(data)[start : start + len]
"""
    (folder / "rp2.py").write_text(MAP + fake, encoding="utf-8")
    (folder / "residual.bpk").unlink()
    samples = residual_samples(2, seed=6)
    assert infer(port, folder, "residual", as_bytes(built, samples)) == expected(built, samples)


def test_a_partition_that_is_not_in_memory_is_copied(unix_port: Port, tmp_path: Path) -> None:
    options = Options("digits", "partition", desktop_boards(), partition=Partition("esp32", label="weights"))  # type: ignore[arg-type]
    built = build_digits("partition", boards=desktop_boards(), partition=options.partition)
    folder = deployed(built, options, tmp_path, unix_port.name)
    (folder / "esp32.py").write_text(
        f"""
class Partition:
    TYPE_DATA = 1

    @staticmethod
    def find(kind, label):
        assert kind == 1 and label == "weights"
        return [Partition()]

    def readblocks(self, block, buf):
        with open("{folder}/digits.bpk", "rb") as f:
            f.seek(block * 4096)
            f.readinto(buf)
""",
        encoding="utf-8",
    )
    images = digits_data()[0][:3]
    assert infer(unix_port, folder, "digits", as_bytes(built, images)) == expected(built, images)


def test_weights_of_another_build_are_refused(unix_port: Port, tmp_path: Path) -> None:
    folder = deployed(build_digits(), Options("digits"), tmp_path, "bytecode")
    data = bytearray((folder / "digits.bpk").read_bytes())
    at = data.index(b"build") + 6
    data[at] ^= 1
    (folder / "digits.bpk").write_bytes(data)
    result = unix_port.run(f"import sys\nsys.path[:] = ['{folder}']\nimport digits", micropypath=[])
    assert not result.ok
    assert "belongs to another build" in result.stderr + result.stdout
    (folder / "digits.bpk").unlink()
    result = unix_port.run(f"import sys\nsys.path[:] = ['{folder}']\nimport digits", micropypath=[])
    assert "copy it beside digits.py" in result.stderr + result.stdout


def test_predict_takes_and_gives_numbers(unix_port: Port, tmp_path: Path) -> None:
    built = build_digits(boards=desktop_boards())
    folder = deployed(built, options_for("file"), tmp_path, unix_port.name)
    image, label = digits_data()[0][0], int(digits_data()[1][0])
    script = f"""
import sys, json
sys.path[:] = ["{folder}"]
import digits
print(json.dumps([digits.predict({image.reshape(-1).tolist()}), digits.best()]))
try:
    digits.predict([1.0])
except ValueError as e:
    print(e)
"""
    numbers, error = unix_port.run(script, micropypath=[]).check().stdout.splitlines()
    values, best = json.loads(numbers)
    exact = build_digits(floats=True).graph.run({"image": image})["logits"]
    assert best == label
    np.testing.assert_allclose(values, exact, atol=0.3)
    assert error == "input 0 takes 64 numbers, found 1"


@pytest.mark.parametrize("port_name", PORTS)
@pytest.mark.parametrize("kind", [LstmFloat, GruFloat])
@pytest.mark.parametrize("floats", [False, True])
def test_a_recurrent_model_remembers_until_it_is_reset(
    kind: type[LstmFloat], floats: bool, port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port: Port = request.getfixturevalue(port_name)
    rng = np.random.default_rng(0)
    rows = (4 if kind is LstmFloat else 3) * 6
    w, r, a, b = (rng.standard_normal(s) for s in ((rows, 3), (rows, 6), (rows,), (rows,)))
    layer = kind("cell", ("x",), "y", 1, 6, w, r, a, b, False, False, True)
    graph = Graph("stream", (layer,), {"x": (1, 3), "y": (6,)}, ("x",), ("y",))
    samples = rng.standard_normal((8, 1, 3)).astype(np.float32)
    options = Options("stream", "file", desktop_boards())  # type: ignore[arg-type]
    built = build(graph, options, None if floats else {"x": samples})
    folder = deployed(built, options, tmp_path, "bytecode" if floats else port.name)
    script = f"""
import sys, json
sys.path[:] = ["{folder}"]
import stream
steps = {samples.reshape(8, 3).tolist()}
found = [stream.predict(x) for x in steps]
stream.reset()
print(json.dumps([found, [stream.predict(x) for x in steps]]))
"""
    first, again = json.loads(port.run(script, micropypath=[]).check().stdout)
    assert first == again
    states: dict[str, Any] = {}
    target, source = built.program.outputs[0], built.program.inputs[0]
    for x, y in zip(samples, first, strict=True):
        given = x if floats else quantize(x, source.scale, source.zero)
        raw = built.graph.run({"x": given}, states)["y"]
        expected = raw if floats else dequantize(raw, target.scale, target.zero)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert not np.array_equal(raw, built.graph.run({"x": given})["y"])


@pytest.mark.parametrize("port_name", PORTS)
def test_float32_reads_its_weights_in_place_and_keeps_the_numbers(
    port_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port: Port = request.getfixturevalue(port_name)
    options = Options("digits", "romfs")
    built = build_digits("romfs", floats=True)
    folder = deployed(built, options, tmp_path, "bytecode")
    image = folder / "digits.romfs"
    x = digits_data()[0][3]
    script = MAP + MOUNT.format(image=image, size=image.stat().st_size)
    script += f"""
import digits, gc, json
found = digits.predict({x.reshape(-1).tolist()})
gc.collect()
assert gc.mem_alloc() < 38000, gc.mem_alloc()
print(json.dumps(found))
"""
    found = json.loads(port.run(script, heap="192K", micropypath=[]).check().stdout)
    np.testing.assert_allclose(found, built.graph.run({"image": x})["logits"], rtol=1e-4, atol=1e-4)
