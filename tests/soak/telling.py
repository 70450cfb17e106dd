"""The interface between a scenario and the engine."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Told:
    """tried: how often harm was done, in `unit`s; checked: how many results were compared since; failures: one line
    each; facts: other measurements, by name."""

    unit: str
    tried: int = 0
    checked: int = 0
    failures: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Clock:
    """True until `seconds` after it was first asked, so that a scenario's preparations take none of its time. times:
    how often each kind of harm is done at most, for scenarios that count."""

    def __init__(self, seconds: float, times: int | None = None) -> None:
        self.seconds = seconds
        self.times = times
        self._end = 0.0

    def __bool__(self) -> bool:
        now = time.monotonic()
        self._end = self._end or now + self.seconds
        return now < self._end


def resident() -> float:
    """The memory of this process in megabytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0
