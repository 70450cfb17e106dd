"""The three places where scoring hooks into Ray: a source of rows, the workers' class, and an actor that counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource
from ray.data.block import BlockMetadata
from ray.data.datasource import ReadTask

from ..errors import EmberletError
from .files import Part
from .predictor import Predictor
from .rows import Reading, tables
from .scorer import Bad, Scorer, one_line

NAMED = 1000  # the number of skipped rows to list; further ones are only counted


@ray.remote(num_cpus=0)
class Tally:
    """Progress of all workers: the number of finished rows, for the progress bar only, and each skipped row once."""

    def __init__(self) -> None:
        self._rows = 0
        self._bad: dict[tuple[str, int], str] = {}
        self._failure: str | None = None

    def add(self, rows: int, bad: list[Bad]) -> None:
        self._rows += rows
        for file, row, why in bad:
            self._bad[file, row] = why if len(self._bad) < NAMED else ""

    def state(self) -> tuple[int, int]:
        """(rows, how many were skipped)"""
        return self._rows, len(self._bad)

    def fail(self, why: str) -> None:
        """Record the error that stops the run: Ray passes on the text of a traceback, not the exception."""
        self._failure = self._failure or why

    def failure(self) -> str | None:
        """The first error that was recorded."""
        return self._failure

    def skipped(self) -> list[Bad]:
        """The skipped rows and the reasons, sorted by position."""
        return [(file, row, why) for (file, row), why in sorted(self._bad.items())]


class Rows(Datasource):
    """The parts of files, a read task for each."""

    def __init__(self, parts: list[Part], reading: Reading, skip: bool, tally: Any) -> None:
        super().__init__()
        self._parts, self._reading, self._skip, self._tally = parts, reading, skip, tally

    def estimate_inmemory_data_size(self) -> int | None:
        return sum(part.size for part in self._parts)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        return [
            ReadTask(
                partial(_read, part, self._reading, self._skip, self._tally),
                BlockMetadata(num_rows=None, size_bytes=part.size, input_files=None, exec_stats=None),
                per_task_row_limit=per_task_row_limit,
            )
            for part in self._parts
        ]


def _read(part: Part, reading: Reading, skip: bool, tally: Any) -> Iterator[pa.Table]:
    done = 0
    try:
        for table in tables(part, reading):
            yield table
            done += len(table)
    except (EmberletError, OSError) as error:
        if not skip:
            ray.get(tally.fail.remote(one_line(error)))
            raise
        name = part.files[0].shown
        why = one_line(error).removeprefix(f"{name}: ")
        if done:
            why += f" (after {done} rows, which were read)"
        ray.get(tally.add.remote(0, [(name, -1, why)]))


class Worker:
    """Called by Ray Data with tables: one per actor, with a model that stays open."""

    def __init__(self, predictor: Predictor, options: dict[str, Any], tally: Any) -> None:
        self._scorer = Scorer(predictor, report=self._report, **options)
        self._tally = tally

    def __call__(self, table: pa.Table) -> pa.Table:
        try:
            return self._scorer(table)
        except Exception as error:
            ray.get(self._tally.fail.remote(one_line(error)))
            raise

    def _report(self, rows: int, bad: list[Bad]) -> None:
        added = self._tally.add.remote(rows, bad)
        if bad:
            ray.get(added)  # if a worker dies now, its rows are computed and reported again
