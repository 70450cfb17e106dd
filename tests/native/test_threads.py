"""Several threads run a plan: its results are the bytes that one thread gives."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm import engine, set_threads, threads
from emberlet.wgpu_backend.wasm.kernels import split
from wasm.test_open_sizes import FUNCTIONS, drawn, near

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((24, 5, 3, 3)).astype(np.float32)
PICTURES = RANDOM.standard_normal((2, 5, 23, 37)).astype(np.float32)


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Threads share every kernel that has more than one step, whatever it costs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LEAST_WORK", "MEETING", "LEAST_SAVED"):
            patch.setattr(split, name, 0)
        patch.setattr(engine, "SHORT", 0)
        before = set_threads(3)
        yield
        set_threads(before)


def network(x: Any) -> Any:
    """Convolutions, a product, row kernels, reductions, padding."""
    y = F.gelu(F.conv2d(x, emberlet.asarray(WEIGHT, backend=x.backend), padding=1))
    rows = F.softmax(y.reshape((48, 23 * 37)), axis=1)
    return rows @ F.permute_dims(rows, (1, 0)), F.cumulative_sum(rows, axis=1), y.mean(axis=(2, 3)), F.argmax(y, axis=3)


def made(count: int, function: Any, *given: Any) -> Any:
    before = set_threads(count)
    try:
        return compile(function, *given, backend="native")
    finally:
        set_threads(before)


def bytes_of(results: Any) -> list[bytes]:
    return [np.asarray(r).tobytes() for r in (results if isinstance(results, tuple) else (results,))]


def test_threads_give_the_bytes_of_one() -> None:
    alone, together = made(1, network, PICTURES), made(3, network, PICTURES)
    steps = together.planned().program.instance.steps
    assert steps.threads == 3 and max(steps._table[2::3]) > 1
    for _ in range(20):
        x = RANDOM.standard_normal(PICTURES.shape).astype(np.float32)
        assert bytes_of(together(x)) == bytes_of(alone(x))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_open_sizes_are_shared_too(function: Any) -> None:
    compiled = compile(function, backend="native", dims={"x": {0: "batch", 1: "length"}})
    for length in (9, 1, 3, 5, 33, 70):
        x = drawn(2, length)
        near(compiled(x), function(emberlet.asarray(x, backend="numpy")), x.shape)
    assert len(compiled._open) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_matrix_that_is_read_again_from_its_end_gives_the_same_results(count: int) -> None:
    matrix = RANDOM.standard_normal((300, 300)).astype(np.float32) / 16

    def steps(x: Any) -> Any:
        m = emberlet.asarray(matrix, backend=x.backend)
        for _ in range(5):
            x = F.tanh(x @ m)
        return x

    x = expected = RANDOM.standard_normal((1, 300)).astype(np.float32)
    for _ in range(5):
        expected = np.tanh(expected @ matrix)
    found = made(count, steps, x)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(found(x)), expected, rtol=1e-4, atol=1e-5)
    assert bytes_of(found(x)) == bytes_of(made(1, steps, x)(x))


def test_runs_of_several_callers_overlap() -> None:
    models = [made(3, network, PICTURES), made(2, network, PICTURES)]
    want = bytes_of(made(1, network, PICTURES)(PICTURES))
    wrong = []

    def caller(model: Any) -> None:
        for _ in range(20):
            if bytes_of(model(PICTURES)) != want:
                wrong.append(model)

    callers = [threading.Thread(target=caller, args=(m,)) for m in models * 2]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    model = made(3, network, PICTURES)
    want = bytes_of(model(PICTURES))
    child = os.fork()
    if not child:
        same = bytes_of(model(PICTURES)) == want and bool(threads.pool()._gates)
        bytes_of(model(np.zeros_like(PICTURES)))
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert bytes_of(model(PICTURES)) == want


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("patience", [30.0, 0.0])
def test_a_process_that_is_forked_while_a_thread_compiles_does_not_hang(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended, real = threading.Event(), threading.Event(), engine._optimized

    def slowly(*given: Any) -> Any:
        began.set()
        ended.wait(0.3)
        found = real(*given)
        ended.set()
        return found

    monkeypatch.setattr(engine, "_optimized", slowly)
    monkeypatch.setattr(engine, "_PATIENCE", patience)
    other = threading.Thread(target=made, args=(1, lambda x: F.tanh(x * 3.7) - patience, PICTURES))
    other.start()
    assert began.wait(30)
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            bytes_of(made(1, lambda x: x * 5.3 - 1.7 - patience, PICTURES)(PICTURES))
            os._exit(0 if ended.is_set() else 1)
        except BackendError as error:
            os._exit(2 if "compile before fork()" in str(error) else 3)
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if patience else 2)
    assert bytes_of(made(1, lambda x: x * 5.3 - 2.9, PICTURES)(PICTURES))


def test_an_interrupt_is_answered_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LONG", 1)
    model = made(3, network, PICTURES)
    want = bytes_of(model(PICTURES))
    steps = model.planned().program.instance.steps
    assert len(steps.pieces) > 3
    call = steps.call
    calls = []

    def interrupted(*given: Any) -> None:
        calls.append(call(*given))
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(steps, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model(PICTURES)
    assert len(calls) == 2
    assert bytes_of(model(PICTURES)) == want


def test_a_thread_helps_again_whose_caller_kept_the_interpreter_busy_meanwhile() -> None:
    """It cannot get back into Python before the next run begins."""
    steps = made(2, network, PICTURES).planned().program.instance.steps
    came: set[int] = set()
    both = threading.Event()

    def task(memory: int, arguments: int, part: int, parts: int, thread: int) -> None:
        came.add(thread)
        if len(came) == 2:
            both.set()
        both.wait(10)

    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint32] * 3)(task)
    table = (ctypes.c_uint64 * 3)(ctypes.cast(run, ctypes.c_void_p).value or 0, 0, 2)
    pool = threads.pool()
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        for _ in range(2):
            came.clear()
            both.clear()
            with pool.taken(2, steps._worker) as many:
                steps.call(0, ctypes.addressof(table), 1, pool.control, many)
            assert came == {0, 1}
            for _ in range(3_000_000):  # longer than a thread looks for work
                pass
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("started", [0, 1])
def test_a_run_has_the_threads_that_the_system_starts(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(3, network, PICTURES)
    want = bytes_of(made(1, network, PICTURES)(PICTURES))
    begin = threading.Thread.start
    monkeypatch.setattr(threads, "_pools", [])

    def start(thread: threading.Thread) -> None:
        if len(threads.pool()._gates) > started:  # the thread's own gate is there already
            raise RuntimeError("can't start new thread")
        begin(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert bytes_of(model(PICTURES)) == want
    assert len(threads.pool()._gates) == started
    assert bytes_of(model(PICTURES)) == want and len(threads.pool()._gates) == 2


def test_a_short_plan_runs_alone_while_other_programs_have_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SHORT", 1 << 40)
    together = made(2, network, PICTURES)
    steps = together.planned().program.instance.steps
    now, busy = [0], True
    ran = []

    def call(memory: int, at: int, count: int, control: int, many: int) -> None:
        ran.append(many)
        now[0] += 1_000 if many == 1 else 1_000_000 if busy else 600

    monkeypatch.setattr(engine.time, "perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(steps, "call", call)
    steps._alone, steps._rest, steps._best = 1, 0, float("inf")
    for _ in range(2000):
        steps.run(0)
    assert ran[:8] == [1, 2, 1, 2, 1, 1, 1, 2]
    assert 5 < ran.count(2) < 20
    busy = False
    ran.clear()
    for _ in range(2000):
        steps.run(0)
    assert ran[-500:] == [2] * 500


def test_the_number_of_threads_is_checked() -> None:
    assert set_threads(2) == 3 and set_threads(3) == 2
    for count in (0, 9, 1.5, "2"):
        with pytest.raises(BackendError, match="1 to 8 threads"):
            set_threads(count)
    set_threads(None)
    assert 1 <= threads.threads() <= 8
