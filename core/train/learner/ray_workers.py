"""What the workers of Ray Train do: the same training, each with its part of every step's batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
import ray.train
from ray.train.collective import broadcast_from_rank_zero

from ...functional.arrays import asarray


class Mean:
    """Averages what the workers of one attempt bring, round by round."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rounds: dict[int, dict[int, Any]] = {}
        self._results: dict[int, Any] = {}
        self._ready: dict[int, asyncio.Event] = {}
        self._left: dict[int, int] = {}

    async def _all(self, number: int, rank: int, value: Any, result: Callable[[dict[int, Any]], Any]) -> Any:
        """Wait for everybody's value of a round; the same result for all."""
        ready = self._ready.setdefault(number, asyncio.Event())
        values = self._rounds.setdefault(number, {})
        values[rank] = value
        if len(values) == self._size:
            self._results[number], self._left[number] = result(values), self._size
            del self._rounds[number]
            ready.set()
        await ready.wait()
        found = self._results[number]
        self._left[number] -= 1
        if not self._left[number]:
            del self._results[number], self._left[number], self._ready[number]
        return found

    async def average(self, number: int, rank: int, arrays: list[Any], weight: float) -> list[Any]:
        """The mean of everybody's arrays by their weights, summed in the order of the ranks."""
        return await self._all(number, rank, (arrays, weight), _mean)

    async def first(self, number: int, rank: int, value: Any) -> Any:
        """The value of rank 0."""
        return await self._all(number, rank, value, lambda values: values[0])


def _mean(values: dict[int, Any]) -> list[Any]:
    brought = [values[rank] for rank in sorted(values)]
    total = sum(weight for _, weight in brought)
    means: list[Any] = []
    for of_one in zip(*(arrays for arrays, _ in brought), strict=True):
        parts = [
            array * np.asarray(weight / total, array.dtype)
            for array, (_, weight) in zip(of_one, brought, strict=True)
            if array is not None
        ]
        means.append(sum(parts[1:], parts[0]) if parts else None)
    return means


class RayGroup:
    """The workers of one attempt, as a Learner knows them."""

    def __init__(self, rank: int, size: int, mean: Any) -> None:
        self.rank, self.size = rank, size
        self._mean = mean
        self._round = 0

    def average(self, gradients: list[Any], weight: float) -> list[Any]:
        """See Group."""
        arrays = [None if g is None else np.asarray(g) for g in gradients]
        self._round += 1
        means = ray.get(self._mean.average.remote(self._round, self.rank, arrays, weight))
        backend = next((g.backend for g in gradients if g is not None), None)
        return [None if m is None else asarray(np.asarray(m), backend=backend) for m in means]

    def share(self, value: Any) -> Any:
        """See Group."""
        self._round += 1
        return ray.get(self._mean.first.remote(self._round, self.rank, value))


def work(config: dict[str, Any]) -> None:
    """What each worker does."""
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    mean = broadcast_from_rank_zero(ray.remote(num_cpus=0)(Mean).remote(size) if rank == 0 else None)
    learner, train, valid = config["make"]()
    learner.group = RayGroup(rank, size, mean)
    if rank:
        learner.renderer = None
    learner.fit(train, valid)
