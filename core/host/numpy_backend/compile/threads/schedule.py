"""Which thread runs which steps of a plan, and where the threads wait for each other.

Steps are taken in their order. Each is split, or given to one thread, in the way that lets the threads be done first;
where it would read or change what another thread changes since they met last, they meet before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .....dtypes import float32
from ...storage import Array
from ..blocks import uses_of
from ..memory import Buffer, Buffers, address
from ..native.machine import machine
from ..steps import Step, arrays_in
from ..tracing import Call
from .splitting import LEAST, seconds, ways, written

# Minimum multiplications of a plan that several threads run. ShuffleNet, with 2^27, takes 4.7 instead of 8.0 ms on two
# cores (Intel) in threads of its own, of which one has to be woken in each call (50 µs).
LARGE = 1 << 26
# The same where every step takes Python's lock. ResNet-50, with twice as many, is a tenth faster than with OpenBLAS's
# threads; SqueezeNet and MiniLM, with fewer than half of ResNet-50's, are a tenth slower.
LARGE_LOCKED = 1 << 31
MEETING = 4e-5  # seconds that a meeting takes, with what it costs that one thread is done earlier
WORK = 10_000  # bound of the search for elements that two arrays share

Phase = list[list[Step]]  # the steps of each thread between two meetings


def multiplications(calls: Iterable[Call]) -> int:
    """About how many multiplications of float32 the products and convolutions among calls take."""
    found = 0
    for call in calls:
        if not call.results or call.results[0].dtype is not float32:
            continue
        count = 1
        for n in call.results[0].shape:
            count *= n
        if call.op in ("matmul", "linear"):
            found += count * int(call.args[0].shape[-1])
        elif call.op == "conv":
            terms = 1
            for n in call.args[1].shape[1:]:
                terms *= n
            found += count * terms
    return found


def large(multiplications: int) -> bool:
    """Whether several threads run a plan of so many multiplications."""
    return multiplications >= (LARGE_LOCKED if machine() is None else LARGE)


class _Since:
    """What the threads have done since they met last."""

    def __init__(self, threads: int) -> None:
        self.lists: Phase = [[] for _ in range(threads)]
        self.loads = [0.0] * threads
        self.used: dict[int, list[tuple[int, Array, bool]]] = {}  # id of a buffer -> (thread, array, is it changed)


def scheduled(steps: list[Step], buffers: Buffers, threads: int) -> list[Phase]:
    """The steps of each thread, meeting by meeting."""
    phases = [_Since(threads)]
    cuts: dict[int, list[int]] = {}
    for together in _together(steps, buffers):
        own = together[0].thread is None
        now = phases[-1]
        best: tuple[float, bool, list[tuple[int, Step]]] | None = None
        given = [[(step.thread or 0, step) for step in together]]
        for parts in _choices(together[0], threads, cuts, buffers) if own else given:
            used = [(t, *u) for t, part in parts for u in _used(part, buffers)]
            if own and len(parts) > 1 and _conflict(used, _by_buffer(used)):
                continue
            meets = _conflict(used, now.used)
            loads = [max(now.loads) + MEETING] * threads if meets else list(now.loads)
            for t, part in parts:
                loads[t] += seconds(part)
            if best is None or max(loads) < best[0] - 1e-9:
                best = max(loads), meets, parts
        assert best is not None
        if best[1]:
            phases.append(_Since(threads))
        now = phases[-1]
        for t, part in best[2]:
            now.lists[t].append(part)
            now.loads[t] += seconds(part)
            for array, buffer, changed in _used(part, buffers):
                now.used.setdefault(id(buffer), []).append((t, array, changed))
        if len(best[2]) > 1:
            _note_cuts(cuts, best[2], buffers, threads)
    return [phase.lists for phase in phases]


def _together(steps: list[Step], buffers: Buffers) -> Iterable[list[Step]]:
    """Each step alone, but those whose threads are given in runs, in which no thread reads what another changes."""
    run: list[Step] = []
    users: dict[tuple[int, bool], set[int]] = {}  # (id of a buffer, is it changed) -> threads
    for step in steps:
        if step.thread is not None:
            # A buffer that several threads change, each in its part, does not end a run.
            uses = {(id(buffer), changed) for _, buffer, changed in _used(step, buffers)}
            if any(users.get((number, not changed), set()) - {step.thread} for number, changed in uses):
                yield run
                run, users = [], {}
            for use in uses:
                users.setdefault(use, set()).add(step.thread)
            run.append(step)
            continue
        if run:
            yield run
            run, users = [], {}
        yield [step]
    if run:
        yield run


def _note_cuts(cuts: dict[int, list[int]], parts: list[tuple[int, Step]], buffers: Buffers, threads: int) -> None:
    """Note where each thread begins to write in the buffers that all of them write."""
    starts: dict[int, dict[int, int]] = {}  # id of a buffer -> thread -> where it writes first
    for t, part in parts:
        for array in written(part):
            starts.setdefault(id(buffers.of(array)), {}).setdefault(t, address(array))
    for key, at in starts.items():
        if len(at) == threads:
            cuts[key] = [at[t] for t in range(1, threads)]


def _choices(
    step: Step, threads: int, cuts: dict[int, list[int]], buffers: Buffers
) -> Iterable[list[tuple[int, Step]]]:
    known = False
    if seconds(step) >= LEAST:
        for parts in ways(step, threads, cuts, buffers.of):
            known = True
            yield list(enumerate(parts))
    # What is not NumPy's own runs in the thread that calls.
    small = known or step.over is not None or isinstance(step.function, np.ufunc)
    for thread in range(threads if small else 1):
        yield [(thread, step)]


def _used(step: Step, buffers: Buffers) -> Iterable[tuple[Array, Buffer, bool]]:
    changed = written(step)
    for array in (*changed, *arrays_in(step.args)):
        buffer = buffers.of(array)
        if buffer is not None:
            yield array, buffer, any(array is c for c in changed)


def _by_buffer(used: list[tuple[int, Array, Buffer, bool]]) -> dict[int, list[tuple[int, Array, bool]]]:
    found: dict[int, list[tuple[int, Array, bool]]] = {}
    for thread, array, buffer, changed in used:
        found.setdefault(id(buffer), []).append((thread, array, changed))
    return found


def _conflict(used: list[tuple[int, Array, Buffer, bool]], before: dict[int, list[tuple[int, Array, bool]]]) -> bool:
    """Whether one thread uses what another changes."""
    return any(
        thread != other and (changed or changes) and _overlap(array, x)
        for thread, array, buffer, changed in used
        for other, x, changes in before.get(id(buffer), ())
    )


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def uses(phases: list[Phase], buffers: Buffers) -> list[dict[int, int]]:
    """For each thread, `uses_of` its steps, with one use more of each buffer in which it meets what others change."""
    threads = range(len(phases[0]))
    found = [uses_of([step for phase in phases for step in phase[t]], buffers) for t in threads]
    seen: dict[int, dict[Any, tuple[int, Array, bool]]] = {}
    for t in threads:
        for step in (step for phase in phases for step in phase[t]):
            for array, buffer, changed in _used(step, buffers):
                key = (t, changed, address(array), array.shape, array.strides)
                seen.setdefault(id(buffer), {})[key] = t, array, changed
    for number, arrays in seen.items():
        entries = list(arrays.values())
        if any(a[0] < b[0] and (a[2] or b[2]) and _overlap(a[1], b[1]) for a in entries for b in entries):
            for of_thread in found:
                of_thread[number] = of_thread.get(number, 0) + 1
    return found


def lifetimes(phases: list[Phase], buffers: Buffers, inputs: list[Array], roots: list[Array]) -> None:
    """Where each buffer is needed. One that a single thread uses lies with others of that thread, whose steps have an
    order; of others only the order of the meetings is known."""
    threads = len(phases[0])
    users: dict[int, set[int]] = {}
    where: dict[int, list[tuple[int, int, int]]] = {}  # (phase, thread, number of the step)
    found: dict[int, Buffer] = {}
    for phase in phases:
        for t, steps in enumerate(phase):
            for step in steps:
                for _, buffer, _ in _used(step, buffers):
                    found[id(buffer)] = buffer
                    users.setdefault(id(buffer), set()).add(t)
    for array, at in (*((a, 0) for a in inputs), *((a, len(phases) + 1) for a in roots)):
        kept = buffers.of(array)
        if kept is not None:
            found[id(kept)] = kept
            users.setdefault(id(kept), set()).update(range(threads))
            where.setdefault(id(kept), []).append((at, 0, 0))
    counts = [0] * threads
    for p, phase in enumerate(phases, 1):
        for t, steps in enumerate(phase):
            for step in steps:
                counts[t] += 1
                for _, buffer, _ in _used(step, buffers):
                    where.setdefault(id(buffer), []).append((p, t, counts[t]))
    for key, buffer in found.items():
        own = len(users[key]) == 1 and buffer.fill is None
        buffer.arena = 1 + min(users[key]) if own else 0
        at_all = [number if own else p for p, _, number in where[key]]
        buffer.first, buffer.last = min(at_all), max(at_all)
