"""Steps of NumPy plans that run as one call of C give NumPy's own bits, and Python calls what cannot run so."""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.host.numpy_backend.compile import compile, plan
from emberlet.host.numpy_backend.compile.native import machine as machines
from emberlet.host.numpy_backend.compile.native import records, semaphores, ufuncs
from emberlet.host.numpy_backend.compile.native.machine import machine, record
from emberlet.host.numpy_backend.compile.steps import copy_elements, maximum, minimum

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="Linux on x86-64 only"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
CLIP = np._core.umath.clip  # type: ignore[attr-defined]
UNARY = (
    np.exp,
    np.log,
    np.sqrt,
    np.tanh,
    np.radians,
    np.absolute,
    np.square,
    np.reciprocal,
    np.floor,
    np.sin,
    np.sign,
)
BINARY = (
    np.hypot,
    np.fmod,
    np.hypot,
    np.fmod,
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.maximum,
    np.minimum,
    np.power,
    maximum,
    minimum,
)
# Their last bit depends on whether NumPy computes along one axis of an array or along another.
ROUNDED = (np.hypot, np.exp, np.log, np.tanh, np.sin, np.power)
CHOOSING = (np.maximum, np.minimum, maximum, minimum, CLIP)  # of 0 and -0 either may be the greater
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38)


@pytest.fixture
def choose(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


def drawn(choose: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """An array that may be transposed, reversed, or a part of another, with special values among its elements."""
    order = choose.permutation(len(shape))
    wide = [int(shape[i]) * int(choose.integers(1, 3)) for i in order]
    whole = np.asarray(choose.standard_normal(wide) * 4, dtype)
    if whole.size and np.issubdtype(dtype, np.floating):
        whole.reshape(-1)[choose.integers(0, whole.size, 3)] = choose.choice(SPECIAL, 3)
    kept = [
        slice(None, None, w // int(shape[i])) if shape[i] else slice(None) for i, w in zip(order, wide, strict=True)
    ]
    part = whole[(..., *kept)].transpose(np.argsort(order))
    return part[(..., *(slice(None, None, int(choose.choice([1, 1, -1]))) for _ in shape))]


def shape_of(choose: np.random.Generator, rank: int) -> tuple[int, ...]:
    return tuple(int(n) for n in choose.integers(1, 7, rank))


def broadcast(choose: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    return tuple(n if choose.integers(3) else 1 for n in shape[int(choose.integers(0, len(shape) + 1)) :])


def run(function: Any, *args: Any, times: int = 2) -> None:
    """Call function(*args) by the machine."""
    found = records.of_step(machine(), function, args)
    assert found is not None
    call, arguments = machine().call(*found)  # type: ignore[union-attr]
    del found
    for _ in range(times):
        call(*arguments)


def same_bits(found: Any, want: Any) -> None:
    np.testing.assert_array_equal(found, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(want)[known])


@pytest.mark.parametrize("ufunc", [*UNARY, *BINARY, CLIP, np.positive], ids=lambda u: u.__name__)
def test_loops_give_the_bits_of_ufuncs(ufunc: Any, choose: np.random.Generator) -> None:
    inputs = 3 if ufunc is CLIP else 2 if ufunc in BINARY else 1
    for _ in range(60):
        dtype = choose.choice([np.float32, np.float64])
        shape = shape_of(choose, int(choose.integers(0, 5)))
        args = [drawn(choose, broadcast(choose, shape) if i else shape, dtype) for i in range(inputs)]
        want = np.empty(shape, dtype)
        ufunc(*args, out=want) if ufunc not in (maximum, minimum) else ufunc(*args, want)
        out = drawn(choose, shape, dtype)
        run(ufunc, *args, out)
        if ufunc in ROUNDED:
            np.testing.assert_allclose(out, want, rtol=2 * np.finfo(dtype).eps)
        elif ufunc in CHOOSING:
            np.testing.assert_array_equal(out, want)
        else:
            same_bits(out, want)


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.1), 3, 0.1, np.float32(0).reshape(())])
def test_numbers_are_operands_as_in_numpy(number: Any, choose: np.random.Generator) -> None:
    x = drawn(choose, (5, 6))
    if np.result_type(x, number) != np.float32:
        assert records.of_step(machine(), np.multiply, (x, number, np.empty((5, 6), np.float32))) is None
        return
    out = np.empty((5, 6), np.float32)
    run(np.multiply, x, number, out)
    same_bits(out, x * number)


def test_a_result_may_take_the_place_of_an_operand(choose: np.random.Generator) -> None:
    for _ in range(50):
        shape = shape_of(choose, 3)
        x, y = drawn(choose, shape), drawn(choose, broadcast(choose, shape))
        want = x + y
        run(np.add, x, y, x, times=1)
        same_bits(x, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_numpy_each_time(dtype: Any, choose: np.random.Generator) -> None:
    for _ in range(150):
        lead = shape_of(choose, int(choose.integers(0, 4)))
        m, k, n = shape_of(choose, 3)
        a = choose.standard_normal((*broadcast(choose, lead), m, k)).astype(dtype)
        b = choose.standard_normal((*broadcast(choose, lead), n, k)).astype(dtype).swapaxes(-1, -2)
        if choose.integers(2):
            b = np.ascontiguousarray(b)
        want = np.empty(np.matmul(a, b).shape, dtype)
        np.matmul(a, b, out=want)
        out = np.empty_like(want)
        run(np.matmul, a, b, out, times=3)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64, np.bool_, np.complex64])
