"""Scratch files of killed processes are removed, those of running ones are not; on systems without locks, by age."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from emberlet.errors import FormatError
from emberlet.host.files import LARGE, FileBytes, atomic_write, map_file
from emberlet.host.folders.folder import Folder
from emberlet.host.folders.scratch import SCRATCH, SCRATCH_END, marked, remove_stale


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that share an open file")
@pytest.mark.parametrize("size", [100, LARGE, 3 * LARGE])
def test_reading_neither_uses_nor_moves_the_place_that_forked_processes_share(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    content = os.urandom(size)
    path.write_bytes(content)
    found = FileBytes(path)
    descriptor = found._file.fileno()
    os.lseek(descriptor, 7, os.SEEK_SET)
    assert bytes(found[0:size]) == content
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 7


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_scratch_files_of_other_users_stay(tmp_path: Path) -> None:
    path = tmp_path / marked(SCRATCH, SCRATCH_END)
    path.write_bytes(b"half")
    os.chown(path, 12345, 12345)
    with atomic_write(tmp_path / "x.bpk") as file:
        file.write(b"new")
    assert path.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.bpk")
    with pytest.raises(OSError, match="is a pipe or a device"), atomic_write(tmp_path / "x.bpk"):
        pass
    assert stat.S_ISFIFO(os.lstat(tmp_path / "x.bpk").st_mode)


@pytest.mark.skipif(os.name != "posix", reason="locks and permissions of POSIX")
def test_a_scratch_file_that_is_being_written_stays(tmp_path: Path) -> None:
    target = tmp_path / "x.bpk"
    with atomic_write(target) as file:
        file.write(b"abc")
        (scratch,) = tmp_path.glob(f"{SCRATCH}*{SCRATCH_END}")
        with Folder.opened(tmp_path) as folder:
            remove_stale(folder)
        assert scratch.exists() and not target.exists()
    assert target.read_bytes() == b"abc" and [p.name for p in tmp_path.iterdir()] == ["x.bpk"]


@pytest.mark.skipif(os.name != "posix", reason="locks and permissions of POSIX")
def test_a_replaced_file_keeps_its_permissions_and_a_link_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "x.bpk", tmp_path / "link.bpk"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "x.bpk"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(target) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert target.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["x.bpk"]
    with pytest.raises(OSError, match="no space") as caught, atomic_write(target) as file:
        raise OSError(28, "no space left")
    assert caught.value.filename == str(target)
    for folder in (tmp_path, f"{tmp_path / 'sub'}{os.sep}"):
        with pytest.raises(IsADirectoryError, match="is a folder"), atomic_write(folder):
            pass
    with pytest.raises(OSError) as caught, atomic_write(tmp_path / "none" / "x.bpk"):
        pass
    assert caught.value.filename == str(tmp_path / "none" / "x.bpk")


@pytest.mark.parametrize("size", [0, 5, LARGE - 1, LARGE, LARGE + 5])
def test_parts_of_a_file_are_its_bytes(tmp_path: Path, size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    path = tmp_path / "x"
    path.write_bytes(content[:size])
    found = FileBytes(path)
    assert len(found) == size
    for part in (slice(None), slice(1, None), slice(2, 4), slice(-3, None), slice(size, None), slice(3, size + 9)):
        assert bytes(found[part]) == content[:size][part]
    assert found.read(0, 0) == b""
    assert bytes(map_file(path)) == content[:size]


@pytest.mark.parametrize("size", [100, LARGE + 100])
def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(size))
    found = FileBytes(path)
    os.truncate(path, size - 30)
    with pytest.raises(FormatError, match="30 bytes are missing"):
        found[0:size]
    with pytest.raises(FormatError, match="10 bytes are missing"):
        found.read(size - 40, 20)
    assert bytes(found[5:50]) == bytes(45)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_is_read_whole(tmp_path: Path) -> None:
    import threading

    for read in (lambda p: bytes(map_file(p)), lambda p: bytes(FileBytes(p)[0:6])):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(b"abcdef",))
        writer.start()
        assert read(pipe) == b"abcdef"
        writer.join()
        pipe.unlink()
