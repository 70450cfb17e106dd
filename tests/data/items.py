"""Data sets and batchers that worker processes can import."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any


class Numbers:
    """0 … n - 1."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> int:
        return i


class Refusing(Numbers):
    def __init__(self, n: int, at: int) -> None:
        super().__init__(n)
        self.at = at

    def __getitem__(self, i: int) -> int:
        if i == self.at:
            raise ValueError("no item like this")
        return i


class OddError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__("it takes two")


class Odd(Numbers):
    """Its exception cannot be unpickled."""

    def __getitem__(self, i: int) -> int:
        raise OddError("a", "b")


class Killing(Refusing):
    def __getitem__(self, i: int) -> int:
        if i == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Exiting(Numbers):
    def __getitem__(self, i: int) -> int:
        os._exit(3)


class Slow(Numbers):
    def __getitem__(self, i: int) -> int:
        time.sleep(0.01)
        return i


class Noting(Numbers):
    """Writes a byte to a file for each item that is read."""

    def __init__(self, n: int, path: str) -> None:
        super().__init__(n)
        self.path = path

    def __getitem__(self, i: int) -> int:
        with open(self.path, "ab") as file:
            file.write(b".")
        return i


class Several(Numbers):
    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.asked: list[Sequence[int]] = []

    def __getitems__(self, indices: Sequence[int]) -> list[int]:
        self.asked.append(list(indices))
        return list(indices)


class TooFew(Numbers):
    def __getitems__(self, indices: Sequence[int]) -> list[int]:
        return [0]


def doubled(x: int) -> int:
    return 2 * x


def broken_batcher(rows: list[int]) -> Any:
    return 1 // 0


def unpicklable_batcher(rows: list[int]) -> Any:
    return threading.Lock()
