"""Coverage-guided fuzzing of loading and running .wasm files: python tests/fuzz/fuzz_wasm.py [-max_total_time=60].

Needs atheris. Any file is refused with an EmberletError or loaded, and then a run ends: with results, or with a
BackendError. Files have no checksum, so that inputs are not wasted on wrong ones.
"""

import json
import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.wgpu_backend.wasm", "emberlet.wgpu_backend.plan")

import emberlet  # noqa: E402
from emberlet import functional as F  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from emberlet.wgpu_backend import plan_file, wasm  # noqa: E402
from emberlet.wgpu_backend.plan import open_ports  # noqa: E402
from emberlet.wgpu_backend.wasm import assembler, file, sections  # noqa: E402

LARGEST_MEMORY = 1 << 26  # bytes; a larger one is loaded and not run: what it holds counts as the file's


def read(data: bytes) -> None:
    try:
        model = file.load(data)
        given = inputs_of(model)
        if given is not None and model.program.instance.nbytes() <= LARGEST_MEMORY:
            model.run(*given)
    except EmberletError:
        return


def inputs_of(model: file.SavedModule) -> list[Any] | None:
    """Zeros for all inputs, at the lowest of open sizes; None where that would be large, or where there are none."""
    if model.counts is None:
        return [bytes(p.dtype.nbytes(p.count)) for p in model.inputs]
    values = model.counts.values(tuple(low for _, low, _ in model.counts.symbols))
    try:
        ports = [open_ports.closed(p, values) for p in model.inputs]
    except ValueError:
        return None
    if any(p.count > 1 << 16 or len(p.shape) > 32 for p in ports):
        return None
    return [emberlet.zeros(p.shape, dtype=p.dtype.name, backend="numpy") for p in ports]


def stripped(whole: bytes) -> bytes:
    """A module without its checksum."""
    found = sections.sections(whole)
    out = whole[:8]
    for number, name, start, end, begin in found:
        if name == file.NAME:
            content = json.loads(whole[start:end])
            content.pop("checksum")
            text = json.dumps(content).encode()
            out += b"\0" + multiplied.varint(1 + len(file.NAME) + len(text))
            out += bytes([len(file.NAME)]) + file.NAME.encode() + text
        elif number or name == file.SIMD:
            out += whole[begin:end]
    return out


def build(n: multiplied.Numbers) -> bytes:
    """A module of many or nested loops, functions, pages, ports or sections."""
    f = assembler.Function("run", ())
    nested = n.below(200)
    for _ in range(nested):
        f.begin_loop()
    if n.below(2):
        f.branch_if(assembler.i32(1), n.below(nested) if nested else 0)
    for _ in range(nested):
        f.end()
    ports = [[f"x{n.below(3)}", "float32", [n.below(3)] * n.below(40), 256, 4 * n.below(4)]] * n.count(4096)
    content = {"version": 1, "threads": n.below(3), "inputs": ports, "outputs": ports[: n.count()], "indices": []}
    text = json.dumps(content).encode() if n.below(8) else b"[" * n.count()
    functions = [("run", f.finish())] + [(f"f{i}", f.finish()) for i in range(n.count(1024))]
    data = [(256, bytes(n.count()))] * n.below(100)
    return assembler.module(functions, ["run"], n.count(1 << 15), [(file.NAME, text)], data)


def seeds() -> dict[str, bytes]:
    """The modules of three small models, with open sizes too."""
    x = emberlet.ones((2, 3), dtype="float32", backend="numpy")
    made = {
        "sum": lambda a: F.exp(a) + 1.0,
        "product": lambda a: F.softmax(a @ a.T, axis=-1),
        "two": lambda a: (a, a.sum()),
    }
    found = {}
    opened = {"a": {0: ("rows", (1, 64)), 1: ("columns", (1, 9))}}
    ways: dict[str, dict[str, Any]] = {"plain": {}, "float16": {"weights": "float16"}, "open": {"dims": opened}}
    for name, model in made.items():
        for way, options in ways.items():
            path = pathlib.Path(harness.scratch()) / "x.wasm"
            plan_file.save(str(path), model, x, **options)
            found[f"{name} {way}"] = stripped(path.read_bytes())
    return found


if __name__ == "__main__":
    wasm.set_seconds(0.2)
    harness.run(read, seeds(), 8192, 128, build=build)
