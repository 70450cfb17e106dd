"""Plans with open sizes compared with plans for fixed sizes: growing caches, texts of any length, open batches.

The two plans of a pair take turns in one process. Writes benches/results/lengths.md, on a real GPU
lengths-NAME.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from _gpu_device import results_page
from _gpu_models import light
from emberlet import codegen
from emberlet.wgpu_backend.compiled import Compiled

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "tests" / "models"
CAPACITY = 2048
TEXT = 512
SECONDS = 3.0  # of calls that are compared


def text_encoder(folder: str) -> Any:
    """A transformer encoder of 4 layers of 64 with positions up to TEXT, weights drawn at random, as a model."""
    source = f"""
import emberlet
from emberlet import functional as F
from emberlet import nn
from emberlet.model import Model


class Encoder(Model):
    INPUTS = (("ids", "int64", ("batch", "length")),)

    def __init__(self, backend=None):
        self.words = nn.Embedding(1000, 64, backend=backend)
        self.positions = nn.Embedding({TEXT}, 64, backend=backend)
        self.encoder = nn.TransformerEncoder(64, 256, 4, 4, dropout=0.0, backend=backend)

    def forward(self, ids):
        x = self.words(ids)
        at = F.arange(ids.shape[1], dtype=emberlet.int64, backend=ids.backend)
        x = self.encoder(x + self.positions(at))
        return F.mean(x, axis=1)
