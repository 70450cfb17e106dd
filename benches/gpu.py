"""The GPU: matrix products and whole models compared with tinygrad's WebGPU, dispatches, the host's time for a call.

All run on the same adapter, in turns. The best of many calls counts, and every call ends with the result on the host.
Writes benches/results/gpu.md. On a real GPU it writes gpu-NAME.md, which also has large models, and large products as a
share of the device's peak arithmetic, compared with tinygrad, and with torch if this Python or --torch's has it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _gpu_device import results_page
from _gpu_models import large_models, matrices, model_input, models
from _gpu_peers import Peer, best, tinygrad_peer

ROOT = Path(__file__).resolve().parent.parent
SIZES = (256, 512, 1024)
LARGE_SIZES = (1024, 2048, 4096, 8192)
ROUNDS = 3
DISPATCHES = (8, 32, 100)


# -- emberlet ---------------------------------------------------------------------------------------------------------


def own_calls() -> tuple[dict[str, Callable[[], Any]], dict[str, dict[str, int]], str]:
    """(workload -> a call of it, model -> its plan's summary, the adapter's name)."""
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
    for _ in range(500 * ROUNDS):  # one call each in turns, so that other load on the machine affects both
        own = min(own, best(lambda: compiled(x), 0.0, 1))
        hand = min(hand, best(by_hand, 0.0, 1))
    return own, hand


# -- beside others ----------------------------------------------------------------------------------------------------


def in_turns(
    calls: dict[str, Callable[[], float]], peers: list[Peer], asked: Callable[[str], str]
) -> dict[str, list[float | str]]:
    """Workload -> the best seconds of emberlet and of every peer, or the peer's error. asked: a workload's name for the
    peers."""
    found: dict[str, list[float | str]] = {work: [float("inf")] * (1 + len(peers)) for work in calls}
    for turn in range(ROUNDS):
        for work, call in calls.items():
            for i, before in enumerate(found[work]):
                if isinstance(before, float):
                    now = peers[i - 1].time(asked(work)) if i else call()
                    found[work][i] = min(before, now) if isinstance(now, float) else now
            print(f"turn {turn + 1}: {work}: {', '.join(_milliseconds(t) for t in found[work])}", flush=True)
    return found


def _milliseconds(time: float | str) -> str:
    return time if isinstance(time, str) else f"{time * 1e3:.3g}" if time < 1e-3 else f"{time * 1e3:.2f}"


def _ratio(own: float | str, other: float | str) -> str:
    return f"{other / own:.1f}" if isinstance(own, float) and isinstance(other, float) else ""


def _row(*cells: Any) -> str:
    return f"| {' | '.join(str(c) for c in cells)} |"


def _header(*cells: str) -> list[str]:
    return [_row(*cells), "|---|" + "---:|" * (len(cells) - 1)]


def standard(peers: list[Peer]) -> list[str]:
    """The page's lines on the workloads of every device."""
    calls, plans, adapter = own_calls()
    paths = models()
    print(f"{adapter}; peers: {', '.join(f'{p.name} on {p.device}' for p in peers)}", flush=True)
    found = in_turns(
        {work: lambda c=call: best(c) for work, call in calls.items()},  # type: ignore[misc]
        peers,
        lambda work: str(paths.get(work, work)),
    )
    lines = [
        f"Adapter: {adapter}; {os.cpu_count()} cores.",
        "Milliseconds a call, result on the host, best of many; written by `python3 dev.py bench gpu`.",
        "",
        *_header("work", "emberlet", *[c for p in peers for c in (p.name, "ratio")], "emberlet GFLOP/s"),
    ]
    for work, (own, *others) in found.items():
        beside = [c for other in others for c in (_milliseconds(other), _ratio(own, other))]
        rate = f"{2 * int(work.split()[1]) ** 3 / own / 1e9:.1f}" if work.startswith("matmul") else ""  # type: ignore[operator]
        lines.append(_row(work, _milliseconds(own), *beside, rate))
    lines += ["", *_header("model", "dispatches", "kernels", "bytes of temporaries")]
    lines += [_row(name, s["dispatches"], s["kernels"], s["temporary_bytes"]) for name, s in plans.items()]
    lines += [
        "",
        "The host's cost of a call: a chain of tiny kernels, compiled, and hand-written wgpu-py code that submits the",
        "same dispatches.",
        "",
        *_header("dispatches", "emberlet", "by hand", "ratio"),
    ]
    for n in DISPATCHES:
        own, hand = host_cost(n)
        lines.append(_row(n, f"{own * 1e3:.3f}", f"{hand * 1e3:.3f}", f"{own / hand:.2f}"))
    return lines


