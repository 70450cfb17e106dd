"""Microcontrollers: int8 kernels in MicroPython compared with float32 in bytecode, whole models, memory, exactness.

Everything runs on MicroPython's Unix port. The variants of a workload take turns in one process, and the best processor
time of many calls counts. Integer results are compared with NumPy's byte by byte, on x86-64 and on 32-bit ARM
(emulated, not timed). Writes benches/results/micro.md and micro.json. `--boards` alone counts instructions on emulated
boards and writes micro_boards.md. Results that take minutes (`--layers`, `--instructions`) are kept between runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benches"), str(ROOT)]

import _micro_boards  # noqa: E402
from _micro_checks import instructions, random_layers, small_heaps  # noqa: E402
from _micro_report import MARKS, VARIANTS, ratio, text  # noqa: E402
from emberlet.micro.builder.boards import BOARDS, Board  # noqa: E402
from emberlet.micro.builder.build import BuildResult, Options, build  # noqa: E402
from emberlet.micro.builder.from_ir import read_graph  # noqa: E402
from emberlet.micro.builder.graph import Graph  # noqa: E402
from emberlet.micro.builder.kernels.depthwise import DepthwiseFloat  # noqa: E402
from emberlet.micro.builder.kernels.dot import DotFloat  # noqa: E402
from emberlet.micro.builder.kernels.layer import Array, Layer  # noqa: E402
from emberlet.micro.builder.kernels.recurrent_float import GruFloat, LstmFloat  # noqa: E402
from emberlet.micro.builder.kernels.window import Window  # noqa: E402
from emberlet.micro.builder.quantization.reference import quantize  # noqa: E402
from emberlet.micro.builder.written import write  # noqa: E402

from tools.micropython import Port, armhf_port, unix_port  # noqa: E402

RESULTS = ROOT / "benches" / "results"


@dataclass(frozen=True)
class Work:
    """A model to be timed: its float32 graph and samples (count, *input)."""

    name: str
    graph: Graph
    samples: Array


def one_layer(name: str, layer: Layer, shape: tuple[int, ...], out: tuple[int, ...]) -> Work:
    samples = np.random.default_rng(1).standard_normal((16, *shape)).astype(np.float32)
    return Work(name, Graph("model", (layer,), {"x": shape, "y": out}, ("x",), ("y",)), samples)


def works() -> list[Work]:
    """Single layers of typical sizes, and the digit recognizer."""
    rng = np.random.default_rng(0)

    def dot(name: str, shape: tuple[int, ...], n: int, k: int) -> Work:
        window = Window((k, k), pads=(k // 2,) * 4) if len(shape) == 3 else Window((1, 1))
        weights = rng.standard_normal((n, *window.kernel, shape[-1])) / (k * k * shape[-1]) ** 0.5
        layer = DotFloat("layer", ("x",), "y", shape, window, 1, weights, rng.standard_normal(n), 0.0, inf)
        return one_layer(name, layer, shape, (*shape[:-1], n))

    deep = rng.standard_normal((64, 3, 3)) / 3
    padded = Window((3, 3), pads=(1, 1, 1, 1))
    shape = (16, 16, 64)
    depthwise = DepthwiseFloat("layer", ("x",), "y", shape, padded, deep, rng.standard_normal(64), 0.0, inf)
    made = [
        dot("dense 256 → 128", (256,), 128, 1),
        dot("conv 3×3, 64 → 64, 8×8", (8, 8, 64), 64, 3),
        one_layer("depthwise 3×3, 64, 16×16", depthwise, shape, shape),
        dot("conv 1×1, 64 → 64, 8×8", (8, 8, 64), 64, 1),
        dot("conv 3×3, 1 → 8, 28×28", (28, 28, 1), 8, 3),
    ]
    small = DepthwiseFloat("layer", ("x",), "y", (8, 8, 16), padded, deep[:16], rng.standard_normal(16), 0.0, inf)
    made.append(one_layer("depthwise 3×3, 16, 8×8", small, (8, 8, 16), (8, 8, 16)))
    for kind, gates in ((LstmFloat, 4), (GruFloat, 3)):
        rows = gates * 32
        parts = [rng.standard_normal(s) * 0.3 for s in ((rows, 16), (rows, 32), (rows,), (rows,))]
        layer = kind("layer", ("x",), "y", 10, 32, *parts, False, False, False)  # type: ignore[arg-type]
        made.append(one_layer(f"{kind.__name__[:-5].upper()} 16 → 32, 10 steps", layer, (10, 16), (32,)))
    images, _ = digits()
    return [*made, Work("digits", read_graph(ROOT / "examples/digits/digits.onnx", "model"), images[:100])]


def digits() -> tuple[Array, Array]:
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as data:
        return (data["images"] / 16).astype(np.float32)[..., None], data["labels"]


def desktop(arch: str) -> Board:
    """A board that represents a Unix port."""
    return replace(BOARDS["rp2"], name=arch, arch=arch)


@dataclass
class Prepared:
    """A workload that was built. folder: has a folder for each variant."""

    work: Work
    built: BuildResult
    floats: BuildResult
    folder: Path

    @property
    def inputs(self) -> Array:
        port = self.built.program.inputs[0]
        return quantize(self.work.samples[:4], port.scale, port.zero).reshape(4, -1)

    def expected(self) -> list[list[int]]:
        name, output = self.built.graph.inputs[0], self.built.graph.outputs[0]
        return [self.built.graph.run({name: x})[output].reshape(-1).tolist() for x in self.inputs]


def prepare(work: Work, folder: Path) -> Prepared:
    """Build every variant of a workload, each in its own folder."""
    name = work.graph.inputs[0]
    options = Options("model", "module", [desktop("x64"), desktop("armv7emdp")])
    built = build(work.graph, options, {name: work.samples})
    floats = build(work.graph, Options("model", "module"))
    write(built, options, folder / "int8")
    write(floats, Options("model", "module"), folder / "floats")
    homes = {
        "viper, .mpy": (folder / "int8" / "x64", ("model.mpy", "model_kernels.mpy", "model_weights.mpy")),
        "viper, .py": (folder / "int8", ("model.py", "model_kernels.py", "model_weights.py")),
        "bytecode": (folder / "int8", ("model.py", "model_bytecode.py", "model_weights.py")),
        "float32": (folder / "floats" / "bytecode", ("model.mpy", "model_kernels.mpy", "model_weights.mpy")),
        "armhf, .mpy": (folder / "int8" / "armv7emdp", ("model.mpy", "model_kernels.mpy", "model_weights.mpy")),
    }
    for variant, (source, files) in homes.items():
        home = folder / place(variant)
        home.mkdir()
        for file in files:
            (home / file).write_bytes((source / file).read_bytes())
    return Prepared(work, built, floats, folder)


def place(variant: str) -> str:
    return variant.replace(", .", "_").replace(" ", "_")


SCRIPT = """
import gc, json, sys, time

