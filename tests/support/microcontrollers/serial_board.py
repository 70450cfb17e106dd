"""A board on a serial port: MicroPython's Unix port behind a pseudo-terminal, for mpremote to connect to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.micropython import Port


@contextmanager
def serial_board(port: Port, romfs: int = 256 * 1024) -> Iterator[str]:
    """The name of a serial port with a board behind it; romfs: the size of its ROMFS partition in bytes."""
    import tty  # Windows has no pseudo-terminals, and no Unix port either

    board, computer = os.openpty()
    tty.setraw(computer)
    command = [*port.command, "-X", "heapsize=4M", str(Path(__file__).with_name("board.py")), str(romfs)]
    process = subprocess.Popen(command, stdin=board, stdout=board, stderr=subprocess.PIPE)
    os.close(board)
    try:
        yield os.ttyname(computer)
    finally:
        process.kill()
        process.communicate()
        os.close(computer)


def mpremote(serial: str, *arguments: str) -> str:
    """The output of mpremote. Raises AssertionError if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "mpremote", "connect", serial, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace("\r\n", "\n")
