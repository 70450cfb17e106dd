"""The same training on the workers of Ray Train, each with its part of every step's batches.

The gradients of a step are averaged by an actor; they travel through Ray's object store. A worker that dies takes the
others of its attempt with it, and the next attempt goes on from the last checkpoint, so that the folder has to be one
that all machines share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ...errors import EmberletError
from ...host.extras import require
from .learner import Learner

Made = tuple[Learner, Any, Any]


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
    training, unless the Learner has resume=True; MissingLibraryError without Ray.
    """
    require("a training on Ray", "ray")
    import ray.train
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from .ray_workers import work

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
    trainer = DataParallelTrainer(work, train_loop_config={"make": make}, scaling_config=scaling, run_config=run)
    try:
        trainer.fit()
    except ray.train.TrainingFailedError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise EmberletError(f"the training on Ray failed: {lines[-1].strip() if lines else error}") from error
    checkpoints.load(checkpoints.epochs()[-1], learner.model, learner.optimizer)
    return learner.model