"""
    path = Path(folder) / "encoder.py"
    path.write_text(source, encoding="utf-8")
    sys.path.insert(0, folder)
    import encoder  # type: ignore[import-not-found]

    model = encoder.Encoder()
    for param in model.params():
        param.val()  # drawn once, for all of its copies
    return model


def in_turns(calls: Iterable[Callable[[], Any]], rounds: int) -> list[float]:
    """The fewest milliseconds of each call over at least `rounds` rounds, and as many as fit into SECONDS. Every other
    round runs the calls in reverse order."""
    calls = list(calls)
    taken = [float("inf")] * len(calls)
    for call in calls:
        call()
    end, done = time.perf_counter() + SECONDS, 0
    while done < rounds or (time.perf_counter() < end and done < 100 * rounds):
        done += 1
        for i in range(len(calls)) if done % 2 else reversed(range(len(calls))):
            start = time.perf_counter()
            calls[i]()
            taken[i] = min(taken[i], 1e3 * (time.perf_counter() - start))
    return taken


def made(compiled: Compiled) -> tuple[int, int, int]:
    """The numbers of plans, buffers and pipelines in memory."""
    device = compiled.backend.device
    return len(compiled._open) + len(compiled._programs), device.created_buffers, len(device.pipelines)


def farthest(got: Any, wanted: Any) -> float:
    """The largest difference between two results."""
    pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
    return max(float(np.abs(np.asarray(g) - np.asarray(w)).max()) for g, w in pairs)


def growing_cache(rounds: int, tokens: int) -> list[str]:
    """Decode with the llama of tests/models, one token at a time."""
    model = codegen.load(str(MODELS / "llama" / "model.onnx"), "numpy")
    rng = np.random.default_rng(0)

    def given(past: int) -> list[np.ndarray]:
        return [rng.integers(0, 80, (1, 1))] + [
            rng.standard_normal((1, 4, past, 4)).astype(np.float32) for _ in range(4)
        ]

    opened = model.compile(*given(3), backend="wgpu", dims={"past": CAPACITY})
    caches = given(1)[1:]
    opened(rng.integers(0, 80, (1, 1)), *caches)
    before = made(opened)
    start = time.perf_counter()
    worst = 0.0
    for token in range(tokens):
        ids = rng.integers(0, 80, (1, 1))
        found = opened(ids, *caches)
        if token % 256 == 0:
            worst = max(worst, farthest(found, model(ids, *caches)))
        caches = [np.asarray(c) for c in found[1:]]
    taken = 1e3 * (time.perf_counter() - start) / tokens
    after = made(opened)
    lines = [
        "## A growing cache\n",
        f"The two-layer llama of tests/models, {tokens} tokens one after the other on one plan for 1 to {CAPACITY} "
        f"past positions, the caches on the host between steps: {taken:.1f} ms a token; plans, buffers and pipelines "
        f"before {before} and after {after}; largest difference from NumPy {worst:.1e}.\n",
        "| past | a plan for this size alone, ms | the plan for all sizes, ms | ratio |",
        "|---:|---:|---:|---:|",
    ]
    for past in (16, 128, 512, 1024, 2040):
        inputs = given(past)
        alone = model.compile(*inputs, backend="wgpu")
        one, all_ = in_turns([lambda: alone(*inputs), lambda: opened(*inputs)], rounds)  # noqa: B023
        lines.append(f"| {past} | {one:.2f} | {all_:.2f} | {all_ / one:.2f} |")
    few = 6
    start = time.perf_counter()
    for past in range(20, 20 + few):
        model.compile(*given(past), backend="wgpu")(*given(past))
    each = 1e3 * (time.perf_counter() - start) / few
    lines.append(f"\nA plan made anew for each size takes {each:.0f} ms a token.\n")
    return lines


def texts(rounds: int) -> list[str]:
    """Run a text encoder at many lengths."""
    with tempfile.TemporaryDirectory() as folder:
        model = text_encoder(folder)
    rng = np.random.default_rng(1)
    on_numpy = model.fork("numpy")
    opened = model.compile(rng.integers(0, 1000, (1, 8)), backend="wgpu", dims={"length": TEXT})
    opened(rng.integers(0, 1000, (1, 8)))
    before = made(opened)
    worst = 0.0
    lengths = [1, TEXT, *(int(n) for n in rng.integers(1, TEXT + 1, 60))]
    for length in lengths:
        ids = rng.integers(0, 1000, (1, length))
        worst = max(worst, farthest(opened(ids), on_numpy(ids)))
    lines = [
        "## Texts of any length\n",
        f"A transformer encoder of 4 layers of 64 and a mean over positions, {len(lengths)} lengths from 1 to {TEXT} "
        f"on one plan: plans, buffers and pipelines before {before} and after {made(opened)}; largest difference from "
        f"NumPy {worst:.1e}.\n",
        "| length | a plan for this size alone, ms | the plan for all sizes, ms | ratio |",
        "|---:|---:|---:|---:|",
    ]
    for length in (8, 64, 256, 512):
        ids = rng.integers(0, 1000, (1, length))
        alone = model.compile(ids, backend="wgpu")
        one, all_ = in_turns([lambda: alone(ids), lambda: opened(ids)], rounds)  # noqa: B023
        lines.append(f"| {length} | {one:.2f} | {all_:.2f} | {all_ / one:.2f} |")
    return [*lines, ""]


def open_batch(path: Path) -> Any:
    """The model of a file, with the first axis of its input open."""
    model = onnx.load(str(path))
    weights = {w.name for w in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return codegen.load(model, "numpy")


def batches(name: str, path: Path, shape: tuple[int, ...], sizes: tuple[int, ...], rounds: int) -> list[str]:
    """Run a network with an open batch."""
    model = open_batch(path)
    rng = np.random.default_rng(2)
    pictures = {n: rng.standard_normal((n, *shape)).astype(np.float32) for n in sizes}
    opened = model.compile(pictures[sizes[0]], backend="wgpu", dims={"batch": 16})
    lines = []
    for n, x in pictures.items():
        alone = model.compile(x, backend="wgpu")
        worst = farthest(opened(x), model(x))
        one, all_ = in_turns([lambda: alone(x), lambda: opened(x)], rounds)  # noqa: B023
        kept = "" if len(opened._open) == 1 and not opened._programs else " (more than one plan)"
        lines.append(f"| {name} | {n} | {one:.2f} | {all_:.2f} | {all_ / one:.2f} | {worst:.1e}{kept} |")
    return lines


def eager(shapes: int) -> list[str]:
    """Compute functions of two axes at once, each in many shapes."""
    from emberlet import functional as F
    from emberlet.functional.arrays import asarray
    from emberlet.wgpu_backend import WgpuBackend

    rng = np.random.default_rng(3)
    weight = rng.standard_normal((64, 32)).astype(np.float32)
    functions: dict[str, Callable[[Any], Any]] = {
        "x * 2.5 + 1": lambda x: x * 2.5 + 1.0,
        "softmax": lambda x: F.softmax(x, axis=1),
        "sum": lambda x: x.sum(0),
        "relu(x @ w + b)": lambda x: F.relu(x @ asarray(weight, device=x.backend) + 0.5),
        "sigmoid(x) * x": lambda x: F.sigmoid(x) * x,
        "permute(x) * reshape(x)": lambda x: F.permute_dims(x, (1, 0)) * x.reshape((64, -1)),
    }
    lines = [
        "## Computed at once\n",
        f"Functions of (n, 64), not compiled, for {shapes} n in turns with one n that recurs: the pipelines that they "
        "compile, the median of calls from the third n on.\n",
        "| function | pipelines | first n, ms | second | later ones | the one that recurs | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    recurs = shapes // 2 + 65
    for name, function in functions.items():
        backend = WgpuBackend()
        before = len(backend.device.pipelines)
        taken: dict[bool, list[float]] = {False: [], True: []}
        for n in (int(n) for n in rng.permutation(np.arange(65, shapes + 66)) if n != recurs):
            for rows in (n, recurs) if len(taken[False]) > 1 else (n,):
                x = asarray(rng.standard_normal((rows, 64)).astype(np.float32), device=backend)
                start = time.perf_counter()
                np.asarray(function(x))
                taken[rows == recurs].append(1e3 * (time.perf_counter() - start))
        made = len(backend.device.pipelines) - before - 1  # but for that of the one that recurs
        later, again = np.median(taken[False][2:]), np.median(taken[True][30:])
        first, second = taken[False][:2]
        row = f"{made} | {first:.1f} | {second:.1f} | {later:.2f} | {again:.2f} | {later / again:.2f}"
        lines.append(f"| {name} | {row} |")
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=CAPACITY - 1)
    parser.add_argument("--shapes", type=int, default=300, help="of each function that is not compiled")
    options = parser.parse_args()
    from emberlet.wgpu_backend.device import open_device

    device = open_device()
    lines = [
        "# Open sizes\n",
        "`python3 dev.py bench lengths`. Plans that leave sizes open beside plans made for one size, the least of "
        f"{options.rounds} calls or more, in turns in one process, inputs and results on the host. "
        f"{device.raw.adapter_info['device']}, Python {platform.python_version()}. On a machine with other work only "
        "the ratios say something.\n",
        *growing_cache(options.rounds, options.tokens),
        *texts(options.rounds),
        *eager(options.shapes),
        "## Open batches\n",
        "| model | batch | a plan for this size alone, ms | the plan for batches of 1 to 16, ms | ratio | difference |",
        "|---|---:|---:|---:|---:|---:|",
        *batches("digits", ROOT / "examples" / "digits" / "digits.onnx", (1, 8, 8), (1, 4, 16), options.rounds),
        *batches("squeezenet", light("squeezenet"), (3, 224, 224), (1, 2), options.rounds),
    ]
    shared = ROOT.parent / "shared" / "models" / "mnist.onnx"
    if shared.exists():
        lines += batches("mnist", shared, (1, 28, 28), (1,), options.rounds)
    page = results_page("lengths", device)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