models = {}
for name, home in HOMES:
    sys.path[:] = [home]
    import model
    models[name] = model
    for key in ("model", "model_kernels", "model_bytecode", "model_weights"):
        sys.modules.pop(key, None)

with open(INPUTS, "rb") as f:
    data = f.read()
found, allocated, best = {}, {}, {}
for name, model in models.items():
    if name == "float32":
        continue
    n = len(model.input)
    outs = []
    for k in range(len(data) // n):
        model.input[:] = data[k * n : (k + 1) * n]
        model.run()
        outs.append(list(model.output))
    found[name] = outs


def heap(model, times):
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    for _ in range(times):
        model.run()
    after = gc.mem_alloc()
    gc.enable()
    return after - before


def turn(model, times):
    gc.collect()
    run = model.run
    start = time.clock()
    for _ in range(times):
        run()
    return (time.clock() - start) * 1e6 / times


for name, model in models.items():
    if name != "float32":
        allocated[name] = heap(model, COUNT // 100 if name == "bytecode" else COUNT)
# The clock counts milliseconds: a turn takes hundreds of them.
calls = {}
for name, model in models.items():
    start = time.ticks_us()
    model.run()
    calls[name] = 1 + int(TURN / max(1, time.ticks_diff(time.ticks_us(), start)))
for _ in range(ROUNDS):
    for name, model in models.items():
        best[name] = min(best.get(name, 1e12), turn(model, calls[name]))
print(json.dumps([found, allocated, best, {name: len(model.A) for name, model in models.items()}]))
"""


def run(port: Port, prepared: Prepared, variants: list[str], rounds: int, count: int, turn: int) -> list[Any]:
    """By variant: outputs, heap bytes taken by `count` inferences, microseconds per inference, elements of the arena.

    count: inferences in machine code; bytecode runs a hundredth of them. turn: the least microseconds of a turn.
    """
    inputs = prepared.folder / "inputs"
    inputs.write_bytes(prepared.inputs.tobytes())
    homes = [(v, str(prepared.folder / place(v))) for v in variants]
    head = f"HOMES = {homes!r}\nINPUTS = {str(inputs)!r}\nROUNDS = {rounds}\nCOUNT = {count}\nTURN = {turn}\n"
    result = port.run(head + SCRIPT, heap="48M", micropypath=[], timeout=900).check()
    return list(json.loads(result.stdout))


PLAIN = """
import gc, time
from array import array

w, x = array("f", [0.5] * 32768), array("f", [1.5] * 256)


def dense(w, x, n, k):
    p = 0
    for j in range(n):
        s = 0.0
        for i in range(k):
            s += w[p + i] * x[i]
        p += k
    return s


best = 1e12
for _ in range(9):
    gc.collect()
    start = time.clock()
    for _ in range(100):
        dense(w, x, 128, 256)
    best = min(best, time.clock() - start)
print(best * 1e4)
"""


def measure(rounds: int, count: bool) -> dict[str, Any]:
    """Measure everything. count: whether to count instructions too."""
    x64, armhf = unix_port(), armhf_port()
    out: dict[str, Any] = {"works": {}}
    out["plain loop"] = float(x64.run(PLAIN, heap="48M", micropypath=[]).check().stdout) * 1000 / 32768
    with tempfile.TemporaryDirectory() as scratch:
        for k, work in enumerate(works()):
            prepared = prepare(work, Path(scratch, str(k)))
            found, allocated, best, arenas = run(x64, prepared, list(VARIANTS), rounds, 1000, 300_000)
            arm, arm_allocated, _, _ = run(armhf, prepared, ["armhf, .mpy", "viper, .py", "bytecode"], 1, 1000, 0)
            expected = prepared.expected()
            c = prepared.built.costs["x64"]
            flash = sum(file.stat().st_size for file in (prepared.folder / place("viper, .mpy")).iterdir())
            out["works"][work.name] = {
                "macs": prepared.built.program.macs,
                "microseconds": best,
                "exact": all(y == expected for y in [*found.values(), *arm.values()]),
                "heap": max([*allocated.values(), *arm_allocated.values()]),
                "arena": c.arena,
                "flash": c.flash,
                "as predicted": (c.arena, c.flash) == (arenas["viper, .mpy"], flash),
                "float arena": prepared.floats.costs[""].arena,
                "weights": c.weights,
                "difference": prepared.built.agreement.rms if prepared.built.agreement else 0.0,
            }
            if count and prepared.built.program.macs < 100_000:
                out["works"][work.name]["instructions"] = {
                    variant: instructions(prepared.folder / place(variant), prepared.folder)
                    / prepared.built.program.macs
                    for variant in ("armhf, .mpy", "viper, .py")
                }
            print(f"{work.name}: {best}", flush=True)
        out["accuracy"] = accuracy()
    out["small heaps"] = small_heaps()
    return out


def accuracy() -> dict[str, float]:
    """The accuracy of the digit recognizer on the held-out images, calibrated with the first 100 of them."""
    images, labels = digits()
    graph = read_graph(ROOT / "examples/digits/digits.onnx", "model")
    built = build(graph, Options("model"), {"image": images[:100]})
    port = built.program.inputs[0]
    right = {"int8": 0, "float32": 0}
    for x, label in zip(images, labels, strict=True):
        q = built.graph.run({"image": quantize(x, port.scale, port.zero)})["logits"]
        right["int8"] += int(q.argmax() == label)
        right["float32"] += int(graph.run({"image": x})["logits"].argmax() == label)
    return {name: n / len(labels) for name, n in right.items()}


def keep(out: dict[str, Any], old: dict[str, Any]) -> None:
    """Copy an earlier run's results for what this run did not measure."""
    if "layers" in old:
        out.setdefault("layers", old["layers"])
    for name, entry in old["works"].items():
        if "instructions" in entry and name in out["works"]:
            out["works"][name].setdefault("instructions", entry["instructions"])


def misses(out: dict[str, Any]) -> list[str]:
    """The requirements that the results do not meet."""
    found = [name for name, mark in MARKS.items() if ratio(out["works"][name]) < mark]
    for name, entry in out["works"].items():
        if not entry["exact"] or entry["heap"] or not entry["as predicted"]:
            found.append(name)
    found += [e["model"] for e in out["small heaps"] if not e["exact"] or e["heap"]]
    if abs(out["accuracy"]["int8"] - out["accuracy"]["float32"]) > 0.005:
        found.append("accuracy")
    return found + (["random layers"] if out.get("layers", {}).get("wrong") else [])


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev.py bench micro", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of every variant (default: 7)")
    parser.add_argument("--layers", action="store_true", help="10,000 random layers in each too: minutes")
    parser.add_argument("--instructions", action="store_true", help="count the instructions of 32-bit ARM: minutes")
    parser.add_argument("--check", action="store_true", help="fail where a mark is missed")
    parser.add_argument(
        "--boards",
        nargs="*",
        choices=[*_micro_boards.PARTS, *_micro_boards.DRAWN],
        help="only whole networks on emulated boards, or parts of them; layers: 10,000 random ones; random: 500 random "
        "networks of each kind",
    )
    options = parser.parse_args()
    missed = _micro_boards.run(options.layers, options.boards or ())
    if options.boards is not None:
        return _verdict(missed, options.check)
    out = measure(options.rounds, options.instructions)
    if options.layers:
        out["layers"] = random_layers()
    if (RESULTS / "micro.json").exists():
        keep(out, json.loads((RESULTS / "micro.json").read_text(encoding="utf-8")))
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "micro.md").write_text(text(out), encoding="utf-8")
    (RESULTS / "micro.json").write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
    print(text(out))
    return _verdict(missed + misses(out), options.check)


def _verdict(missed: list[str], check: bool) -> int:
    if missed and check:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