def test_copies_are_those_of_numpy(dtype: Any, choose: np.random.Generator) -> None:
    known = 0
    for _ in range(150):
        shape = (*shape_of(choose, int(choose.integers(0, 4))), int(choose.choice([1, 5, 32, 67])))
        source = drawn(choose, shape if choose.integers(2) else broadcast(choose, shape), dtype)
        if choose.integers(2):
            source = np.ascontiguousarray(source)
        target = np.empty(shape, dtype)
        if choose.integers(2):
            target = drawn(choose, shape, dtype)
        if records.of_step(machine(), copy_elements, (source, target)) is None:
            continue
        known += 1
        whole = target if target.base is None else target.base
        before = whole.copy()
        run(copy_elements, source, target)
        np.testing.assert_array_equal(target, np.broadcast_to(source, shape))
        target[...] = 0
        changed = whole.copy()
        whole[...] = before  # elements between those of the target are as before
        target[...] = 0
        np.testing.assert_array_equal(changed, whole)
    assert known > 15


def nothing(x: Any) -> None:
    raise AssertionError


def unaligned(n: int) -> Any:
    return np.frombuffer(bytearray(4 * n + 1), np.uint8)[1:].view(np.float32)


X = np.ones((4, 5), np.float32)


REFUSED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a function of Python": (nothing, (X,)),
    "a sum": (np.add.reduce, (X, 1, None, np.empty(4, np.float32))),
    "integers": (np.add, (X.astype(int), X.astype(int), X.astype(int))),
    "float16": (np.add, (X.astype(np.float16),) * 3),
    "two dtypes": (np.add, (X, X.astype(np.float64), np.empty((4, 5)))),
    "a result of another dtype": (np.add, (X, X, np.empty((4, 5), np.float64))),
    "a copy to another dtype": (copy_elements, (X, np.empty((4, 5)))),
    "a tuple": (np.add, (X, (1.0,), X.copy())),
    "too few operands": (np.add, (X, X.copy())),
    "two results": (np.modf, (X, X.copy(), X.copy())),
    "no elements": (np.add, (X[:0], X[:0], X[:0].copy())),
    "other bytes": (np.add, (X.astype(">f4"), X, X.copy())),
    "unaligned": (np.square, (unaligned(5), np.empty(5, np.float32))),
    "an unaligned result": (np.square, (np.empty(5, np.float32), unaligned(5))),
    "a product of a vector": (np.matmul, (X, X[0], np.empty(4, np.float32))),
    "a product of integers": (np.matmul, (X.astype(int), X.T.astype(int), np.empty((4, 4), int))),
    "a result over a shifted operand": (np.square, (X.reshape(-1)[:-1], X.reshape(-1)[1:])),
    "a result over a transposed operand": (np.square, (X[:, :4], X[:, :4].T)),
    "a copy over its source": (copy_elements, (X[:2], X[1:3])),
    "a read-only result": (np.square, (X, np.broadcast_to(X[0], (4, 5)))),
    "arguments of unknown kinds": (ctypes.CDLL(None).memcpy, (1.0, 2)),
    "too many arguments": (ctypes.CDLL(None).memcpy, (ctypes.c_int(0),) * 17),
    "too many floats": (ctypes.CDLL(None).memcpy, (ctypes.c_float(0),) * 3),
}


