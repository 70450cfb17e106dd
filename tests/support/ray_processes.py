"""Processes that use Ray: their environment, which of them run, and waiting for what they do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 240  # seconds: two cores may have much else to do


def environment(home: Path) -> dict[str, str]:
    """The environment of processes that use Ray: they send nothing and write nothing outside `home`."""
    quiet = {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RAY_") and k != "PYTHONWARNDEFAULTENCODING"}
    return {**kept, **quiet, "HOME": str(home), "RAY_TMPDIR": str(home), "PATH": path}


def running(folder: Path) -> list[str]:
    """The command lines of processes that mention a folder; Ray's mention their cluster's."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(f"{process.name} {line}")
    return found


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.1)
    return found
