"""`emberlet profile`: the time of a model by kernel, and how close each kernel comes to the device's limits.

Times are the GPU's own (timestamp queries, one compute pass per dispatch) if the device has them, else the host's
around each dispatch, or around each step of machine code. The limits are measured in the same run: arithmetic by a
large matrix product, memory by a large copy. The trace is in the format that Perfetto (https://ui.perfetto.dev) opens.
"""

from __future__ import annotations

import argparse
import json
import struct
import time
from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.errors import EmberletError, ModelError
from emberlet.tensor import Tensor

from .compiled import Compiled
from .compiled import compile as compile_model
from .run.runtime import Program

MARK = "emberlet profile"  # who wrote a trace

QUERY_RESOLVE = 0x0200
STORAGE_COPY = 0x0008 | 0x0004


class Sample:
    """One dispatch: kernel name, start and duration in nanoseconds (start counted from the first), its work."""

    def __init__(self, name: str, groups: tuple[int, int, int], start: float, duration: float, step: Any) -> None:
        self.name = name
        self.groups = groups
        self.start = start
        self.duration = duration
        self.flops: int = step.flops
        self.nbytes: int = step.nbytes


class OnProcessor:
    """What `measure` needs of a plan that is machine code."""

    def __init__(self, planned: Any) -> None:
        self.plan = planned.plan
        self.run = planned.program.run
        self.timed = planned.program.instance.timed


def profiled(planned: Any) -> Any:
    """What `measure` takes."""
    return OnProcessor(planned) if planned.backend.name == "native" else planned.program


def measure(program: Program | OnProcessor, data: Sequence[Any], runs: int = 10) -> tuple[list[Sample], str]:
    """(Samples of the fastest of several runs, the clock that measured them: "GPU timestamps" or "host clock")."""
    timed: Any = _by_steps
    if not isinstance(program, OnProcessor):
        program.prepare()
        raw = program.device.raw
        has_clock = "timestamp-query" in raw.features and program.steps
        timed = _by_timestamps if has_clock else _by_host_clock
    program.run(data)
    best: list[Sample] = []
    for _ in range(runs):
        found = timed(program)
        if not best or sum(s.duration for s in found) < sum(s.duration for s in best):
            best = found
    return best, "GPU timestamps" if timed is _by_timestamps else "host clock"


def _samples(program: Any, times: Sequence[tuple[float, float]]) -> list[Sample]:
    zero = times[0][0] if times else 0.0
    out = []
    for step, (begin, end) in zip(program.plan.steps, times, strict=True):
        name = program.plan.kernels[step.kernel][0]
        out.append(Sample(name, step.groups, begin - zero, max(0.0, end - begin), step))
    return out


def _by_steps(program: OnProcessor) -> list[Sample]:
    return _samples(program, program.timed())


def _by_timestamps(program: Program) -> list[Sample]:
    raw = program.device.raw
    steps: Sequence[Any] = program.steps or ()
    count = 2 * len(steps)
    queries = raw.create_query_set(type="timestamp", count=count)
    resolved = raw.create_buffer(size=count * 8, usage=QUERY_RESOLVE | STORAGE_COPY)
    encoder = raw.create_command_encoder()
    for i, (pipeline, group, x, y, z) in enumerate(steps):
        writes = {
            "query_set": queries,
            "beginning_of_pass_write_index": 2 * i,
            "end_of_pass_write_index": 2 * i + 1,
        }
        run = encoder.begin_compute_pass(timestamp_writes=writes)
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(x, y, z)
        run.end()
    encoder.resolve_query_set(queries, 0, count, resolved, 0)
    raw.queue.submit([encoder.finish()])
    stamps = struct.unpack(f"<{count}Q", raw.queue.read_buffer(resolved))
    return _samples(program, [(float(stamps[i]), float(stamps[i + 1])) for i in range(0, count, 2)])


def _by_host_clock(program: Program) -> list[Sample]:
    raw = program.device.raw
    times = []
    for pipeline, group, x, y, z in program.steps or ():
        begin = time.perf_counter_ns()
        encoder = raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(x, y, z)
        run.end()
        raw.queue.submit([encoder.finish()])
        raw.queue.read_buffer(program.allocations[0].gpu, 0, 4)  # waits for the submitted work
        times.append((float(begin), float(time.perf_counter_ns())))
    return _samples(program, times)


def peaks(backend: Any) -> tuple[float, float]:
    """(operations, bytes) per second that this device reaches on a large matrix product and a large copy."""
    n = 512 if backend.options.software else 2048
    a = backend.full((n, n), 1.0, dtypes.float32)
    wide = backend.full((1 << 22,), 1.0, dtypes.float32)
    backend.realize(a, wide)
    product = Compiled(lambda x: backend.reduce("max", backend.matmul(x, x), (0, 1), False), (a,), backend)
    copy = Compiled(lambda x: backend.slice(backend.binary("add", x, x), (0,), (x.size,), (1,)), (wide,), backend)
    found = []
    for compiled, x in ((product, a), (copy, wide)):
        planned = compiled.planned(x)
        samples, _ = measure(profiled(planned), planned.words([x]), 4)
        found.append(max((s.flops if compiled is product else s.nbytes) / max(s.duration, 1.0) for s in samples) * 1e9)
    return found[0], found[1]


def _device(backend: Any) -> str:
    if backend.name == "native":
        from .llvm import processor, threads

        name, _, lanes, *_ = processor.current()
        return f"{name}, vectors of {32 * lanes} bits, threads: {threads.threads()}"
    info = backend.device.raw.adapter_info
    return str(info["device"] or info["description"])


