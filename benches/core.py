"""The core: plain Python beside hand-written loops, NumPy networks beside onnxruntime and onnx.reference, heaps.

The best of many calls counts. Plain Python and its loops take turns in one process. Each network runs as in cpu.py,
with one thread and with two, on the kernels that OpenBLAS chooses for the processor and, if it is set, on those that
OPENBLAS_CORETYPE names. Heaps are measured on MicroPython's Unix port. Writes benches/results/core.md.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import runpy
import sys
import time
from array import array
from collections.abc import Callable
from operator import add, mul
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "core.md"


def in_turns(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The best time of each call in milliseconds, the calls taking turns for about `seconds`."""
    best = dict.fromkeys(calls, math.inf)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: t * 1e3 for name, t in best.items()}


# -- plain Python


def hand_written(rng: np.random.Generator) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Name -> (emberlet on its python backend, the fastest known loop over `array`)."""
    import emberlet
    from emberlet import functional as F

    def numbers(*shape: int) -> tuple[Any, array[float]]:
        values = array("f", rng.random(math.prod(shape), np.float32).tobytes())
        return emberlet.asarray(values, backend="python").reshape(shape), values

    a, a_ = numbers(64, 64)
    b, b_ = numbers(64, 64)
    image, image_ = numbers(1, 8, 16, 16)
    taps, taps_ = numbers(16, 8, 3, 3)
    wide, wide_ = numbers(100, 1000)
    row, row_ = numbers(1000)

    def matmul() -> array[float]:
        left, right = a_.tolist(), b_.tolist()
        columns = [right[j::64] for j in range(64)]
        rows = [left[i : i + 64] for i in range(0, 4096, 64)]
        return array("f", [sum(map(mul, r, c)) for r in rows for c in columns])

    def conv() -> array[float]:
        # The kernel's taps as shifted rows, zipped into windows; 14×14 outputs of 16 filters.
        x, w = image_.tolist(), taps_.tolist()
        starts = [c * 256 + dy * 16 + dx for c in range(8) for dy in range(3) for dx in range(3)]
        seen = [[v for y in range(start, start + 224, 16) for v in x[y : y + 14]] for start in starts]
        windows = list(zip(*seen, strict=True))
        out: list[float] = []
        for m in range(16):
            f = w[m * 72 : m * 72 + 72]
            out += [sum(map(mul, f, window)) for window in windows]
        return array("f", out)

    def reduction() -> array[float]:
        return array("f", [sum(wide_[i : i + 1000]) for i in range(0, 100000, 1000)])

    def broadcast_add() -> array[float]:
        out: list[float] = []
        for i in range(0, 100000, 1000):
            out += map(add, wide_[i : i + 1000], row_)
        return array("f", out)

    def softmax() -> array[float]:
        out: list[float] = []
        exp = math.exp
        for i in range(0, 100000, 1000):
            x = wide_[i : i + 1000]
            peak = max(x)
            e = [exp(v - peak) for v in x]
            total = sum(e)
            out += [v / total for v in e]
        return array("f", out)

    return {
        "matmul 64×64×64": (lambda: a @ b, matmul),
        "conv2d 8→16, 3×3, 16×16": (lambda: F.conv2d(image, taps), conv),
        "sum of rows, 100×1000": (lambda: wide.sum(axis=1), reduction),
        "broadcast add, 100×1000 + 1000": (lambda: wide + row, broadcast_add),
        "softmax of rows, 100×1000": (lambda: F.softmax(wide, 1), softmax),
    }


def python_table(seconds: float) -> list[str]:
    lines = ["| plain Python | emberlet ms | hand-written ms | ratio |", "|---|---|---|---|"]
    for name, (ours, hand) in hand_written(np.random.default_rng(0)).items():
        np.testing.assert_allclose(np.asarray(ours()).ravel(), np.asarray(hand()), rtol=1e-4)
        best = in_turns({"ours": ours, "hand": hand}, seconds)
        ratio = best["ours"] / best["hand"]
        lines.append(f"| {name} | {best['ours']:.2f} | {best['hand']:.2f} | {ratio:.2f} |")
        print(lines[-1])
    return lines


# -- NumPy


def network(name: str) -> Any:
    """One of onnx's light models as an onnx.ModelProto, with random weights instead of constant fills."""
    import onnx
    from onnx import helper, numpy_helper

    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.load(path)
    graph, rng = model.graph, np.random.default_rng(0)
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    kept = []
    for node in graph.node:
        if node.op_type not in ("ConstantOfShape", "ConstantFill"):
            kept.append(node)
            continue
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        shape = tuple(int(n) for n in (constants[node.input[0]] if node.input else options["shape"]))
        scale = 1.4 / math.sqrt(max(1, math.prod(shape[1:]))) if len(shape) > 1 else 0.1
        constants[node.output[0]] = (rng.standard_normal(shape) * scale).astype(np.float32)
    for node in kept:
        if node.op_type == "BatchNormalization":
            constants[node.input[1]] = np.ones_like(constants[node.input[1]])
            constants[node.input[4]] = np.abs(constants[node.input[4]]) + 1
    used = {name for node in kept for name in node.input}
    inputs = [i for i in graph.input if i.name not in constants]
    for field, values in (
        (graph.node, kept),
        (graph.input, inputs),
        (graph.initializer, [numpy_helper.from_array(v, n) for n, v in constants.items() if n in used]),
    ):
        del field[:]
        field.extend(values)
    return model


