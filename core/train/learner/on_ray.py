"""The same training on the workers of Ray Train, each with its part of every step's batches.

The gradients of a step are averaged by an actor; they travel through Ray's object store. A worker that dies takes the
others of its attempt with it, and the next attempt goes on from the last checkpoint, so that the folder has to be one
that all machines share.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
import ray.train
from ray.train.collective import broadcast_from_rank_zero
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from ...errors import EmberletError
from ...functional.arrays import asarray
from .learner import Learner

Made = tuple[Learner, Any, Any]


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


def fit_on_ray(
    make: Callable[[], Made], *, workers: int = 2, cpus: float = 1.0, gpus: float = 0.0, max_failures: int = 3
) -> Any:
    """Train on Ray Train's workers; returns the trained model, on the inner backend.

    make: a function without arguments, which every worker calls, and this process too: it returns a Learner, the
    batches for training and those for validation (or None). The Learner's folder is one that all machines share. Each
    step takes a batch for every worker; rank 0 validates, and writes checkpoints and logs, whose training metrics are
    those of its own batches. cpus, gpus: of each worker. max_failures: how often the training may go on after workers
    died, from the last checkpoint. Ray is started on this machine unless `ray.init` was called.

    Raises EmberletError where the training failed, with the last reason; ArgumentError for a folder that holds a
    training, unless the Learner has resume=True.
    """
    learner, _, _ = make()
    checkpoints = learner.checkpoints
    if checkpoints is None:
        raise EmberletError("a training on Ray needs checkpoints, from which it goes on after a failure")
    learner.check_folder()
    scaling = ray.train.ScalingConfig(
        num_workers=workers, resources_per_worker={"CPU": cpus, **({"GPU": gpus} if gpus else {})}
    )
    folder = os.path.abspath(learner.directory)
    run = ray.train.RunConfig(
        name="ray",
        storage_path=folder,
        failure_config=ray.train.FailureConfig(max_failures=max_failures),
    )
    trainer = DataParallelTrainer(_work, train_loop_config={"make": make}, scaling_config=scaling, run_config=run)
    try:
        trainer.fit()
    except ray.train.TrainingFailedError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise EmberletError(f"the training on Ray failed: {lines[-1].strip() if lines else error}") from error
    checkpoints.load(checkpoints.epochs()[-1], learner.model, learner.optimizer)
    return learner.model


def _work(config: dict[str, Any]) -> None:
    """What each worker does."""
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    mean = broadcast_from_rank_zero(ray.remote(num_cpus=0)(Mean).remote(size) if rank == 0 else None)
    learner, train, valid = config["make"]()
    learner.group = RayGroup(rank, size, mean)
    if rank:
        learner.renderer = None
    learner.fit(train, valid)
