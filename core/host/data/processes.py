"""Processes that make the batches of a DataLoader ahead.

Each has a connection of its own, so that a killed process breaks nothing that others use; the end of a process shows in
its sentinel. Numbers of batches go to it, pickled batches come back, arrays beside the pickle and without a copy in it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from ...data.errors import DataError
from ...errors import ArgumentError

SECONDS = 5.0  # a process has this long to end by itself


class Processes:
    """Batches in order, made in turns by `workers` processes, of which each has at most `prefetch` orders.

    context: how they are started, "fork", "spawn" or "forkserver"; by default as Python does.
    """

    def __init__(self, batches: Any, numbers: Iterable[int], workers: int, prefetch: int, context: str | None) -> None:
        numbers = list(numbers)
        self._numbers: Iterator[int] = iter(numbers)
        self._workers: list[tuple[Any, Connection]] = []
        self._pending: list[tuple[Any, Connection, int]] = []  # the orders, in the order of the batches
        self._next = 0
        try:
            started: Any = multiprocessing.get_context(context)
        except ValueError:
            there = ", ".join(multiprocessing.get_all_start_methods())
            raise ArgumentError(f"context is one of {there} on this system, found {context!r}") from None
        forked = started.get_start_method() == "fork"
        if forked:
            batches.ready()
        try:
            for i in range(min(workers, len(numbers))):
                ours, theirs = started.Pipe()
                inherited = [c for _, c in self._workers] + [ours] if forked else []
                process = started.Process(
                    target=_work, args=(batches, theirs, inherited), daemon=True, name=f"emberlet-data-{i}"
                )
                try:
                    process.start()
                except (pickle.PicklingError, AttributeError, TypeError) as error:  # pickle raises all of these
                    raise DataError(
                        f"the data set or the batcher cannot be sent to a process: {error}; define its functions and "
                        "classes at the top of a module, or use threads: processes=False",
                        None,
                        error,
                    ) from error
                theirs.close()
                self._workers.append((process, ours))
            for _ in range(prefetch * len(self._workers)):
                self._order()
        except BaseException:
            self.close()
            raise

    def _order(self) -> None:
        k = next(self._numbers, None)
        if k is None:
            return
        process, connection = self._workers[self._next % len(self._workers)]
        self._next += 1
        with contextlib.suppress(OSError):  # it ended, which shows when the batch is asked for
            connection.send_bytes(str(k).encode())
        self._pending.append((process, connection, k))

    def is_ready(self) -> bool:
        """Whether the next batch is there, or its process ended."""
        return bool(self._pending) and bool(wait([self._pending[0][1], self._pending[0][0].sentinel], 0))

    def get(self) -> Any:
        """The next batch. Raises DataError, also if its process ended."""
        process, connection, k = self._pending.pop(0)
        wait([connection, process.sentinel])
        try:
            if not connection.poll():
                raise EOFError
            kind, *found = _received(connection)
        except (EOFError, OSError) as error:
            process.join(SECONDS)
            raise DataError(
                f"the worker process {process.pid} {_end(process.exitcode)} while it made batch {k}; "
                "with workers=0 the batch is made in this process"
            ) from error
        self._order()
        if kind == "batch":
            return found[0]
        message, index, cause, trace = found
        if cause is not None:
            cause.add_note(f"In a worker process:\n{trace}")
            raise DataError(message, index, cause)
        raise DataError(f"{message}\nIn a worker process:\n{trace}", index)

    def close(self) -> None:
        """End the processes, and wait until they have."""
        busy = bool(self._pending)
        for _, connection in self._workers:
            if not busy:
                with contextlib.suppress(OSError):
                    connection.send_bytes(b"")  # its end: a copy of the connection may be open in another process
            connection.close()
        for process, _ in self._workers:
            if not busy:
                process.join(SECONDS)
            if process.is_alive():
                process.terminate()
                process.join(SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._workers, self._pending = [], []


def _end(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def _work(batches: Any, connection: Connection, inherited: list[Connection]) -> None:
    """What a worker runs: makes the batches whose numbers arrive, until its connection or its parent ends."""
    for other in inherited:  # else a worker would not see that its parent ended
        other.close()
    # Ctrl-C is for the parent, which then ends its workers; what the parent does at SIGTERM is not for them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    sentinels = [] if parent is None else [parent.sentinel]
    with contextlib.suppress(EOFError, OSError):
        while connection in wait([connection, *sentinels]):
            order = connection.recv_bytes()
            if not order:
                return
            _send(connection, _made(batches, int(order)))


def _made(batches: Any, k: int) -> list[Any]:
    """The parts of the message of batch k: a pickle, and the buffers of its arrays."""
    try:
        return _pickled(("batch", batches.make(k)))
    except DataError as error:
        found = error
    except Exception as error:  # a batch that cannot be pickled
        found = DataError(f"batch {k} cannot be sent from its process: {type(error).__name__}: {error}", None, error)
    cause = found.__cause__
    trace = "".join(traceback.format_exception(cause or found))
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # some exceptions take other arguments than they keep
        cause = None
    return _pickled(("error", str(found), found.index, cause, trace))


def _pickled(value: Any) -> list[Any]:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [data, *[b.raw() for b in buffers]]


def _send(connection: Connection, parts: list[Any]) -> None:
    connection.send_bytes(",".join(str(memoryview(p).nbytes) for p in parts).encode())
    for part in parts:
        connection.send_bytes(part)


def _received(connection: Connection) -> Any:
    sizes = [int(n) for n in connection.recv_bytes().split(b",")]
    data = connection.recv_bytes()
    buffers = []
    for size in sizes[1:]:
        buffer = bytearray(max(1, size))
        connection.recv_bytes_into(buffer)
        buffers.append(memoryview(buffer)[:size])
    return pickle.loads(data, buffers=buffers)
