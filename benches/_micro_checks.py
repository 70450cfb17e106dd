"""The microcontroller benchmark's measurements besides times: small heaps, random layers, counted instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from emberlet.micro.builder.build import BuildResult, Options, build  # noqa: E402
from emberlet.micro.builder.kernels.layer import Array  # noqa: E402
from emberlet.micro.builder.quantization.reference import quantize  # noqa: E402
from emberlet.micro.builder.written import write  # noqa: E402

from tools.microcontrollers.models import (  # noqa: E402
    desktop_boards,
    digits_data,
    digits_graph,
    residual_graph,
    residual_samples,
)
from tools.microcontrollers.random_layers import cases, program_of  # noqa: E402
from tools.microcontrollers.running import run_program  # noqa: E402
from tools.micropython import Port, armhf_port, unix_port  # noqa: E402

HEAP = 192
"""KB of the small heap."""

BATCHES, LAYERS = 20, 507

SMALL = """
import ffi, gc, json, sys, uctypes
import vfs

libc = ffi.open(None)
open_file, mmap = libc.func("i", "open", "si"), libc.func("p", "mmap", "PLiiiL")
if IMAGE:
    flash = uctypes.bytearray_at(mmap(None, SIZE, 1, 2, open_file(IMAGE, 0), 0), SIZE)
    vfs.mount(vfs.VfsRom(flash), "/rom")
sys.path[:] = ["/rom"] if IMAGE else [HOME]
import model

gc.collect()
taken = gc.mem_alloc()
with open(INPUTS, "rb") as f:
    data = f.read()
n, found = len(model.input), []
for k in range(len(data) // n):
    model.input[:] = data[k * n : (k + 1) * n]
    model.run()
    found.append(list(model.output))


def heap(times):
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(times):
        model.run()
    after = gc.mem_alloc()
    gc.enable()
    return after - before


print(json.dumps([found, taken, heap(1000)]))
"""


def small_heaps() -> list[dict[str, Any]]:
    """Two models in a heap of 192 KB, on 64-bit and on 32-bit words: digits, with its weights copied from a file, and
    a network with 80 KB of weights that stay in a ROMFS image mapped into memory."""
    images, _ = digits_data()
    rows = []
    for name, graph, weights, samples in (
        ("digits, copied weights", digits_graph(), "file", images[:100]),
        ("residual CNN, weights in a mapped ROMFS", residual_graph(48), "romfs", residual_samples()),
    ):
        options = Options("model", weights, desktop_boards())  # type: ignore[arg-type]
        built = build(graph, options, {graph.inputs[0]: samples})
        with tempfile.TemporaryDirectory() as scratch:
            write(built, options, Path(scratch))
            for arch, port in (("x64", unix_port()), ("armv7emdp", armhf_port())):
                found = _small_heap(built, port, Path(scratch, arch), samples[:4])
                rows.append({"model": name, "words": 64 if arch == "x64" else 32, **found})
    return rows


def _small_heap(built: BuildResult, port: Port, home: Path, samples: Array) -> dict[str, Any]:
    source, output = built.program.inputs[0], built.program.outputs[0].name
    data = [quantize(x, source.scale, source.zero) for x in samples]
    inputs, image = home / "inputs", home / "model.romfs"
    inputs.write_bytes(b"".join(x.tobytes() for x in data))
    mapped = (str(image), image.stat().st_size) if image.exists() else ("", 0)
    head = f"IMAGE, SIZE = {mapped!r}\nHOME, INPUTS = {str(home)!r}, {str(inputs)!r}\n"
    result = port.run(head + SMALL, heap=f"{HEAP}K", micropypath=[], timeout=300).check()
    found, taken, allocated = json.loads(result.stdout)
    expected = [built.graph.run({source.name: x})[output].reshape(-1).tolist() for x in data]
    weights = len(built.program.weight_bytes)
    return {"weights": weights, "taken": taken, "heap": allocated, "exact": found == expected}


def random_layers() -> dict[str, int]:
    """Random layers of every kind in machine code and bytecode, on 64-bit and 32-bit words: their number, and the
    number of outputs that differ from NumPy's integer arithmetic."""
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(BATCHES):
            program, arena, due = program_of(list(cases(seed, LAYERS)))
            for port in (unix_port(), armhf_port()):
                for dialect in ("viper", "bytecode"):
                    out = run_program(port, program, dialect, arena, Path(scratch))
                    wrong += sum(not np.array_equal(out[at : at + y.size], y.reshape(-1)) for at, y in due)
    return {"layers": BATCHES * LAYERS, "wrong": wrong}


def instructions(home: Path, scratch: Path) -> int:
    """Instructions of 32-bit ARM in one inference of the model in `home`, counted one by one in QEMU."""
    root = Path(armhf_port().command[0]).parent.parent
    libraries = root / "usr/lib/arm-linux-gnueabihf"
    interpreter = [f"{libraries}/ld-linux-armhf.so.3", "--library-path", str(libraries), f"{root}/usr/bin/micropython"]
    counts = []
    script, pipe = scratch / "count.py", scratch / "pipe"
    for calls in (1, 2):
        script.write_text(
            f"import sys\nsys.path[:] = [{str(home)!r}]\nimport model\nfor _ in range({calls}): model.run()\n",
            encoding="utf-8",
        )
        os.mkfifo(pipe)
        qemu = ["qemu-arm-static", "-singlestep", "-d", "nochain,exec", "-D", str(pipe), *interpreter]
        with subprocess.Popen(
            ["grep", "-c", "^Trace", str(pipe)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as grep:
            subprocess.run([*qemu, "-X", "heapsize=4M", str(script)], check=True)
            counts.append(int(grep.communicate()[0]))
        pipe.unlink()
    return counts[1] - counts[0]