def numpy_table(seconds: float, reference: bool) -> list[str]:
    measure = runpy.run_path(str(ROOT / "benches" / "cpu.py"))["measure"]
    free = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    asked = os.environ.get("OPENBLAS_CORETYPE")
    lines = [
        "| NumPy | threads | OpenBLAS kernels | emberlet ms | onnxruntime ms | ratio | onnx.reference ms | faster |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("squeezenet", "resnet50"):
        slow = reference_time(network(name)) if reference else math.nan
        for kernels in (asked, None) if asked else (None,):
            for threads in (1, 2):
                environment = dict(free, OPENBLAS_NUM_THREADS=str(threads))
                if kernels:
                    environment["OPENBLAS_CORETYPE"] = kernels
                found = measure(name, seconds, 3, environment)
                ours, theirs = found["emberlet"]["ms"], found["onnxruntime"]["ms"]
                lines.append(
                    f"| {name} | {threads} | {kernels or 'its own choice'} | {ours:.1f} | {theirs:.1f} "
                    f"| {ours / theirs:.2f} | {slow:.0f} | {slow / ours:.0f}× |"
                )
                print(lines[-1], flush=True)
    return lines


def reference_time(model: Any) -> float:
    """Milliseconds of one call of onnx.reference."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    start = time.perf_counter()
    evaluator.run(None, {model.graph.input[0].name: image})
    return (time.perf_counter() - start) * 1e3


# -- MicroPython


HEAP = """
import gc
gc.collect()
before = gc.mem_alloc()
import emberlet
gc.collect()
print("import", gc.mem_alloc() - before)
"""


def heap_table() -> list[str]:
    from tools.layout import device_tree
    from tools.micropython import unix_port

    said = unix_port().run(HEAP, micropypath=[device_tree()]).check().stdout.split()
    print("heap of `import emberlet`:", said[1], "bytes")
    return [f"`import emberlet` takes {int(said[1])} bytes of heap on MicroPython's 64-bit Unix port."]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each pair, and of each runtime a round")
    parser.add_argument("--no-reference", action="store_true", help="leave out onnx.reference, which takes a minute")
    options = parser.parse_args()
    parts = [python_table(options.seconds), numpy_table(options.seconds, not options.no_reference), heap_table()]
    about = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}."
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        "# The core\n\n" + about + "\n\n" + "\n\n".join("\n".join(p) for p in parts) + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
