"""The numbers of a profile, from given times: its table, its trace, the fastest run and the device's peaks."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.errors import EmberletError
from emberlet.wgpu_backend import profile
from emberlet.wgpu_backend.profile import Sample


def sample(name: str, start: float, duration: float, flops: int, nbytes: int) -> Sample:
    return Sample(name, (1, 2, 3), start, duration, SimpleNamespace(flops=flops, nbytes=nbytes))


SAMPLES = [
    sample("matmul", 0.0, 4000.0, 8_000_000, 4_000),
    sample("exp", 4100.0, 1500.0, 1_000, 3_000_000),
    sample("matmul", 6000.0, 2000.0, 2_000_000, 6_000_000),
    sample("n" * 43, 9000.0, 0.0, 0, 0),
    sample("m" * 44, 9100.0, 500.0, 10, 20),
]


TABLE = """
kernel                                       runs        µs   share     MFLOP  GFLOP/s        MB     GB/s  limit
matmul                                          2       6.0   75.0%     10.00  1666.67      6.00  1000.67    83%
exp                                             1       1.5   18.8%      0.00     0.67      3.00  2000.00   100%
mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm...     1       0.5    6.2%      0.00     0.02      0.00     0.04     0%
nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn     1       0.0    0.0%      0.00     0.00      0.00     0.00     0%
all                                             5       8.0             10.00  1250.13      9.00  1125.50
"""


def test_the_table_adds_up_kernels_of_one_name_and_sorts_them_by_time() -> None:
    assert profile.table(SAMPLES, 4e12, 2e12) == TABLE.strip("\n")
    assert "999%" in profile.table(SAMPLES[:1], 1e10, 1e10)
    assert profile.table([], 1.0, 1.0).splitlines()[1].split() == ["all", "0", "0.0", "0.00", "0.00", "0.00", "0.00"]


def test_the_trace_has_every_dispatch_in_microseconds() -> None:
    found = json.loads(profile.trace(SAMPLES[:2], "model.onnx"))
    assert found == {
        "displayTimeUnit": "ns",
        "otherData": {"generator": "emberlet profile"},
        "traceEvents": [
            {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "model.onnx"}},
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "GPU queue"}},
            *(
                {"name": name, "ph": "X", "pid": 1, "tid": 1, "ts": start, "dur": duration,
                 "args": {"workgroups": [1, 2, 3], "flops": flops, "bytes": nbytes}}
                for name, start, duration, flops, nbytes in [
                    ("matmul", 0.0, 4.0, 8_000_000, 4_000), ("exp", 4.1, 1.5, 1_000, 3_000_000)
                ]
            ),
        ],
    }  # fmt: skip


class Queue:
    """A device that notes its calls; `stamps` are the times it writes."""

    def __init__(self, stamps: list[int]) -> None:
        self.stamps, self.said, self.features = stamps, [], ("timestamp-query",)  # type: ignore[var-annotated]
        self.queue = self

    def create_query_set(self, **what: Any) -> str:
        self.said.append(("queries", what))
        return "queries"

    def create_buffer(self, **what: Any) -> str:
        self.said.append(("buffer", what))
        return "resolved"

    def create_command_encoder(self) -> Queue:
        return self

    def begin_compute_pass(self, **what: Any) -> Queue:
        self.said.append(("pass", what))
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.said.append((name, *given))

    def finish(self) -> str:
        return "commands"

    def read_buffer(self, buffer: Any, *place: int) -> bytes:
        self.said.append(("read", buffer, *place))
        return struct.pack(f"<{len(self.stamps)}Q", *self.stamps)


def program(raw: Any, count: int = 2) -> Any:
    steps = [SimpleNamespace(kernel=n, groups=(n, 1, 1), flops=n, nbytes=10 * n) for n in range(count)]
    return SimpleNamespace(
        device=SimpleNamespace(raw=raw),
        plan=SimpleNamespace(steps=steps, kernels=[("add", ""), ("mul", "")]),
        steps=[(f"pipeline {n}", f"group {n}", n, 5, 6) for n in range(count)],
        allocations=[SimpleNamespace(gpu="first buffer")],
        prepare=lambda: None,
        run=lambda data: None,
    )


def test_gpu_timestamps_bracket_each_dispatch() -> None:
    raw = Queue([100, 150, 170, 160])
    found = profile._by_timestamps(program(raw))
    assert [(s.name, s.groups, s.start, s.duration, s.flops, s.nbytes) for s in found] == [
        ("add", (0, 1, 1), 0.0, 50.0, 0, 0),
        ("mul", (1, 1, 1), 70.0, 0.0, 1, 10),  # a clock that runs backward
    ]
    passes = [
        [
            ("pass", {"timestamp_writes": {
                "query_set": "queries", "beginning_of_pass_write_index": 2 * n, "end_of_pass_write_index": 2 * n + 1}}),
            ("set_pipeline", f"pipeline {n}"), ("set_bind_group", 0, f"group {n}"), ("dispatch_workgroups", n, 5, 6),
            ("end",),
        ]
        for n in range(2)
    ]  # fmt: skip
    assert raw.said == [
        ("queries", {"type": "timestamp", "count": 4}), ("buffer", {"size": 32, "usage": 0x20C}),
        *passes[0], *passes[1],
        ("resolve_query_set", "queries", 0, 4, "resolved", 0), ("submit", ["commands"]), ("read", "resolved"),
    ]  # fmt: skip


def test_the_host_clock_waits_for_each_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Queue([])
    times = iter([1000, 1500, 2000, 2700])
    monkeypatch.setattr(profile.time, "perf_counter_ns", lambda: next(times))
    found = profile._by_host_clock(program(raw))
    assert [(s.start, s.duration) for s in found] == [(0.0, 500.0), (1000.0, 700.0)]
    assert raw.said == [
        part
        for n in range(2)
        for part in [
            ("pass", {}), ("set_pipeline", f"pipeline {n}"), ("set_bind_group", 0, f"group {n}"),
            ("dispatch_workgroups", n, 5, 6), ("end",), ("submit", ["commands"]), ("read", "first buffer", 0, 4),
        ]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("features", "count", "wanted"),
    [(("timestamp-query",), 1, "GPU timestamps"), ((), 1, "host clock"), (("timestamp-query",), 0, "host clock")],
)
def test_the_fastest_of_several_runs_counts(
    features: tuple[str, ...], count: int, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [[sample("a", 0, 5, 1, 1), sample("b", 5, 4, 1, 1)], [sample("a", 0, 1, 1, 1)], [sample("a", 0, 1, 1, 1)]]
    left = iter([*runs, [sample("a", 0, 0.5, 1, 1)]])
    for name, clock in (("_by_timestamps", "GPU timestamps"), ("_by_host_clock", "host clock")):
        monkeypatch.setattr(profile, name, (lambda _: next(left)) if clock == wanted else None)
    raw = SimpleNamespace(features=features)
    found, clock = profile.measure(program(raw, count), [], 3)
    assert found is runs[1] and clock == wanted


def test_the_default_is_ten_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr(profile, "_by_host_clock", lambda program: ran.append(program) or [sample("a", 0, 1, 1, 1)])
    profile.measure(program(SimpleNamespace(features=())), [])
    assert len(ran) == 10


@pytest.mark.parametrize(("software", "n"), [(True, 512), (False, 2048)])
def test_the_peaks_are_those_of_a_large_product_and_a_large_copy(
    software: bool, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Compiled:
        def __init__(self, function: Any, examples: Any, backend: Any) -> None:
            made.append(self)
            self.shape = examples[0]

        def planned(self, x: Any) -> Any:
            assert x is self.shape
            return SimpleNamespace(program=self, words=lambda given: given, backend=backend)

    def measure(program: Any, data: Any, runs: int) -> Any:
        assert runs == 4
        if program is made[0]:
            return [sample("a", 0, 2.0, 10, 999), sample("b", 0, 0.5, 3, 999)], ""
        return [sample("a", 0, 2.0, 999, 30), sample("b", 0, 4.0, 999, 40)], ""

    backend = SimpleNamespace(
        name="wgpu",
        options=SimpleNamespace(software=software),
        full=lambda shape, value, dtype: (shape, value, dtype.name),
        realize=lambda *tensors: None,
    )
    monkeypatch.setattr(profile, "Compiled", Compiled)
    monkeypatch.setattr(profile, "measure", measure)
    assert profile.peaks(backend) == (5e9, 15e9)
    assert [one.shape for one in made] == [((n, n), 1.0, "float32"), ((1 << 22,), 1.0, "float32")]


def test_a_backend_without_kernels_is_refused() -> None:
    with pytest.raises(EmberletError, match="wgpu and native; 'numpy' has none"):
        profile.main(["model.onnx", "--backend", "numpy"])


@pytest.mark.parametrize("runs", ["-1", "0"])
def test_fewer_runs_than_one_are_refused(runs: str, tmp_path: Path) -> None:
    with pytest.raises(EmberletError, match=f"--runs is {runs}, expected 1 or more"):
        profile.main([str(tmp_path / "missing.onnx"), "--runs", runs])
    with pytest.raises((EmberletError, OSError)) as caught:
        profile.main([str(tmp_path / "missing.onnx"), "--runs", "1"])
    assert "--runs" not in str(caught.value)
