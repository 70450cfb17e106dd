"""The next save into a folder removes half-written files of killed processes, and no other files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from emberlet.host.files import atomic_write
from emberlet.host.folders import scratch as scratches
from emberlet.host.together import together

fcntl = pytest.importorskip("fcntl", reason="files are locked by POSIX's flock")

WRITER = """
import sys, time
from emberlet.host.files import atomic_write

with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def writer(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing the file at `path`."""
    made = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "writing\n"
    return made


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def scratch(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".emberlet-")]


def save(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"whole")


def generate(path: Path) -> None:
    with together(path.parent) as draft:
        (draft / path.name).write_bytes(b"whole")


@pytest.mark.parametrize("work", [save, generate])
def test_the_next_file_of_any_name_removes_what_a_killed_writer_left(tmp_path: Path, work) -> None:  # type: ignore[no-untyped-def]
    for process in [writer(tmp_path / name) for name in ("a.bpk", "b.bpk")]:
        kill(process)
    assert len(scratch(tmp_path)) == 2
    work(tmp_path / "c.bpk")
    assert sorted(os.listdir(tmp_path)) == ["c.bpk"]


@pytest.mark.parametrize("work", [save, generate])
def test_a_file_that_somebody_writes_stays(tmp_path: Path, work) -> None:  # type: ignore[no-untyped-def]
    busy = writer(tmp_path / "a.bpk")
    try:
        work(tmp_path / "c.bpk")
        assert len(scratch(tmp_path)) == 1
    finally:
        kill(busy)


def test_the_files_of_others_stay(tmp_path: Path) -> None:
    others = [
        ".x.tmp",
        "emberlet-1.tmp",
        ".emberlet-1.tmp",
        f".emberlet-{'a' * 24}.tmp",
        ".emberlet-notes",
        "a.tmp",
        ".c.bpk.0a1b2c3d.tmp",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
        os.utime(tmp_path / name, (0, 0))
    save(tmp_path / "c.bpk")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "c.bpk"])


def test_without_locks_only_old_files_are_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratches, "lock", lambda descriptor, wait: None)
    old, new = (tmp_path / scratches.marked(scratches.SCRATCH, scratches.SCRATCH_END) for _ in range(2))
    for path, age in ((old, 7200), (new, 60)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    save(tmp_path / "c.bpk")
    assert sorted(os.listdir(tmp_path)) == [new.name, "c.bpk"]


def test_many_writers_in_one_folder_do_not_take_each_other_for_dead(tmp_path: Path) -> None:
    failed = []

    def saves(number: int) -> None:
        try:
            for _ in range(60):
                save(tmp_path / f"{number % 3}.bpk")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=saves, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    assert sorted(os.listdir(tmp_path)) == ["0.bpk", "1.bpk", "2.bpk"]


def test_the_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".bpk")
    save(path)
    assert path.read_bytes() == b"whole"
