"""Joining a Ray cluster or starting one, with a stand-in for Ray that notes what it is asked for."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from emberlet.batch import ray_cluster
from emberlet.errors import EmberletError


def test_an_address_is_a_host_and_a_port_that_answers() -> None:
    ray_cluster.check(None)
    ray_cluster.check("auto")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ray_cluster.check(f"127.0.0.1:{port}")
        ray_cluster.check(f"[127.0.0.1]:{port}")
    with pytest.raises(EmberletError, match=f"--ray 127.0.0.1:{port}: nothing answers there: Connection refused"):
        ray_cluster.check(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    "address", ["host", "", "ray://host:1", "host:", "host:x1", "host:-1", "1.2.3.4:65536", "a/b:1"]
)
def test_what_is_no_address_is_refused_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: pytest.fail("connected"))
    with pytest.raises(EmberletError, match="HOST:PORT"):
        ray_cluster.check(address)


def test_the_highest_port_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def connect(address: Any, timeout: float) -> Any:
        asked.append((address, timeout))
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(EmberletError, match=r"--ray \[::1\]:65535"):
        ray_cluster.check("[::1]:65535")
    assert asked == [(("::1", 65535), 20)]


@pytest.mark.parametrize(
    ("workers", "cpus", "gpus", "has", "found"),
    [
        (None, 1, 0, 8, {"num_cpus": 10}), (None, 2, 0, 8, {"num_cpus": 10}), (None, 3, 0, 8, {"num_cpus": 8}),
        (None, 16, 0, 8, {"num_cpus": 18}), (None, 0.5, 0, 8, {"num_cpus": 6}), (None, 1, 0, None, {"num_cpus": 3}),
        (3, 1, 0, 8, {"num_cpus": 5}), (3, 2, 1, 8, {"num_cpus": 8, "num_gpus": 3}),
        (3, 1, 0.5, 8, {"num_cpus": 5, "num_gpus": 2}), (1, 1, 0.5, 8, {"num_cpus": 3, "num_gpus": 1}),
    ],
)  # fmt: skip
def test_a_cluster_on_this_machine_has_cpus_for_its_workers_and_two_more(
    workers: int | None,
    cpus: float,
    gpus: float,
    has: int | None,
    found: dict[str, int],
    ray_stand_in: Any,
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: has)
    ray_stand_in.resources = {"CPU": 100, "GPU": 100}
    with ray_cluster.connected(None, workers, cpus, gpus):
        assert ray_stand_in.stopped == 0
    assert ray_stand_in.stopped == 1
    # "local": Ray would join a cluster that somebody started on this machine, and refuse these options.
    options = {"address": "local", "include_dashboard": False, "object_store_memory": 512 << 20,
               "logging_level": logging.ERROR, "log_to_driver": False}  # fmt: skip
    assert ray_stand_in.started == [{**found, **options}]


def test_a_running_cluster_is_joined_by_its_address(ray_stand_in: Any) -> None:
    with ray_cluster.connected("host:1", 3, 2, 0) as count:
        assert count == 3
    assert ray_stand_in.started == [{"address": "host:1", "logging_level": logging.ERROR, "log_to_driver": False}]
    assert ray_stand_in.stopped == 1


@pytest.mark.parametrize("address", [None, "host:1"])
def test_ray_that_runs_already_is_used_and_left_running(address: str | None, ray_stand_in: Any) -> None:
    ray_stand_in.running = True
    with ray_cluster.connected(address, None, 1, 0) as count:
        assert count == 8
    assert (ray_stand_in.started, ray_stand_in.stopped) == ([], 0)


@pytest.mark.parametrize(
    ("address", "failure", "said"),
    [
        (None, RuntimeError("\n  no port \n more"), "Ray does not start: no port"),
        (None, ConnectionError(), "Ray does not start: ConnectionError"),
        ("h:1", ValueError("bad"), "--ray h:1: bad"), ("h:1", TimeoutError("late"), "--ray h:1: late"),
    ],
)  # fmt: skip
def test_a_cluster_that_does_not_start_says_why(address: Any, failure: Exception, said: str, ray_stand_in: Any) -> None:
    ray_stand_in.failure = failure
    with pytest.raises(EmberletError, match=f"^{said}$"), ray_cluster.connected(address, None, 1, 0):
        pytest.fail("connected")
    assert ray_stand_in.stopped == 1  # what has started of it


def test_an_interrupt_while_ray_starts_stops_it(ray_stand_in: Any) -> None:
    ray_stand_in.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), ray_cluster.connected(None, None, 1, 0):
        pytest.fail("connected")
    assert ray_stand_in.stopped == 1


def test_ray_is_stopped_if_the_cluster_is_too_small_or_the_work_fails(ray_stand_in: Any) -> None:
    with pytest.raises(EmberletError, match="too few"), ray_cluster.connected(None, 9, 1, 0):
        pytest.fail("connected")
    assert ray_stand_in.stopped == 1
    with pytest.raises(KeyError), ray_cluster.connected(None, None, 1, 0):
        raise KeyError("work")
    assert ray_stand_in.stopped == 2


@pytest.mark.parametrize(
    ("has", "workers", "cpus", "gpus", "found"),
    [
        ({"CPU": 10}, None, 1, 0, 8), ({"CPU": 10}, None, 3, 0, 2), ({"CPU": 10}, 5, 1, 0, 5),
        ({"CPU": 10}, 8, 1, 0, 8), ({"CPU": 10}, 9, 1, 0, None), ({"CPU": 2}, None, 1, 0, None),
        ({"CPU": 3}, None, 1, 0, 1), ({"CPU": 10, "GPU": 3}, None, 1, 1, 3), ({"CPU": 10, "GPU": 3}, None, 1, 0.5, 6),
        ({"CPU": 4, "GPU": 9}, None, 1, 1, 2), ({"CPU": 10}, None, 1, 1, None), ({"CPU": 5}, None, 0, 0, 5),
        ({}, 1, 1, 0, None),
    ],
)  # fmt: skip
def test_workers_fit_beside_two_cpus(
    has: dict[str, float], workers: int | None, cpus: float, gpus: float, found: int | None
) -> None:
    if found is not None:
        assert ray_cluster._workers(has, workers, cpus, gpus) == found
        return
    about = f"{workers or 1} workers of {cpus} CPUs" + (f" and {gpus} GPUs" if gpus else "")
    said = (
        f"the cluster has {has.get('CPU', 0)} CPUs and 0 GPUs, too few for {about} and 2 CPUs for reading and writing"
    )
    with pytest.raises(EmberletError, match=f"^{said}$"):
        ray_cluster._workers(has, workers, cpus, gpus)


@pytest.mark.parametrize(("cpus", "threads"), [(1, "1"), (0.5, "1"), (0, "1"), (3, "3"), (2.5, "2")])
def test_workers_use_as_many_threads_as_they_have_cpus(
    cpus: float, threads: str, ray_stand_in: Any, monkeypatch: Any
) -> None:
    found = ray_cluster.variables(cpus)
    assert found["OPENBLAS_NUM_THREADS"] == found["OMP_NUM_THREADS"] == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with ray_cluster.connected(None, None, cpus, 0):
        assert os.environ["OMP_NUM_THREADS"] == "77"
        assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert ray_stand_in.environment["OMP_NUM_THREADS"] == threads
    assert ray_stand_in.environment["OPENBLAS_NUM_THREADS"] == threads
    assert ray_stand_in.environment["RAY_USAGE_STATS_ENABLED"] == "0"
    assert ray_stand_in.environment["RAY_BACKEND_LOG_LEVEL"] == "fatal"


@pytest.mark.parametrize("quiet", [False, True])
def test_what_libraries_write_on_stderr_while_ray_starts_is_dropped(quiet: bool, ray_stand_in: Any, capfd: Any) -> None:
    with ray_cluster.connected(None, None, 1, 0, quiet):
        os.write(2, b"after")
    assert capfd.readouterr().err == ("after" if quiet else "noise of a libraryafter")


def test_logs_of_ray_data_go_to_its_file_only(ray_stand_in: Any, tmp_path: Path) -> None:
    log = logging.getLogger("ray.data")
    shown, kept, other = (
        logging.StreamHandler(),
        logging.FileHandler(tmp_path / "log", delay=True),
        logging.NullHandler(),
    )
    for handler in (shown, kept, other):
        handler.setLevel(logging.INFO)
        log.addHandler(handler)
    try:
        with ray_cluster.connected(None, None, 1, 0):
            assert shown.level > logging.CRITICAL
            assert (kept.level, other.level) == (logging.INFO, logging.INFO)
        assert shown.level == logging.INFO
    finally:
        for handler in (shown, kept, other):
            log.removeHandler(handler)
