"""Where threads wait for each other without Python's lock: POSIX semaphores."""

from __future__ import annotations

import numpy as np

from ..memory import address
from .machine import Machine, record
from .records import Found

_WORDS = 16  # of 64 bits: a semaphore (32 bytes on Linux) and a gap, so that each has a line of the cache to itself


class Semaphores:
    """The semaphores of the meetings of one call at a time, all of them 0."""

    def __init__(self, machine: Machine, threads: int) -> None:
        self._machine = machine
        # [number of the meeting % 2][who has come][who waits for it]: a thread may come to the next meeting before
        # another has seen that it came to this one.
        self._words = np.zeros((2, threads, threads, _WORDS), np.uint64)
        self._stop = np.zeros(1, np.uint32)
        for words in self._words.reshape(-1, _WORDS):
            machine.make_semaphore(address(words))

    def meeting(self, thread: int, number: int) -> Found:
        """The records by which a thread says that it has come to a meeting, and waits for the others."""
        machine, words = self._machine, self._words[number % 2]
        others = [t for t in range(len(words)) if t != thread]
        posts = [record(machine.post, (address(words[thread, t]),)) for t in others]
        stop = address(self._stop)
        takes = [
            record(machine.take, (address(words[t, thread]), stop, machine.try_wait, machine.wait)) for t in others
        ]
        return [*posts, *takes], [self]

    def stop(self) -> None:
        """Let no thread wait here, now or later."""
        self._stop[0] = 1
        for words in self._words.reshape(-1, _WORDS):
            self._machine.release(address(words))
