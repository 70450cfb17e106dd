"""Distributes test files over pytest's worker processes, and continues after a worker has died."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from xdist.scheduler import LoadFileScheduling

LONG = (
    "tests/contract/test_contract.py",
    "tests/browser",
    "tests/batch/test_on_ray.py",
    "tests/setup/test_packagers.py",
    "tests/contract/test_quantized_zoo.py",
    "tests/codegen/test_repetition.py",
    "tests/train/test_on_ray.py",
    "tests/codegen/test_hierarchy.py",
    "tests/soak/test_soak.py",
    "tests/fuzz/test_fuzz_readers.py",
    "tests/session/test_async.py",
    "tests/codegen/test_near_misses.py",
    "tests/models/test_generated_models.py",
    "tests/micro/test_published_models.py",
    "tests/setup/test_mutation.py",
    "tests/digits/test_digits_everywhere.py",
    "tests/fuzz/test_differential.py",
    "tests/micro/test_deploy.py",
    "tests/micro/test_kernels.py",
    "tests/micro/test_model.py",
    "tests/core/test_torch_configurations.py",
)
"""What takes a minute or nearly, by `--file-times`. It comes first, or one worker would run the last of it alone."""
TOGETHER = "tests/browser/"
"""Its files are one of these: they share a Chromium, and sites that take seconds to build."""


class FileScheduling(LoadFileScheduling):
    """Whole files to each worker, and the folder TOGETHER to one: long ones first, then those with the most tests.
    After a crash, the tests that have not run go to the other workers.

    xdist 3.8 also hands on the files that the dead worker had finished. A worker that gets two of these has nothing to
    report, so it gets nothing more, and the run waits for ever.
    """

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER[:-1] if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        long = next((file for file in LONG if file in self.workqueue), None)
        if long is not None:
            self.workqueue.move_to_end(long, last=False)
        super()._assign_work_unit(node)

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
