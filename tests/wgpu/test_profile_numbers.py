"""The numbers of a profile, from given times: its table, its trace, the fastest run and the device's peaks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

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
