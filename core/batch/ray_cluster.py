"""Connects to a running Ray cluster, or starts one on this machine and stops it at the end."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from ..errors import EmberletError
from ..host import blas_kernels

STORE = 512 << 20  # bytes of the object store on this machine: a few blocks per worker


def check(address: str | None) -> None:
    """Raise EmberletError if nothing answers at HOST:PORT; Ray itself would wait for minutes."""
    if address is None or address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not colon or "/" in address or not port.isdecimal() or int(port) > 65535:
        raise EmberletError(f"--ray {address}: expected HOST:PORT, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=20).close()
    except OSError as error:
        raise EmberletError(f"--ray {address}: nothing answers there: {error.strerror or error}") from None


@contextmanager
def connected(address: str | None, workers: int | None, cpus: float, gpus: float, quiet: bool = False) -> Iterator[int]:
    """Context manager of a cluster; yields the number of workers. quiet: drop the output of Ray's libraries on stderr
    while they start, and that of other threads meanwhile.

    Raises EmberletError if the cluster cannot be reached or is too small for the workers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault(
        "RAY_BACKEND_LOG_LEVEL", "fatal"
    )  # the output of its processes; errors reach the driver anyway
    import ray
    import ray.data

    mine = not ray.is_initialized()
    options: dict[str, Any] = {
        "logging_level": logging.ERROR,
        "log_to_driver": False,
    }
    try:
        if mine and address is None:
            count = workers or max(1, (os.cpu_count() or 1) // max(1, int(cpus)))
            # One for reading, one for writing and the checkpoint; they wait most of the time.
            start = partial(
                ray.init,
                address="local",  # or Ray would join a cluster that somebody started on this machine
                num_cpus=int(count * cpus) + 2,
                include_dashboard=False,
                object_store_memory=STORE,
                **({"num_gpus": int(-(-count * gpus // 1))} if gpus else {}),
                **options,
            )
        else:
            start = partial(ray.init, address=address, **options)
        if mine:
            with _stderr_dropped() if quiet else nullcontext(), _environment(variables(cpus)):
                try:
                    start()
                except BaseException:  # Ctrl-C too: what has started of Ray is stopped
                    ray.shutdown()
                    raise
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise EmberletError(f"Ray does not start: {said}" if address is None else f"--ray {address}: {said}") from None
    try:
        with _quiet():
            yield _workers(ray.cluster_resources(), workers, cpus, gpus)
    finally:
        if mine:
            ray.shutdown()


def variables(cpus: float) -> dict[str, str]:
    """The environment of workers: as many BLAS threads as CPUs from Ray, and the fastest BLAS kernels."""
    threads = str(max(1, int(cpus)))
    found = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    blas_kernels.choose(found)
    return found


@contextmanager
def _environment(changed: dict[str, str]) -> Iterator[None]:
    """Temporarily changes this process's environment, for the processes it starts."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _stderr_dropped() -> Iterator[None]:
    """Redirects the file descriptor itself, because a C++ library writes to it."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _quiet() -> Iterator[None]:
    """Sends Ray Data's log only to its file: errors are raised, and the progress bar shows the rest."""
    shown = [h for h in logging.getLogger("ray.data").handlers if isinstance(h, logging.StreamHandler)]
    shown = [h for h in shown if not isinstance(h, logging.FileHandler)]
    levels = [h.level for h in shown]
    for handler in shown:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in zip(shown, levels, strict=True):
            handler.setLevel(level)


def _workers(has: dict[str, float], workers: int | None, cpus: float, gpus: float) -> int:
    """The number of workers that fit in a cluster besides two CPUs for reading and writing. Raises EmberletError."""
    by_gpu = has.get("GPU", 0) // gpus if gpus else float("inf")
    most = int(min((has.get("CPU", 0) - 2) // cpus if cpus else has.get("CPU", 0), by_gpu))
    if most < 1 or (workers or 0) > most:
        wanted = f"{workers or 1} workers of {cpus:g} CPUs" + (f" and {gpus:g} GPUs" if gpus else "")
        raise EmberletError(
            f"the cluster has {has.get('CPU', 0):g} CPUs and {has.get('GPU', 0):g} GPUs, too few for {wanted} and 2 "
            f"CPUs for reading and writing"
        )
    return workers or most
