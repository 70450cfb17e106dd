"""Distributes test files over pytest's worker processes, and continues after a worker has died."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from xdist.scheduler import LoadFileScheduling


class FileScheduling(LoadFileScheduling):
    """Whole files to each worker. After a crash, the tests that have not run go to the other workers.

    xdist 3.8 also hands on the files that the dead worker had finished. A worker that gets two of these has nothing to
    report, so it gets nothing more, and the run waits for ever.
    """

    def remove_node(self, node: Any) -> str | None:
        """Returns the test during which the worker died, None where it had nothing left to do."""
        waiting = [
            (file, test)
            for file, tests in self.assigned_work.pop(node).items()
            for test, done in tests.items()
            if not done
        ]
        for file, test in waiting[1:]:  # the first one ended the process: it is reported, not repeated
            self.workqueue.setdefault(file, {})[test] = False
        for other in self.assigned_work:
            self._reschedule(other)
        return waiting[0][1] if waiting else None


def how_it_ended(node: Any) -> str:
    """The signal or the status with which a dead worker's process ended."""
    try:
        status = node.gateway._io.popen.wait(10)
    except (AttributeError, subprocess.TimeoutExpired):
        return "in a way that is not known"
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