@pytest.mark.parametrize("why", REFUSED)
def test_python_calls_what_has_no_loop(why: str) -> None:
    function, args = REFUSED[why]
    assert records.of_step(machine(), function, args) is None


def test_there_are_no_records_without_a_machine() -> None:
    assert records.of_step(None, np.add, (X, X, X.copy())) is None
    assert records.joined(None, [(print, (1,), 0.0, None)]) == [(print, (1,))]


def gaps(*shape: int) -> Any:
    """An array of ones that has gaps along every axis."""
    return np.ones([n + 1 for n in shape], np.float32)[tuple(slice(n) for n in shape)]


@pytest.mark.parametrize(
    ("function", "shapes", "rows"),
    [
        (np.absolute, [(3, 2, 5)], 6),
        (copy_elements, [(7, 3, 2, 9)], 6),  # rows of 36 bytes, seven by one record
        (copy_elements, [(3, 7, 2, 8)], 6),
        (copy_elements, [(3, 7, 2)], 6),  # elements along the longest axis
        (np.matmul, [(3, 2, 5, 2, 2), (3, 2, 5, 2, 2)], 6),
    ],
)
def test_a_step_has_records_for_a_limited_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, function: Any, shapes: list[tuple[int, ...]], rows: int
) -> None:
    assert records.MOST >= 1000
    out = gaps(*shapes[0])
    out[...] = 0
    args = [*(gaps(*shape) for shape in shapes), out]
    monkeypatch.setattr(records, "MOST", rows - 1)
    assert records.of_step(machine(), function, args) is None
    monkeypatch.setattr(records, "MOST", rows)
    run(function, *args)
    assert (out == (2 if function is np.matmul else 1)).all()


def test_a_function_gets_all_its_arguments() -> None:
    seen: list[tuple[Any, ...]] = []
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_longlong] * 6, ctypes.c_float, *[ctypes.c_longlong] * 10, ctypes.c_float)
    callback = kind(lambda *given: seen.append(given))
    integers = [-1, 2**40, *range(2, 16)]
    found = record(machines.address_of(callback), integers, (0.5, -2.25))
    call, args = machine().call([found], callback)  # type: ignore[union-attr]
    call(*args)
    assert seen == [(*integers[:6], 0.5, *integers[6:], -2.25)]


def test_a_function_is_called_again_with_other_addresses() -> None:
    seen: list[tuple[int, ...]] = []
    callback = ctypes.CFUNCTYPE(None, *[ctypes.c_longlong] * 3)(lambda *given: seen.append(given))
    at = machines.address_of(callback)
    made = [record(at, (10, 20, 30), (), 3, (4, -5)), record(at, (1, 2, 3))]
    call, args = machine().call(made, callback)  # type: ignore[union-attr]
    call(*args)
    assert seen == [(10, 20, 30), (14, 15, 30), (18, 10, 30), (1, 2, 3)]


def test_arguments_of_ctypes_keep_their_kinds() -> None:
    seen: list[Any] = []
    numbers = (ctypes.c_int * 2)(7, 8)
    kind = ctypes.CFUNCTYPE(
        None, ctypes.c_int, ctypes.c_float, ctypes.POINTER(ctypes.c_int), ctypes.c_longlong, ctypes.c_void_p
    )
    callback = kind(lambda a, b, c, d, e: seen.append((a, b, c[0], c[1], d, e)))
    given = ctypes.c_int(-3), ctypes.c_float(1.5), numbers, ctypes.c_longlong(-(2**40)), ctypes.c_void_p(0)
    run(callback, *given, times=1)
    assert seen == [(-3, 1.5, 7, 8, -(2**40), None)]


def step(name: str, seconds: float, found: Any = ([0], [0])) -> records.Planned:
    return getattr(np, name), (name,), seconds, found


class Grouping:
    """A machine that says which records run as one call."""

    def call(self, made: list[Any], held: list[Any]) -> Any:
        return len(made), tuple(held)


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        ([step("add", 0.0)] * 3, [3]),
        ([step("add", 0.0), step("exp", 0.0, None), step("add", 0.0)], [1, np.exp, 1]),
        ([step("exp", 1.0, None)], [np.exp]),
        ([step("add", 0.01), step("add", 0.01), step("add", 0.001)], [2, 1]),
        ([step("add", 9.0), step("add", 9.0)], [1, 1]),
        ([step("add", 0.019), step("exp", 0.0, None), step("add", 0.019)], [1, np.exp, 1]),
        ([], []),
    ],
)
def test_steps_in_a_row_are_one_call_for_at_most_20_milliseconds(steps: list[Any], want: list[Any]) -> None:
    found: Any = Grouping()
    assert [function for function, _ in records.joined(found, steps)] == want


