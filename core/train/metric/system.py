"""How busy the machine is, as metrics of training: processors with psutil, NVIDIA's GPUs with nvidia-smi, AMD's by the
files of Linux's driver amdgpu (docs.kernel.org/gpu/amdgpu/thermal.html)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ...host.extras import require
from .base import FormatOptions, MetricEntry, Numeric

NAN = float("nan")
GPU_FIELDS = ("utilization.gpu", "memory.used", "memory.total", "temperature.gpu")  # percent, MiB, MiB, °C
SECONDS = 5  # nvidia-smi may take this long
CARDS = Path("/sys/class/drm")  # where Linux tells of graphics cards


class _Gauge(Numeric):
    """A metric that takes a measurement at every update, needs no input, and whose value is the last measurement."""

    name = "gauge"
    unit = ""
    absent = ""

    def __init__(self) -> None:
        self._last = NAN

    def _measured(self) -> float:
        """A measurement; NaN where the system tells nothing."""
        raise NotImplementedError

    def update(self, item: Any = None, metadata: Any = None) -> MetricEntry:
        self._last = self._measured()
        known = self._last == self._last
        text = FormatOptions(self.name).precision(1).unit(self.unit).text(self._last) if known else self.absent
        return MetricEntry(self.name, text, f"{self._last!r},1")

    def value(self) -> float:
        return self._last

    def clear(self) -> None:
        self._last = NAN


class _Processor(_Gauge):
    def __init__(self) -> None:
        """Raises MissingLibraryError without psutil."""
        require(self.name, "psutil")
        super().__init__()


class CpuUse(_Processor):
    """How busy all processors were since the last update, in percent."""

    name = "CPU use"
    unit = "%"
    absent = "not known before the second update"

    def __init__(self) -> None:
        super().__init__()
        self._started = False

    def _measured(self) -> float:
        import psutil

        used = float(psutil.cpu_percent())
        first, self._started = not self._started, True
        return NAN if first else used  # psutil's first answer has no time to refer to


class CpuMemory(_Processor):
    """The used memory of the machine, in GiB."""

    name = "CPU memory"
    unit = "GiB"

    def _measured(self) -> float:
        import psutil

        memory = psutil.virtual_memory()
        return float(memory.total - memory.available) / 2**30


class CpuTemperature(_Processor):
    """The mean of the temperatures that the system tells of its processors, in °C."""

    name = "CPU temperature"
    unit = "°C"
    absent = "the system tells no temperature"

    def _measured(self) -> float:
        import psutil

        sensors: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()  # not on Windows and macOS
        for name in ("coretemp", "k10temp", "zenpower", "cpu_thermal"):
            found = [s.current for s in sensors.get(name, []) if s.current is not None]
            if found:
                return float(sum(found) / len(found))
        return NAN


def nvidia() -> list[list[float]]:
    """GPU_FIELDS of every GPU of NVIDIA, by nvidia-smi; NaN for what one does not tell; an empty list without any."""
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        cells = line.split(",")
        if len(cells) == len(GPU_FIELDS):
            rows.append([_number(cell) for cell in cells])
    return rows


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return NAN


def amd() -> list[list[float]]:
    """The same of every GPU of AMD, by the files of Linux's driver."""
    rows = []
    for use in sorted(CARDS.glob("card*/device/gpu_busy_percent")):
        device = use.parent
        memory = [_told(device / f"mem_info_vram_{what}") / 2**20 for what in ("used", "total")]
        temperatures = [_told(file) / 1000 for file in sorted(device.glob("hwmon/hwmon*/temp1_input"))]
        rows.append([_told(use), *memory, temperatures[0] if temperatures else NAN])
    return rows


def _told(file: Path) -> float:
    try:
        return _number(file.read_text("utf-8", "replace"))
    except OSError:  # there is none, or the card sleeps
        return NAN


class GpuTemperature(_Gauge):
    """The temperature of the hottest GPU of NVIDIA or AMD, in °C."""

    name = "GPU temperature"
    unit = "°C"
    absent = "the system tells no temperature of a GPU"

    def _measured(self) -> float:
        known = [row[3] for row in nvidia() + amd() if row[3] == row[3]]
        return max(known) if known else NAN


class GpuUse(_Gauge):
    """The use of each GPU of NVIDIA or AMD in percent, with its memory; the value is the mean use."""

    name = "GPU use"
    absent = "the system tells of no GPU"

    def _rows(self) -> list[list[float]]:
        return nvidia() + amd()

    def update(self, item: Any = None, metadata: Any = None) -> MetricEntry:
        rows = self._rows()
        known = [row[0] for row in rows if row[0] == row[0]]
        self._last = sum(known) / len(known) if known else NAN
        text = "; ".join(
            f"GPU {i}: {use:.0f} %, {used / 1024:.1f} of {total / 1024:.1f} GiB".replace("nan", "?")
            for i, (use, used, total, _) in enumerate(rows)
        )
        return MetricEntry(self.name, text or self.absent, f"{self._last!r},1")


class CudaMetric(GpuUse):
    """The same of NVIDIA's GPUs only, as in Burn."""

    name = "CUDA"
    absent = "nvidia-smi tells of no GPU"

    def _rows(self) -> list[list[float]]:
        return nvidia()
