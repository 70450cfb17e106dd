"""`--file-times`: the seconds of each test file, of the processor and of the clock.

Processes that a test started and waited for are included; those that outlive it (browsers, Ray) are counted only where
they end.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

PHASES = ("setup", "call", "teardown")


def processor() -> float:
    """Processor seconds of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class FileTimes:
    """A plugin of pytest, for this process and those of xdist."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.since = processor()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = processor()
        report.user_properties.append(("processor", now - self.since))  # xdist sends them along
        self.since = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        times = self.files[report.nodeid.split("::")[0]]
        seconds: Any = dict(report.user_properties).get("processor", 0.0)
        times[report.when or ""] += seconds
        times["clock"] += report.duration
        times["tests"] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        terminalreporter.section("seconds of each file")
        write("processor  set-up   tests   clock  count  file")
        folders: dict[str, float] = defaultdict(float)
        for file, times in sorted(self.files.items(), key=lambda entry: -_total(entry[1])):
            folders["/".join(file.split("/")[:2])] += _total(times)
            write(
                f"{_total(times):9.1f} {times['setup']:7.1f} {times['call']:7.1f} {times['clock']:7.1f}"
                f" {times['tests']:6.0f}  {file}"
            )
        for folder, seconds in sorted(folders.items(), key=lambda entry: -entry[1]):
            write(f"{seconds:9.1f}  {folder}")


def _total(times: dict[str, float]) -> float:
    return sum(times[phase] for phase in PHASES)