# -- where a ufunc's loops are


@pytest.mark.parametrize("types", ["fff", "ddd"])
def test_a_loop_is_the_ufunc_s_for_these_types(types: str) -> None:
    one, other = ufuncs.loop(np.add, types), ufuncs.loop(np.subtract, types)
    assert one and other and one != other and one == ufuncs.loop(np.add, types)


@pytest.mark.parametrize("types", ["lll", "ff", "ffff", "ffd", "OOO", "eee", "FFF"])
def test_other_types_have_no_loop(types: str) -> None:
    assert ufuncs.loop(np.add, types) is None


@pytest.mark.parametrize("ufunc", [np.modf, np.frompyfunc(nothing, 1, 1)])
def test_a_ufunc_of_other_results_has_no_loop(ufunc: Any) -> None:
    assert ufuncs.loop(ufunc, "fff"[: ufunc.nargs]) is None


class Unlike:
    """A ufunc of which one thing is not what its struct says."""

    nin, nout, nargs, ntypes, types = np.add.nin, np.add.nout, np.add.nargs, np.add.ntypes, np.add.types
    __name__ = "add"

    def __init__(self, name: str, value: Any) -> None:
        setattr(self, name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("nin", 3), ("nargs", 2), ("ntypes", 5), ("__name__", "sub"), ("types", ["fff->f", *np.add.types])],
)
def test_a_struct_that_does_not_fit_is_not_used(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    real = ufuncs._UFunc.from_address

    class Struct:
        @staticmethod
        def from_address(at: int) -> Any:
            return real(id(np.add))

    monkeypatch.setattr(ufuncs, "_UFunc", Struct)
    assert ufuncs.loop.__wrapped__(Unlike("nin", 2), "fff") is not None
    assert ufuncs.loop.__wrapped__(Unlike(name, value), "fff") is None


# -- the machine


def test_the_instructions_cannot_be_written() -> None:
    at = ctypes.cast(machine().run, ctypes.c_void_p).value or 0  # type: ignore[union-attr]
    regions = [line.split() for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    inside = [r[1] for r in regions if int(r[0].split("-")[0], 16) <= at < int(r[0].split("-")[1], 16)]
    assert inside == ["r-xp"]


@pytest.fixture
def again() -> Iterator[None]:
    """The machine is looked for anew, within the test and after it."""
    machine.cache_clear()
    yield
    machine.cache_clear()


@pytest.mark.usefixtures("again")
@pytest.mark.parametrize(
    ("name", "value"), [("platform", "darwin"), ("platform", "win32"), ("maxsize", 2**31 - 1), ("maxsize", 2**32 - 1)]
)
def test_other_systems_have_no_machine(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    monkeypatch.setattr(sys, name, value)
    found = machine()
    monkeypatch.undo()
    assert found is None


@pytest.mark.usefixtures("again")
def test_other_pythons_have_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy", cache_tag="pypy"))
    found = machine()
    monkeypatch.undo()
    assert found is None


@pytest.mark.usefixtures("again")
def test_other_processors_have_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert machine() is None


@pytest.mark.usefixtures("again")
def test_a_system_without_executable_memory_has_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "PROT_EXEC", 1 << 20)  # mprotect refuses it
    assert machine() is None


@pytest.mark.usefixtures("again")
def test_a_system_without_memory_has_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise OSError("no memory")

    monkeypatch.setattr(mmap, "mmap", refused)
    assert machine() is None


@pytest.mark.usefixtures("again")
def test_python_calls_the_functions_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERLET_CALLS", "python")
    assert machine() is None
    machine.cache_clear()
    monkeypatch.setenv("EMBERLET_CALLS", "c")
    with pytest.raises(BackendError, match="EMBERLET_CALLS=c"):
        machine()
    monkeypatch.setenv("EMBERLET_CALLS", "")
    assert machine() is not None


def test_other_threads_of_python_run_meanwhile() -> None:
    pause = record(machines.address_of(ctypes.CDLL(None).usleep), (1000,), (), 300)
    call, args = machine().call([pause], None)  # type: ignore[union-attr]
    running = threading.Thread(target=call, args=args)
    counted = 0
    running.start()
    while running.is_alive():
        counted += 1
        time.sleep(0)
    assert counted > 100


# -- meetings


def together(works: list[Callable[[], None]]) -> None:
    running = [threading.Thread(target=work) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert not any(thread.is_alive() for thread in running)


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads_wait_for_each_other(threads: int) -> None:
    """Each adds 1 to its counter and copies the others' at every meeting."""
    found = machine()
    assert found is not None
    meetings = semaphores.Semaphores(found, threads)
    rounds = 400
    counts = np.zeros((threads, 1), np.float64)
    seen = np.zeros((threads, rounds, threads))
    one = np.ones(1)
    calls = []
    for t in range(threads):
        steps: list[records.Planned] = []
        for number in range(rounds):
            for function, args in (
                (np.add, (counts[t], one, counts[t])),
                (copy_elements, (counts[:, 0], seen[t, number])),
            ):
                steps.append((function, args, 0.0, records.of_step(found, function, args)))
                steps.append((print, (), 0.0, meetings.meeting(t, len(steps) // 2)))
        ((call, args),) = records.joined(found, steps)
        calls.append((call, args))
    together([lambda call=call, args=args: call(*args) for call, args in calls])  # type: ignore[misc]
    want = np.broadcast_to(np.arange(1, rounds + 1)[:, None], (rounds, threads))
    for t in range(threads):
        np.testing.assert_array_equal(seen[t], want)


@pytest.mark.parametrize("pause", [0.0, 0.02])
def test_stopping_ends_all_waiting(pause: float) -> None:
    found = machine()
    assert found is not None
    meetings = semaphores.Semaphores(found, 2)
    steps: list[records.Planned] = [(print, (), 0.0, meetings.meeting(0, number)) for number in range(50)]
    ((call, args),) = records.joined(found, steps)

    def stop() -> None:
        time.sleep(pause)
        meetings.stop()

    together([lambda: call(*args), stop])
    call(*args)


def test_a_signal_does_not_end_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine()
    assert found is not None
    meetings = semaphores.Semaphores(found, 2)
    ((call, args),) = records.joined(found, [(print, (), 0.0, meetings.meeting(0, 0))])
    ((other, others),) = records.joined(found, [(print, (), 0.0, meetings.meeting(1, 0))])
    done: list[float] = []

    def late() -> None:
        time.sleep(0.2)
        done.append(time.monotonic())
        other(*others)

    thread = threading.Thread(target=late)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        thread.start()
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        call(*args)
        ended = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        thread.join()
    assert ended >= done[0]


# -- plans


def block(x: Any, w: Any, b: Any) -> Any:
    y = F.relu(F.conv2d(F.max_pool2d(x, 2), w, b, padding=1))
    y = F.concat([y, F.sigmoid(y) * 0.5 + F.tanh(y)], axis=1)
    return F.softmax(F.mean(y, axis=(2, 3)), axis=-1), F.exp(-F.abs(y))


@pytest.mark.parametrize("threads", [1, 2])
def test_plans_give_the_same_bits_without_a_machine(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    from emberlet.host.numpy_backend.compile.threads import schedule, workers

    monkeypatch.setattr(workers, "available", lambda: threads)
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 4, lambda n: None))
    choose = np.random.default_rng(3)
    for size in (4, 9, 16, 33):
        given = [choose.standard_normal(s).astype(np.float32) for s in ((2, 3, size, size), (5, 3, 3, 3), (5,))]
        tensors = [emberlet.asarray(x, backend="numpy") for x in given]
        results = []
        for name in ("with", "without"):
            with monkeypatch.context() as patched:
                for limit in ("LARGE", "LARGE_LOCKED"):
                    patched.setattr(schedule, limit, 0)
                if name == "without":
                    patched.setattr(plan, "machine", lambda: None)
                compiled = compile(block, *tensors)
                bound: Any = compiled.plan()._free[-1]  # type: ignore[union-attr]
                calls = [*bound.steps, *(c for part in bound.parts for c in part)]
                tables = [f for f, _ in calls if f is machine().run]  # type: ignore[union-attr]
                assert bool(tables) == (name == "with")
                results.append([[np.asarray(x) for x in compiled(*tensors)] for _ in range(3)])
        for one in (*results[0], *results[1]):
            for found, want in zip(one, results[1][0], strict=True):
                np.testing.assert_array_equal(found, want)
