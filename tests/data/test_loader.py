"""DataLoader: the same batches whatever makes them, errors that name the item, an end that leaves nothing behind."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.data import (
    ArrayDataset,
    DataError,
    DataLoader,
    InMemDataset,
    MapperDataset,
    PartialDataset,
    SamplerDataset,
    ShuffledDataset,
)
from emberlet.errors import ArgumentError
from hypothesis import given, settings
from hypothesis import strategies as st

from . import items

WAYS: dict[str, dict[str, Any]] = {
    "no worker": {},
    "a thread": {"workers": 1},
    "threads": {"workers": 4, "prefetch": 3},
    "a process": {"workers": 1, "processes": True, "context": "fork"},
    "processes": {"workers": 3, "processes": True, "context": "fork"},
    "spawned": {"workers": 2, "processes": True, "context": "spawn"},
}
QUICK = [name for name in WAYS if name != "spawned"]


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Any:
    before = multiprocessing.active_children()  # of other files' tests
    yield
    if len(multiprocessing.active_children()) > len(before) or any(map(_of_a_loader, threading.enumerate())):
        gc.collect()  # takes a second in a process that has run other tests
    assert [child for child in multiprocessing.active_children() if child not in before] == []
    assert [t.name for t in threading.enumerate() if _of_a_loader(t)] == []


def _of_a_loader(thread: threading.Thread) -> bool:
    return thread.name.startswith("emberlet-data")


def values(loader: DataLoader, **options: Any) -> list[list[int]]:
    return [batch.tolist() for batch in loader.iter(**options)]


def flat(batches: list[list[int]]) -> list[int]:
    return list(itertools.chain(*batches))


def loader(way: str, dataset: Any = None, batcher: Any = None, **options: Any) -> DataLoader:
    found = items.Numbers(23) if dataset is None else dataset
    return DataLoader(found, batcher, **{"batch_size": 4, **WAYS[way], **options})


@pytest.mark.parametrize("way", WAYS)
def test_order_depends_on_seed_and_epoch_only(way: str) -> None:
    here, there = loader("no worker", shuffle=5), loader(way, shuffle=5)
    epochs = [values(here) for _ in range(3)]
    assert len({str(e) for e in epochs}) == 3
    assert all(sorted(flat(e)) == list(range(23)) for e in epochs)
    assert values(there, epoch=1, start=2) == epochs[1][2:]
    if way == "spawned":  # each epoch takes a second
        return
    there.set_epoch(0)
    assert [values(there) for _ in range(3)] == epochs
    assert values(loader(way, shuffle=6)) != epochs[0]


@settings(max_examples=25)
@given(
    st.integers(0, 30), st.integers(1, 9), st.one_of(st.none(), st.integers(0, 2**70)), st.sampled_from(QUICK),
    st.booleans(),
)  # fmt: skip
def test_batches_hold_every_item_once(n: int, size: int, seed: int | None, way: str, drop: bool) -> None:
    found = loader(way, items.Numbers(n), batch_size=size, shuffle=seed, drop_last=drop)
    batches = values(found)
    assert len(batches) == len(found)
    assert [len(b) for b in batches] == [size] * (n // size) + [n % size] * (n % size > 0 and not drop)
    held = flat(batches)
    assert len(held) == found.num_items() == len(set(held))
    assert seed is not None or held == list(range(found.num_items()))
    assert set(held) <= set(range(n))


@pytest.mark.parametrize("way", WAYS)
def test_error_names_the_item_and_keeps_its_cause(way: str) -> None:
    batches = iter(loader(way, items.Refusing(23, 9)))
    assert next(batches).tolist() == [0, 1, 2, 3]
    assert next(batches).tolist() == [4, 5, 6, 7]
    with pytest.raises(DataError, match=r"item 9.*ValueError") as caught:
        next(batches)
    assert caught.value.index == 9
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("way", ["no worker", "a thread", "a process"])
def test_error_comes_after_the_batches_before_it(way: str) -> None:
    batches = iter(loader(way, items.Refusing(23, 9), backend="python"))
    for expected in ([0, 1, 2, 3], [4, 5, 6, 7]):
        time.sleep(0.05)  # so that the batch with the error is there
        assert next(batches).tolist() == expected
    with pytest.raises(DataError, match="item 9"):
        next(batches)
    assert list(batches) == []


def test_iteration_that_the_garbage_collector_drops_in_its_thread_ends() -> None:
    class Collecting(items.Numbers):
        def __getitem__(self, i: int) -> int:
            if i == 8:
                dropped.wait()
                gc.collect()
            return i

    dropped = threading.Event()
    batches = iter(loader("a thread", Collecting(23), prefetch=9))
    next(batches)
    cycle: list[Any] = [batches]
    cycle.append(cycle)
    pool = batches._source._pool
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        del batches, cycle
        dropped.set()
        pool.shutdown(wait=True)
    finally:
        sys.unraisablehook = hook
    assert unraisable == []


@pytest.mark.parametrize("way", QUICK)
def test_error_of_a_batcher_names_its_items(way: str) -> None:
    with pytest.raises(DataError, match=r"batch 0 \(items 0, 1, 2, 3\): ZeroDivisionError"):
        next(iter(loader(way, batcher=items.broken_batcher)))


def test_exception_that_does_not_pickle_comes_as_text() -> None:
    with pytest.raises(DataError, match=r"OddError: it takes two.*\n.*In a worker process") as caught:
        next(iter(loader("processes", items.Odd(9))))
    assert caught.value.index == 0


def test_batch_that_does_not_pickle_is_named() -> None:
    with pytest.raises(DataError, match="batch 0"):
        next(iter(loader("processes", batcher=items.unpicklable_batcher)))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_killed_process_gives_an_error_and_no_hang(context: str) -> None:
    batches = iter(loader("processes", items.Killing(23, 9), context=context))
    with pytest.raises(DataError, match=r"worker process [0-9]+ was ended by SIGKILL while it made batch 2"):
        list(batches)


def test_process_that_is_killed_from_outside_gives_an_error() -> None:
    batches = iter(loader("processes", items.Slow(400), prefetch=1))
    next(batches)
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    with pytest.raises(DataError, match="SIGKILL"):
        list(batches)


def test_process_that_exits_gives_an_error() -> None:
    with pytest.raises(DataError, match="status 3"):
        list(loader("processes", items.Exiting(9)))


@pytest.mark.parametrize("way", WAYS)
def test_iteration_that_is_dropped_midway_leaves_nothing(way: str) -> None:
    batches = iter(loader(way, items.Numbers(1000)))
    next(batches)
    del batches  # the fixture looks for processes and threads
    for _ in loader(way, items.Numbers(1000)):
        break
    closed = iter(loader(way, items.Numbers(1000)))
    next(closed)
    closed.close()
    closed.close()
    assert list(closed) == []


def test_two_iterations_at_once_do_not_disturb_each_other() -> None:
    for way in QUICK:
        both = loader(way, shuffle=1)
        first, second = iter(both), iter(both)
        a, b = [], []
        for _ in range(len(both)):
            a.append(next(first).tolist())
            b.append(next(second).tolist())
        assert [a, b] == [values(loader("no worker", shuffle=1), epoch=e) for e in (0, 1)]


@pytest.mark.parametrize("way", ["threads", "processes"])
def test_no_more_batches_are_made_than_may_be_ahead(way: str, tmp_path: Path) -> None:
    made = items.Noting(200, str(tmp_path / "made"))
    batches = iter(loader(way, made, batch_size=1, workers=2, prefetch=3))
    for taken in range(1, 5):
        next(batches)
        time.sleep(0.05)
        assert (tmp_path / "made").stat().st_size <= taken + 2 * 3
    batches.close()


@pytest.mark.parametrize("way", ["no worker", "threads", "processes"])
def test_interrupt_ends_the_workers(way: str, tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches every process of the group."""
    file = tmp_path / "main.py"
    file.write_text(
        f"""import os, sys, multiprocessing
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from data import items
from emberlet.data import DataLoader

try:
    for i, _ in enumerate(DataLoader(items.Slow(10**6), batch_size=2, **{WAYS[way]!r})):
        if i == 2:
            print("going", flush=True)
except KeyboardInterrupt:
    print("interrupted", len(multiprocessing.active_children()), flush=True)
""",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("going")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert (output, errors) == ("interrupted 0\n", "")


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "main.py"
    file.write_text(
        f"import multiprocessing, sys\nsys.path[:0] = [{str(Path(__file__).parents[1])!r}]\nfrom data import items\n"
        "from emberlet.data import DataLoader\n"
        "batches = iter(DataLoader(items.Slow(10**6), workers=3, processes=True, context='fork'))\nnext(batches)\n"
        "print(*[p.pid for p in multiprocessing.active_children()], flush=True)\nnext(batches)\ninput()\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 3
    process.kill()
    process.wait()
    end = time.monotonic() + 300
    while any(_runs(pid) for pid in workers):
        assert time.monotonic() < end, "a worker outlived its parent"
        time.sleep(0.02)
    process.stdout.close()
    if process.stdin:
        process.stdin.close()


def _runs(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


@pytest.mark.parametrize("way", WAYS)
def test_tensors_of_a_batch_are_moved_to_the_backend(way: str) -> None:
    class Batch:
        def __init__(self, x: Any) -> None:
            self.x = x

    pairs = [{"x": np.float32(i), "names": "ab", "t": (i, [i])} for i in range(9)]
    for batch in loader(way, pairs, backend="python"):
        assert batch["x"].backend is emberlet.get_backend("python")
        assert batch["t"][1].backend is emberlet.get_backend("python")
        assert batch["names"][0] == "ab"
    if way in ("no worker", "threads"):
        own = loader(way, pairs, lambda rows: Batch(emberlet.asarray([r["x"] for r in rows])), backend="python")
        assert next(iter(own)).x.backend is emberlet.get_backend("python")


@pytest.mark.parametrize("way", ["no worker", "threads"])
def test_progress_counts_the_items_handed_out(way: str) -> None:
    batches = iter(loader(way, backend="numpy"))
    assert (batches.progress().items_processed, batches.progress().items_total, len(batches)) == (0, 23, 6)
    next(batches)
    assert (batches.progress().items_processed, len(batches)) == (4, 5)
    for _ in batches:
        pass
    assert batches.progress().items_processed == 23


def test_sample_is_drawn_anew_for_every_epoch() -> None:
    sampled = MapperDataset(SamplerDataset(items.Numbers(50), 10, seed=3), items.doubled)
    here, there = loader("no worker", sampled), loader("processes", sampled)
    epochs = [values(here) for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert [values(there) for _ in range(2)] == epochs


def test_arrays_are_batched_as_their_rows_are() -> None:
    x, y = np.arange(30, dtype=np.float64).reshape(10, 3), np.arange(10, dtype=np.uint8)
    for fast, slow in (
        (ArrayDataset(x, y), [(x[i], y[i]) for i in range(10)]),
        (ArrayDataset(a=x, b=y), [{"a": x[i], "b": y[i]} for i in range(10)]),
        (x, list(x)),
    ):
        for a, b in zip(loader("no worker", fast, shuffle=2), loader("no worker", slow, shuffle=2), strict=True):
            keys = a if isinstance(a, dict) else range(2)
            for p, q in [(a[k], b[k]) for k in keys] if isinstance(a, tuple | dict) else [(a, b)]:
                assert p.dtype is q.dtype
                assert p.tolist() == q.tolist()


def test_data_sets_that_give_several_items_at_once_are_asked_so() -> None:
    many = items.Several(10)
    assert values(loader("no worker", many)) == values(loader("no worker", items.Numbers(10)))
    assert many.asked == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(DataError, match=r"gave 1.*4"):
        next(iter(loader("no worker", items.TooFew(10))))


def test_data_sets_of_others_are_data_sets() -> None:
    for other in (range(9), np.arange(9), InMemDataset(range(9)), tuple(range(9)), emberlet.arange(9)):
        assert flat(values(loader("threads", other))) == list(range(9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is an integer of at least 1, found 0"),
        ({"batch_size": 2.5}, "batch_size is an integer of at least 1, found 2.5"),
        ({"workers": -1}, "workers is an integer of at least 0"),
        ({"prefetch": 0}, "prefetch is an integer of at least 1"),
        ({"shuffle": True}, "shuffle is a seed"),
        ({"shuffle": "yes"}, "shuffle is a seed"),
        ({"batcher": 5}, "a batcher is a function or has batch"),
        ({"dataset": iter([1])}, "found list_iterator; put what can only be iterated"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        DataLoader(**{"dataset": [1], **options})


def test_batches_begin_at_a_number_from_0_on() -> None:
    with pytest.raises(ArgumentError, match="found -1"):
        loader("no worker").iter(start=-1)
    assert values(loader("no worker"), start=6) == values(loader("threads"), start=99) == []


def test_seed_may_be_a_number_of_numpy() -> None:
    for seed in (np.int64(42), np.uint8(42)):
        assert values(loader("no worker", shuffle=seed)) == values(loader("no worker", shuffle=42))
        assert list(SamplerDataset(range(9), 20, False, seed)) == list(SamplerDataset(range(9), 20, False, 42))


def test_part_of_a_shuffled_data_set_reaches_workers() -> None:
    part = PartialDataset(ShuffledDataset(items.Numbers(23), seed=1), 3, 20)
    assert values(loader("spawned", part)) == values(loader("no worker", part))


def test_what_cannot_be_sent_to_a_process_is_said() -> None:
    with pytest.raises(DataError, match=r"cannot be sent to a process: .*lambda.* use threads"):
        iter(loader("spawned", MapperDataset(range(9), lambda i: i)))
    with pytest.raises(ArgumentError, match=r"context is one of .*found 'thread'"):
        iter(loader("processes", context="thread"))
    assert flat(values(loader("processes", MapperDataset(range(9), lambda i: 2 * i)))) == list(range(0, 18, 2))
