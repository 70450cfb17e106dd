"""Killing a piece of work at some moment, with all the processes that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path


def killed(
    work: Callable[[], object],
    after: float,
    error: Path,
    number: int = signal.SIGKILL,
    begun: Callable[[], bool] = lambda: True,
) -> bool:
    """Do the work in a fork that is killed after some seconds; whether it was killed before it finished. error: a file
    for what it raises. number: another signal, after which the work may end by itself. begun: whether the seconds
    are counted yet."""
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            work()
        except BaseException:
            error.write_text(traceback.format_exc(), encoding="utf-8")
        os._exit(0)
    end, finished, counted = time.monotonic() + after, False, False
    while not finished and (left := end - time.monotonic()) > 0:
        if not counted:
            counted, end = begun(), time.monotonic() + after
        time.sleep(min(0.005, left))
        # It stays a zombie, whose number nobody else gets, until it is waited for below.
        finished = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    for kill in (os.killpg, os.kill):  # the group is there once the child has made it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, number)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what it started just before
    return os.WIFSIGNALED(status)


def said(error: Path) -> str:
    """What the work raised, once; "" for nothing."""
    if not error.exists():
        return ""
    text = error.read_text(encoding="utf-8")[-400:]
    error.unlink()
    return text