def table(samples: Sequence[Sample], best_flops: float, best_bytes: float) -> str:
    """A table of kernels by time; "limit" is the share of what the device's arithmetic and memory allow."""
    rows: dict[str, list[float]] = {}
    for s in samples:
        row = rows.setdefault(s.name, [0.0, 0.0, 0.0, 0.0, 0.0])
        needed = max(s.flops / best_flops, s.nbytes / best_bytes) * 1e9
        for i, value in enumerate((1, s.duration, s.flops, s.nbytes, needed)):
            row[i] += value
    total = sum(s.duration for s in samples) or 1.0
    lines = [
        f"{'kernel':<44}{'runs':>5}{'µs':>10}{'share':>8}{'MFLOP':>10}{'GFLOP/s':>9}{'MB':>10}{'GB/s':>9}{'limit':>7}"
    ]
    for name, (count, spent, flops, nbytes, needed) in sorted(rows.items(), key=lambda r: -r[1][1]):
        spent = spent or 1.0
        label = name if len(name) < 44 else name[:40] + "..."
        share = min(needed / spent, 9.99)
        lines.append(
            f"{label:<44}{count:>5.0f}{spent / 1e3:>10.1f}{spent / total:>8.1%}{flops / 1e6:>10.2f}"
            f"{flops / spent:>9.2f}{nbytes / 1e6:>10.2f}{nbytes / spent:>9.2f}{share:>7.0%}"
        )
    flops, nbytes = sum(s.flops for s in samples), sum(s.nbytes for s in samples)
    lines.append(
        f"{'all':<44}{len(samples):>5}{total / 1e3:>10.1f}{'':>8}{flops / 1e6:>10.2f}{flops / total:>9.2f}"
        f"{nbytes / 1e6:>10.2f}{nbytes / total:>9.2f}"
    )
    return "\n".join(lines)


def trace(samples: Sequence[Sample], title: str) -> str:
    """The samples in the trace event format, as JSON."""
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": title}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "GPU queue"}},
    ]
    for s in samples:
        arguments = {"workgroups": list(s.groups), "flops": s.flops, "bytes": s.nbytes}
        events.append(
            {
                "name": s.name,
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": s.start / 1e3,
                "dur": s.duration / 1e3,
                "args": arguments,
            }
        )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"generator": MARK}})


def main(argv: Sequence[str]) -> int:
    """The command `emberlet profile`; returns its exit status."""
    from emberlet.backend import get_backend
    from emberlet.functional.creation.fills import zeros
    from emberlet.host.cli import model as models
    from emberlet.host.cli import sizing
    from emberlet.host.files import atomic_write
    from emberlet.host.folders import outputs

    parser = argparse.ArgumentParser(
        prog="emberlet profile", description="Time a model's kernels, on a GPU or natively."
    )
    parser.add_argument("model", help="an ONNX file, or a generated module (.py), which is executed")
    models.add_inputs(parser)
    parser.add_argument("--backend", default="wgpu", help="wgpu, wgpu:N or native (default: wgpu)")
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="measure N times; the fastest counts")
    parser.add_argument("--trace", metavar="FILE.json", help="write a trace for https://ui.perfetto.dev")
    models.add_sizes(parser)
    models.add_freeze(parser)
    outputs.add_overwrite(parser)
    options = parser.parse_args(list(argv))
    if options.runs < 1:
        raise EmberletError(f"--runs is {options.runs}, expected 1 or more")
    if options.trace:
        inputs = [*outputs.model_files(options.model), *outputs.given_files(options.input)]
        outputs.check(
            options.trace, inputs=inputs, endings=[".json"], mark=MARK.encode(), overwrite=options.overwrite,
            option="--trace",
        )  # fmt: skip
    backend: Any = get_backend(options.backend)
    if backend.name not in ("wgpu", "native"):
        raise EmberletError(f"profile times kernels of wgpu and native; {options.backend!r} has none")
    loaded = models.load(options.model, options.backend, options.freeze)
    given = models.read_inputs(loaded, options.input, "numpy")
    known = sizing.sizes(options.dim, loaded)
    arguments: list[Tensor] = []
    for i in loaded.inputs:
        if i.name in given:
            arguments.append(given[i.name])
        elif i.dtype is None or i.shape is None:
            raise EmberletError(f"the dtype and shape of input {i} are not known; give it with --input {i.name}=FILE")
        else:
            arguments.append(zeros(sizing.sized(i, known), dtype=i.dtype, backend="numpy"))
    compiled = compile_model(loaded.model, *arguments, backend=backend)
    if compiled.cut is not None:
        raise ModelError(f"this model has no single plan to profile: {compiled.cut}") from compiled.cut
    planned = compiled.planned(*arguments)
    samples, clock = measure(profiled(planned), planned.words(arguments), options.runs)
    best_flops, best_bytes = peaks(backend)
    reached = f"{best_flops / 1e9:.1f} GFLOP/s, {best_bytes / 1e9:.1f} GB/s"
    print(f"{_device(backend)}, {clock}; reached here: {reached}")
    print(table(samples, best_flops, best_bytes))
    if options.trace:
        with atomic_write(options.trace) as file:
            file.write(trace(samples, options.model).encode())
        print(f"wrote {options.trace}; open it at https://ui.perfetto.dev")
    return 0
