"""Distributes test files over pytest's worker processes, and continues after a worker has died."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from typing import Any

from xdist.scheduler import LoadFileScheduling

WAITING = (
    "tests/batch/test_on_ray.py",
    "tests/browser/page",
    "tests/browser",
    "tests/soak/test_soak.py",
    "tests/setup/test_packagers.py",
    "tests/micro/test_deploy.py",
    "tests/train/test_on_ray.py",
)
"""What waits for other processes most of its time, by `--file-times`, longest first."""
LONG = (
    "tests/contract/test_contract.py",
    "tests/conformance/test_node_cases.py",
    "tests/digits/test_digits_everywhere.py",
    "tests/contract/test_quantized_zoo.py",
    "tests/codegen/test_repetition.py",
    "tests/docs/test_documents.py",
    "tests/micro/test_published_models.py",
    "tests/models/test_published_models.py",
    "tests/native/test_shared_weights.py",
    "tests/codegen/test_hierarchy.py",
    "tests/codegen/test_near_misses.py",
    "tests/micro/test_scikit_learn.py",
    "tests/setup/test_mutation.py",
    "tests/models/test_generated_models.py",
    "tests/fuzz/test_differential.py",
    "tests/fuzz/test_fuzz_readers.py",
    "tests/core/test_neighboring_calls.py",
)
"""What computes for twenty seconds or nearly. It comes first, or one worker would run the last of it alone."""
TOGETHER = {
    f"tests/browser/test_{name}.py": "tests/browser/page"
    for name in ("page", "model_page", "demos", "build_demos", "offline", "training_page", "pyscript", "serve")
}
"""Files that share the page's site, which takes seconds to build. The others in tests/browser share another one."""


class FileScheduling(LoadFileScheduling):
    """Whole files to each worker, and those of tests/browser in two pieces: long ones first, then those with the most
    tests. After a crash, the tests that have not run go to the other workers.

    xdist 3.8 also hands on the files that the dead worker had finished. A worker that gets two of these has nothing to
    report, so it gets nothing more, and the run waits for ever.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return TOGETHER.get(file, "tests/browser" if file.startswith("tests/browser/") else file)

    def _assign_work_unit(self, node: Any) -> None:
        wanted: Iterable[str] = (*WAITING, *LONG)
        if computes(node.gateway.id, self.numnodes) and self.workqueue.keys() - {*WAITING}:
            wanted = (*LONG, *(scope for scope in self.workqueue if scope not in WAITING))
        chosen = next((scope for scope in wanted if scope in self.workqueue), None)
        if chosen is not None:
            self.workqueue.move_to_end(chosen, last=False)
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


def computes(worker: str, workers: int) -> bool:
    """Whether one of several workers, as xdist names it (gw0, gw1 ...), leaves WAITING to others: those beyond one for
    each processor begin with it."""
    return int(worker.removeprefix("gw")) >= workers - (os.cpu_count() or 1) > 0


def how_it_ended(node: Any) -> str:
    """The signal or the status with which a dead worker's process ended."""
    try:
        status = node.gateway._io.popen.wait(10)
    except (AttributeError, subprocess.TimeoutExpired):
        return "in a way that is not known"
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
