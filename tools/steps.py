"""Runs long steps: prints a line when one starts, writes its output to a log, and repeats it if the network failed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .paths import CACHE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGS = CACHE / "logs"
_running: set[subprocess.Popen[bytes]] = set()  # by `run`, in any thread


class StepError(Exception):
    """A step failed; the message has the command and the end of its output."""


def say(text: str) -> None:
    """Print a line and flush."""
    print(text, flush=True)


def step(what: str, action: Callable[[], None]) -> None:
    """Print `what`, run the action, print how long it took.

    Raises:
        StepError: As `action` raises it.
    """
    print(f"  {what} … ", end="", flush=True)
    start = time.monotonic()
    try:
        action()
    except BaseException:
        say("failed")
        raise
    say(f"{time.monotonic() - start:.0f} s")


def together(steps: Mapping[str, Callable[[], None]]) -> dict[str, BaseException]:
    """Run actions side by side, and print the name of each and how long it took when it ends.

    An interrupt, or what else ends the wait, kills the commands that `run` has started for them.

    Returns:
        The errors of those that failed, under their names.
    """
    errors: dict[str, BaseException] = {}

    def one(what: str, action: Callable[[], None]) -> None:
        start = time.monotonic()
        try:
            action()
        except BaseException as error:  # SystemExit, too, would end this thread only
            errors[what] = error
        said = "failed" if what in errors else f"{time.monotonic() - start:.0f} s"
        say(f"  {what} … {said}")

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in steps.items()]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        for process in [*_running]:
            process.kill()
        raise
    return errors


def run(
    command: Sequence[str | Path], *, tries: int = 1, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> None:
    """Run a command with its output in `.cache/logs/`. tries: more than one for commands that a bad network can fail.

    Raises:
        StepError: Every try failed.
    """
    words = [str(word) for word in command]
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{Path(words[0]).name}-{os.getpid()}-{threading.get_native_id()}.log"
    for attempt in range(1, tries + 1):
        with log.open("wb") as output:
            status = _status(words, output, cwd, {**os.environ, **(env or {})})
        if status == 0:
            log.unlink(missing_ok=True)
            return
        if attempt < tries:
            time.sleep(3 * attempt)
    tail = "\n".join(log.read_text(errors="replace", encoding="utf-8").splitlines()[-15:])
    raise StepError(f"`{shlex.join(words)}` ended with status {status}; the end of {log}:\n{tail}")


def _status(words: list[str], output: IO[bytes], cwd: Path, env: Mapping[str, str]) -> int:
    """Run a command, which `together` can end."""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd, env=env
    ) as process:
        _running.add(process)
        try:
            return process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            _running.discard(process)


@contextmanager
def install_lock(name: str = "install") -> Iterator[None]:
    """Let one process of this checkout install at a time; the others wait. name: of what it installs."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w", encoding="utf-8") as lock:
        if not _locked(lock.fileno(), wait=False):
            say("  waiting for another process to finish installing …")
            _locked(lock.fileno(), wait=True)
        yield


def _locked(descriptor: int, *, wait: bool) -> bool:
    """Try to lock a file; whether this process now holds the lock. Closing the file releases it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            while True:  # LK_LOCK gives up after ten seconds
                with suppress(OSError):
                    msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                    return True
                if not wait:
                    return False
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
