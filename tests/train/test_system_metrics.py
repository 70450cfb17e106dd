"""Metrics of the machine, with psutil, nvidia-smi and the files of Linux's amdgpu replaced."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from emberlet.host.extras import MissingLibraryError
from emberlet.train import metric as M
from emberlet.train.metric import system


@pytest.fixture
def psutil(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A psutil of a machine with two processors, 8 GiB and sensors."""
    found: Any = ModuleType("psutil")
    found.cpu_percent = lambda: 37.5
    found.virtual_memory = lambda: SimpleNamespace(total=8 << 30, available=6 << 30)
    sensors = [SimpleNamespace(current=40.0), SimpleNamespace(current=50.0)]
    found.sensors_temperatures = lambda: {"coretemp": sensors, "nvme": [SimpleNamespace(current=90.0)]}
    monkeypatch.setitem(sys.modules, "psutil", found)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    return found


def test_processors_are_measured(psutil: Any) -> None:
    use = M.CpuUse()
    assert use.update().formatted == "not known before the second update"
    assert use.update().formatted == "37.5 %"
    assert use.value() == 37.5
    assert M.CpuMemory().update().formatted == "2.0 GiB"
    assert M.CpuTemperature().update().formatted == "45.0 °C"


def test_machine_that_tells_no_temperature(psutil: Any) -> None:
    del psutil.sensors_temperatures
    entry = M.CpuTemperature().update()
    assert (entry.formatted, entry.serialize) == ("the system tells no temperature", "nan,1")


def test_without_psutil_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    for make in (M.CpuUse, M.CpuMemory, M.CpuTemperature):
        with pytest.raises(MissingLibraryError, match=r"needs psutil: .*install"):
            make()


def test_gpus_are_read_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def run(command: Any, **options: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(stdout=b"40, 1024, 8192, 61\n20, 2048, 8192, [N/A]\nno such line\n")

    monkeypatch.setattr(subprocess, "run", run)
    metric = M.CudaMetric()
    assert metric.update().formatted == "GPU 0: 40 %, 1.0 of 8.0 GiB; GPU 1: 20 %, 2.0 of 8.0 GiB"
    assert metric.value() == 30
    assert M.GpuTemperature().update().formatted == "61.0 °C"
    assert asked[0][1] == "--query-gpu=utilization.gpu,memory.used,memory.total,temperature.gpu"


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.TimeoutExpired("nvidia-smi", 5)])
def test_machine_without_a_gpu_says_so(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(system.subprocess, "run", run)
    metric = M.CudaMetric()
    assert metric.update().formatted == "nvidia-smi tells of no GPU"
    assert math.isnan(metric.value())
    monkeypatch.setattr(system, "CARDS", Path("no such folder"))
    assert M.GpuUse().update().formatted == "the system tells of no GPU"
    assert M.GpuTemperature().update().formatted == "the system tells no temperature of a GPU"


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for nvidia-smi is a script of a shell")
def test_gpus_of_both_makers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program nvidia-smi on the path, and by files as amdgpu's: a card that tells everything, one that sleeps."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '87, 40537, 81559, 64'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for card, files in enumerate([
        {"gpu_busy_percent": "13\n", "mem_info_vram_used": "1073741824\n", "mem_info_vram_total": "17163091968\n",
         "hwmon/hwmon3/temp1_input": "71000\n"},
        {"gpu_busy_percent": ""},
    ]):  # fmt: skip
        for name, text in files.items():
            file = tmp_path / "drm" / f"card{card}" / "device" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(system, "CARDS", tmp_path / "drm")
    metric = M.GpuUse()
    assert metric.update().formatted == (
        "GPU 0: 87 %, 39.6 of 79.6 GiB; GPU 1: 13 %, 1.0 of 16.0 GiB; GPU 2: ? %, ? of ? GiB"
    )
    assert metric.value() == 50
    assert M.GpuTemperature().update().formatted == "71.0 °C"
    assert M.CudaMetric().update().formatted == "GPU 0: 87 %, 39.6 of 79.6 GiB"