def on_real_gpu(backend: Any, peers: list[Peer], sizes: tuple[int, ...], small: bool) -> list[str]:
    """The page's lines on the workloads of real GPUs. small: models that a software device can finish."""
    from _gpu_device import DTYPES, model, peak, product

    peaks = {dtype: peak(backend, dtype) for dtype in DTYPES}
    if peaks["float16"] is not None:
        peaks["float16"] = max(p for p in peaks.values() if p)  # which its products could use
    lines = [
        "",
        "Products whose operands and result stay on the device, many in a row: TFLOP/s. The peak is what a kernel of",
    ]
    lines += ["nothing but multiply-adds in registers reaches here; float16 is stored as such and computed in float32."]
    lines += ["", *_header("product", "emberlet", "share of the peak", "peak", *[p.name for p in peers])]
    for dtype in DTYPES:
        limit = peaks[dtype]
        if limit is None:
            lines.append(_row(dtype, "this device has no float16", "", "", *["" for _ in peers]))
            continue
        for n in sizes:
            own = product(backend, dtype, n, not small)
            others = [p.time(f"product {dtype} {n}") for p in peers]
            rates = [2 * n**3 / t if isinstance(t, float) else t for t in (own, *others)]
            cells = [r if isinstance(r, str) else f"{r / 1e12:.3g}" for r in rates]
            lines.append(
                _row(f"{dtype} {n}", cells[0], f"{2 * n**3 / own / limit:.0%}", f"{limit / 1e12:.3g}", *cells[1:])
            )
            print(lines[-1], flush=True)
    paths = large_models(small)
    calls = {name: model(backend, path, not small) for name, path in paths.items()}
    found = in_turns({name: c for name, (c, _) in calls.items()}, peers, lambda name: str(paths[name]))
    lines += ["", "Milliseconds a call, float32, the result on the host, best of many.", ""]
    lines += _header("model", "emberlet", "dispatches", *[c for p in peers for c in (p.name, "ratio")])
    for name, (own_time, *theirs) in found.items():
        beside = [c for t in theirs for c in (_milliseconds(t), _ratio(own_time, t))]
        lines.append(_row(name, _milliseconds(own_time), calls[name][1]["dispatches"], *beside))
    return lines


def started(make: Callable[[], Peer]) -> list[Peer]:
    """A list with the peer; an empty one, and a printed reason, if it does not start."""
    try:
        return [make()]
    except (RuntimeError, OSError, ImportError, IndexError) as error:
        print(f"without a peer: {error}", flush=True)
        return []


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", action="store_true", help="without tinygrad and torch")
    parser.add_argument("--tinygrad", default="WEBGPU", metavar="DEV", help="tinygrad's device (default: WEBGPU)")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="a Python that has torch and onnx")
    parser.add_argument("--as-real", action="store_true", help="measure what is for real GPUs, with small models")
    parser.add_argument("--sizes", default="", metavar="N,N,…", help="of the large products (default: 1024 … 8192)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of benches/results/gpu….md")
    options = parser.parse_args(argv)
    from emberlet.backend import get_backend

    backend: Any = get_backend("wgpu")
    real = not backend.options.software
    peers = [] if options.alone else started(lambda: tinygrad_peer(options.tinygrad))
    lines = ["# The GPU", "", *standard(peers)]
    if real or options.as_real:
        if not options.alone:
            peers += started(lambda: Peer("torch", options.torch, {}))
        lines[0] = f"# {backend.device.raw.adapter_info['device']}"
        lines += ["", f"Peers: {'; '.join(f'{p.name} on {p.device}' for p in peers) or 'none'}."]
        sizes = tuple(int(n) for n in options.sizes.split(",")) if options.sizes else LARGE_SIZES
        lines += on_real_gpu(backend, peers, sizes, not real)
    for peer in peers:
        peer.close()
    file = options.out or results_page("gpu", backend.device)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
