"""The GPU: matrix products and whole models beside tinygrad's WebGPU, dispatches, and the host's cost of a call.

Both run on the same adapter in the same minutes, in turns, the best of many calls counts, and every call ends with the
result on the host. Writes benches/results/gpu.md. `--peer` is what the tinygrad process itself runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "gpu.md"
SIZES = (256, 512, 1024)
ROUNDS = 3


def models() -> dict[str, Path]:
    """The models there are, by name: SqueezeNet, and mnist.onnx where the shared folder is."""
    found = {"squeezenet": squeezenet()}
    shared = ROOT.parent / "shared" / "models" / "mnist.onnx"
    if shared.is_file():
        found = {"mnist": shared, **found}
    return found


def squeezenet() -> Path:
    """onnx's light SqueezeNet, which has constants for weights (a compiler may fold those away), with random ones."""
    path = ROOT / ".cache" / "bench" / "squeezenet.onnx"
    if path.is_file():
        return path
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
    model = onnx.load(light)
    random = np.random.default_rng(0)
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(d) for d in shapes[node.input[0]]]
        scale = (2 / max(1, int(np.prod(shape[1:])))) ** 0.5
        weights = (random.standard_normal(shape) * scale).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, node.output[0]))
    held = [t for t in model.graph.initializer if not t.name.endswith("__SHAPE")]
    given = [i for i in model.graph.input if not i.name.endswith("__SHAPE")]
    del model.graph.input[:]
    model.graph.input.extend(given)
    del model.graph.initializer[:]
    model.graph.initializer.extend(held)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def model_input(path: Path) -> tuple[str, Any]:
    """The name of a model's one input, and a value for it."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    held = {i.name for i in graph.initializer}
    given = next(i for i in graph.input if i.name not in held)
    shape = [d.dim_value or 1 for d in given.type.tensor_type.shape.dim]
    return given.name, np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def best(call: Callable[[], Any], seconds: float = 1.5, at_least: int = 4) -> float:
    """The shortest of as many calls as fit into `seconds`."""
    shortest = float("inf")
    end = time.perf_counter() + seconds
    count = 0
    while count < at_least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
        count += 1
    return shortest


def matrices(n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(n)
    return random.standard_normal((n, n)).astype(np.float32), random.standard_normal((n, n)).astype(np.float32)


# -- emberlet ---------------------------------------------------------------------------------------------------------


def own_calls() -> tuple[dict[str, Callable[[], Any]], dict[str, dict[str, int]], str]:
    """Per work a call; per model its plan's summary; the adapter's name."""
    import onnx
    from emberlet import dtypes
    from emberlet.backend import get_backend
    from emberlet.codegen import load
    from emberlet.tensor import Tensor
    from emberlet.wgpu_backend.compiled import compile

    backend: Any = get_backend("wgpu")
    host = get_backend("numpy")

    def tensor(array: Any) -> Tensor:
        return host.from_bytes(array.tobytes(), dtypes.float32, array.shape)

    calls: dict[str, Callable[[], Any]] = {}
    plans = {}
    for n in SIZES:
        a, b = (tensor(x) for x in matrices(n))
        product = compile(lambda a, b: a @ b, a, b, backend=backend)
        calls[f"matmul {n}"] = lambda f=product, a=a, b=b: f(a, b)  # type: ignore[misc]
    for name, path in models().items():
        compiled = compile(load(onnx.load(path), backend, name=name), backend=backend)
        x = tensor(model_input(path)[1])
        compiled(x)
        plans[name] = compiled.plan().summary()
        calls[name] = lambda f=compiled, x=x: f(x)  # type: ignore[misc]
    info = backend.device.raw.adapter_info
    return calls, plans, f"{info['device']}, {info['description']}"


def host_cost(dispatches: int) -> tuple[float, float]:
    """Seconds of a call of a compiled chain of tiny kernels, and of hand-written wgpu-py code that submits the same."""
    from emberlet import dtypes
    from emberlet import functional as F
    from emberlet.backend import get_backend
    from emberlet.wgpu_backend.compiled import compile

    backend: Any = get_backend("wgpu")
    x = get_backend("numpy").from_list([1.0] * 16, dtypes.float32, (4, 4))

    def chain(x: Any) -> Any:
        for _ in range(dispatches):
            x = F.matmul(x, x)
        return x

    compiled = compile(chain, x, backend=backend)
    plan = compiled.plan()
    assert len(plan.steps) == dispatches
    device = backend.device.raw
    usage = 0x80 | 0x08 | 0x04
    buffers = [device.create_buffer(size=256, usage=usage) for _ in plan.buffers]
    staging = device.create_buffer(size=64, usage=0x01 | 0x08)
    steps = []
    for step in plan.steps:
        module = device.create_shader_module(code=plan.kernels[step.kernel][1])
        pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries = [
            {"binding": i, "resource": {"buffer": buffers[b], "offset": 0, "size": 256}}
            for i, b in enumerate(step.buffers)
        ]
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        steps.append((pipeline, group, step.groups))
    data = np.ones((4, 4), np.float32)

    def by_hand() -> Any:
        device.queue.write_buffer(buffers[plan.externals[0]], 0, data)
        encoder = device.create_command_encoder()
        run = encoder.begin_compute_pass()
        for pipeline, group, groups in steps:
            run.set_pipeline(pipeline)
            run.set_bind_group(0, group)
            run.dispatch_workgroups(*groups)
        run.end()
        encoder.copy_buffer_to_buffer(buffers[plan.outputs[0]], 0, staging, 0, 64)
        device.queue.submit([encoder.finish()])
        staging.map_sync("READ")
        result = np.frombuffer(staging.read_mapped(), np.float32)
        staging.unmap()
        return result

    own = hand = float("inf")
    for _ in range(4 * ROUNDS):
        own = min(own, best(lambda: compiled(x), 0.25))
        hand = min(hand, best(by_hand, 0.25))
    return own, hand


# -- tinygrad ---------------------------------------------------------------------------------------------------------


def serve_peer() -> None:
    """In a process of its own: for every name read from standard input, the best time of that work in seconds."""
    from tinygrad import Tensor, TinyJit  # type: ignore[attr-defined]
    from tinygrad.nn.onnx import OnnxRunner

    calls: dict[str, Callable[[], Any]] = {}
    for n in SIZES:
        a, b = (Tensor(x).realize() for x in matrices(n))
        product = TinyJit(lambda a, b: (a @ b).realize())
        calls[f"matmul {n}"] = lambda f=product, a=a, b=b: f(a, b).numpy()  # type: ignore[misc]

    def prepare(path: Path) -> Callable[[], Any]:
        label, value = model_input(path)
        runner = OnnxRunner(str(path))
        forward = TinyJit(lambda x: next(iter(runner({label: x}).values())).realize())
        x = Tensor(value).realize()
        return lambda: forward(x).numpy()

    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in calls:
                calls[name] = prepare(models()[name])
            print(json.dumps(best(calls[name])), flush=True)
        except Exception as error:
            print(json.dumps(f"{type(error).__name__}: {error}"[:200]), flush=True)


class Peer:
    """tinygrad with DEV=WEBGPU, in a process of its own."""

    def __init__(self) -> None:
        import importlib.metadata

        import pydawn  # type: ignore[import-untyped]

        libraries = sorted((Path(pydawn.__file__).parent / "lib").glob(f"libwebgpu_dawn_{os.uname().machine}.so"))
        environment = {**os.environ, "DEV": "WEBGPU", "WEBGPU_PATH": str(libraries[0])}
        self.name = f"tinygrad {importlib.metadata.version('tinygrad')}"
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--peer"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self._read()

    def _read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.name} process ended with status {self.process.wait()}")
        return json.loads(line)

    def time(self, work: str) -> float | str:
        assert self.process.stdin
        self.process.stdin.write(work + "\n")
        self.process.stdin.flush()
        found: float | str = self._read()
        return found

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


# -- the table --------------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help="without tinygrad")
    options = parser.parse_args(argv)
    if options.peer:
        serve_peer()
        return 0
    calls, plans, adapter = own_calls()
    peer = None if options.alone else Peer()
    own: dict[str, float] = dict.fromkeys(calls, float("inf"))
    other: dict[str, float | str] = dict.fromkeys(calls, float("inf"))
    for turn in range(ROUNDS):
        for work, call in calls.items():
            own[work] = min(own[work], best(call))
            theirs = other[work]
            if peer and not isinstance(theirs, str):
                found = peer.time(work)
                other[work] = found if isinstance(found, str) else min(theirs, found)
            print(f"turn {turn + 1}: {work}: {own[work] * 1e3:.2f} ms, {other[work]}", flush=True)
    if peer:
        peer.close()
    costs = {n: host_cost(n) for n in (8, 32)}
    write(adapter, peer.name if peer else "", own, other, plans, costs)
    print(RESULTS.read_text())
    return 0


def write(
    adapter: str,
    peer: str,
    own: dict[str, float],
    other: dict[str, float | str],
    plans: dict[str, dict[str, int]],
    costs: dict[int, tuple[float, float]],
) -> None:
    lines = [
        "# The GPU",
        "",
        f"Adapter: {adapter}; {os.cpu_count()} cores.",
        "Milliseconds a call, result on the host, best of many; written by `python3 dev.py bench gpu`.",
        "",
        f"| work | emberlet | {peer or 'peer'} | ratio | emberlet GFLOP/s |",
        "|---|---:|---:|---:|---:|",
    ]
    for work, seconds in own.items():
        theirs = other[work]
        if isinstance(theirs, str) or theirs == float("inf"):
            cells = [theirs if isinstance(theirs, str) else "", ""]
        else:
            cells = [f"{theirs * 1e3:.2f}", f"{theirs / seconds:.1f}"]
        rate = f"{2 * int(work.split()[1]) ** 3 / seconds / 1e9:.1f}" if work.startswith("matmul") else ""
        lines.append(f"| {work} | {seconds * 1e3:.2f} | {cells[0]} | {cells[1]} | {rate} |")
    lines += ["", "| model | dispatches | kernels | bytes of temporaries |", "|---|---:|---:|---:|"]
    for name, summary in plans.items():
        lines.append(f"| {name} | {summary['dispatches']} | {summary['kernels']} | {summary['temporary_bytes']} |")
    lines += [
        "",
        "The host's cost of a call: a chain of tiny kernels, compiled, and hand-written wgpu-py code that submits the",
        "same dispatches.",
        "",
        "| dispatches | emberlet | by hand | ratio |",
        "|---:|---:|---:|---:|",
    ]
    for n, (mine, hand) in costs.items():
        lines.append(f"| {n} | {mine * 1e3:.3f} | {hand * 1e3:.3f} | {mine / hand:.2f} |")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
