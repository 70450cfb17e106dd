"""Threads that make the batches of a DataLoader ahead."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Threads:
    """Batches in order, made by `workers` threads, of which each is at most `prefetch` ahead."""

    def __init__(self, batches: Any, numbers: Iterable[int], workers: int, prefetch: int, context: Any) -> None:
        batches.ready()
        self._make = batches.make
        self._numbers: Iterator[int] = iter(numbers)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="emberlet-data")
        self._made: deque[Future[Any]] = deque()
        for _ in range(workers * prefetch):
            self._begin()

    def _begin(self) -> None:
        k = next(self._numbers, None)
        if k is not None:
            self._made.append(self._pool.submit(self._make, k))

    def is_ready(self) -> bool:
        """Whether the next batch is there."""
        return bool(self._made) and self._made[0].done()

    def get(self) -> Any:
        """The next batch. Raises DataError."""
        batch = self._made.popleft().result()
        self._begin()
        return batch

    def close(self) -> None:
        """End the threads, after the batches that they are making."""
        with contextlib.suppress(RuntimeError):  # the garbage collector ran in one, which cannot join itself
            self._pool.shutdown(wait=True, cancel_futures=True)
