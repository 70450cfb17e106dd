"""Plans on NumPy run by several threads give the results of one thread, and no failure in a thread or in the process
makes another thread wait for ever."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import IndexingError
from emberlet.host.numpy_backend.compile import Compiled, compile, plan, windows
from emberlet.host.numpy_backend.compile.native.machine import machine
from emberlet.host.numpy_backend.compile.threads import schedule, splitting, workers
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor
from support.rows import every

CHOOSE = np.random.default_rng(5)
SECONDS = 120  # after which a process hangs


def drawn(*shape: int) -> Tensor:
    return emberlet.asarray(CHOOSE.standard_normal(shape).astype(np.float32), backend="numpy")


@pytest.fixture(autouse=True, params=["from C", "from Python"])
def threads(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """Use two threads, or as many as a test says, for plans of any size, whose steps are called from C where they can
    be, or all from Python; gives the numbers that OpenBLAS was set to."""
    machine()  # which is remembered, before the variable says that there is none
    if request.param == "from Python":
        monkeypatch.setattr(plan, "machine", lambda: None)
        monkeypatch.setenv("EMBERLET_CALLS", "python")  # for the processes that a test starts
    told: list[int] = []
    monkeypatch.setattr(workers, "available", lambda: 2)
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 4, told.append))
    for limit in ("LARGE", "LARGE_LOCKED"):
        monkeypatch.setattr(schedule, limit, 0)
    monkeypatch.setattr(schedule, "LEAST", 0.0)
    monkeypatch.setattr(splitting, "CALL", 0.0)
    monkeypatch.setattr(schedule, "MEETING", 0.0)
    return told


class Held(Module):
    """A function of inputs and of a matrix (48, 48)."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.weight = Param(drawn(48, 48) * 0.1)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self.weight.val(), *inputs)


def _layers(weight: Tensor, x: Tensor) -> Tensor:
    """(rows, 48) -> (rows, 48)."""
    y = F.gelu(F.layer_norm(x, weight[0]) @ weight)
    y = F.softmax(y @ F.permute(y, (1, 0)), axis=-1) @ x
    return F.concat([F.relu(y[:, 1:]), F.sum(y, axis=1, keepdims=True)], axis=1)


layers = Held(_layers)


def compiled_layers(rows: int = 64) -> tuple[Compiled, Tensor, Any]:
    x = drawn(rows, 48)
    return compile(layers, x), x, np.asarray(layers(x))


def near(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("rows", [5, 64, 301])
def test_results_are_those_of_the_model(count: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "available", lambda: count)
    compiled, _, _ = compiled_layers(rows)
    plan: Any = compiled.plan()
    assert plan.threads == count and any(phase[1] for phase in plan.phases)
    for _ in range(20):
        x = drawn(rows, 48)
        near(compiled(x), np.asarray(layers(x)))


def test_a_linear_layer_takes_a_vector() -> None:
    model = Held(lambda weight, x: F.silu(F.linear(x, weight[:, :24])) * F.linear(x, weight[:, 24:]))
    x = drawn(48)
    near(compile(model, x)(x), np.asarray(model(x)))


def test_openblas_has_one_thread_meanwhile_and_its_own_number_afterwards(threads: list[int]) -> None:
    compiled, x, _ = compiled_layers()
    compiled(x)
    assert threads == [1, 4]


def test_a_plan_runs_in_one_thread_where_openblas_has_one_by_then(
    threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, x, want = compiled_layers()
    monkeypatch.setattr(workers, "_blas", lambda: (lambda: 1, threads.append))
    monkeypatch.setattr(workers, "_taken", None)
    near(compiled(x), want)
    assert not threads


def test_a_plan_runs_in_one_thread_where_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    compiled, x, want = compiled_layers()
    monkeypatch.setattr(workers, "_workers", [])
    monkeypatch.setattr(threading.Thread, "start", refused)
    near(compiled(x), want)


def test_calls_of_several_threads_may_overlap() -> None:
    both = [compiled_layers(64), compiled_layers(80)]
    failed: list[BaseException] = []

    def work(which: int) -> None:
        compiled, x, want = both[which % 2]
        try:
            for _ in range(50):
                near(compiled(x), want)
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(SECONDS)
    assert not failed and not any(t.is_alive() for t in running)


def test_a_plan_within_a_plan_runs() -> None:
    inner, x, want = compiled_layers()
    outer, y, wanted = compiled_layers()
    bound = outer.plan()._free[-1]  # type: ignore[union-attr]
    found: list[Any] = []
    bound.parts[0] = [(lambda: found.append(inner(x)), ()), *bound.parts[0]]
    near(outer(y), wanted)
    near(found[0], want)


@pytest.mark.parametrize("part", [0, 1])
@every("at", [0, 3, -1])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_a_part_raises_is_raised_and_the_next_call_works(part: int, at: int, kind: Any) -> None:
    compiled, x, want = compiled_layers()

    def fail() -> None:
        raise kind("as told")

    bound = compiled.plan()._free[-1]  # type: ignore[union-attr]
    bound.parts[part] = list(bound.parts[part])
    bound.parts[part].insert(at, (fail, ()))
    with pytest.raises(kind, match="as told"):
        compiled(x)
    for _ in range(3):
        near(compiled(x), want)
    assert not workers._calling.locked()


def test_an_index_outside_is_refused() -> None:
    taken = Held(lambda weight, x, at: F.take(x @ weight, at, axis=0) @ weight)
    x, at = drawn(64, 48), emberlet.asarray([0, 63, 5], backend="numpy")
    compiled = compile(taken, x, at)
    near(compiled(x, at), np.asarray(taken(x, at)))
    with pytest.raises(IndexingError, match="outside"):
        compiled(x, emberlet.asarray([0, 64, 5], backend="numpy"))
    near(compiled(x, at), np.asarray(taken(x, at)))


def test_parts_that_change_the_same_elements_meet() -> None:
    def shifted(weight: Tensor, x: Tensor) -> Tensor:
        y = x @ weight
        return F.concat([y[1:], y[:-1]], axis=0) @ weight + F.permute(y[:48], (1, 0))[:1]

    function = Held(shifted)
    x = drawn(97, 48)
    compiled = compile(function, x)
    assert len(compiled.plan().phases) > 1  # type: ignore[union-attr]
    for _ in range(50):
        near(compiled(x), np.asarray(function(x)))


def test_a_convolution_meets_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first writes its lines into the border that the second reads, with no step between them."""
    monkeypatch.setattr(windows, "BLOCK", 64)
    first = nn.Conv2d(4, 4, 3, stride=(2, 1), padding=1, bias=False, backend="numpy")
    model = nn.Sequential(first, nn.Conv2d(4, 4, (3, 1), padding=(2, 0), dilation=(2, 1), backend="numpy"))
    x = drawn(2, 4, 13, 5)
    near(compile(model, x)(x), np.asarray(model(x)))


# -- what happens to a process

START = """
import os, signal, sys, threading, time
import emberlet, numpy as np
from emberlet.host.numpy_backend.compile import compile
from emberlet.host.numpy_backend.compile.threads import schedule, splitting, workers
workers.available = lambda: 2
workers._blas = lambda: (lambda: 2, lambda n: None)
schedule.LARGE = schedule.LARGE_LOCKED = 0
schedule.LEAST, splitting.CALL, schedule.MEETING = 0.0, 0.0, 0.0
class Layers(emberlet.Module):
    def __init__(self):
        self.weight = emberlet.Param(emberlet.asarray(np.ones((48, 48), np.float32) / 48, backend="numpy"))
    def forward(self, x):
        for _ in range(4):
            x = emberlet.functional.softmax(x @ self.weight.val(), axis=0) @ self.weight.val()
        return x
x = emberlet.asarray(np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32), backend="numpy")
compiled = compile(Layers(), x)
assert compiled.plan().threads == 2
want = np.asarray(compiled(x))
def fits(): return np.array_equal(np.asarray(compiled(x)), want)
"""


def process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True, encoding="utf-8", timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_interrupts_at_any_moment_leave_a_plan_that_works() -> None:
    found = process("""
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
random = np.random.default_rng(1)
hit = 0
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, float(random.uniform(1e-5, 6e-4)))
        compiled(x)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        hit += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(hit > 20, fits(), fits())
""")
    assert found.split() == ["True", "True", "True"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_have_threads_of_their_own() -> None:
    found = process("""
busy = threading.Thread(target=lambda: [compiled(x) for _ in range(300)])
busy.start()
codes = []
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(0 if fits() and fits() and len(workers._workers) == 1 else 1)
    codes.append(os.waitpid(child, 0)[1])
busy.join()
print(codes, fits())
""")
    assert found.split() == ["[0,", "0,", "0,", "0,", "0]", "True"]


@pytest.mark.parametrize("end", ["sys.exit(0)", "threading.Thread(target=compiled, args=(x,), daemon=True).start()"])
def test_a_process_ends_while_a_part_runs(end: str) -> None:
    process(f"""
bound = compiled.plan()._free[-1]
bound.parts[1] = [(time.sleep, (0.3,)), *bound.parts[1]]
threading.Thread(target=compiled, args=(x,), daemon=True).start()
time.sleep(0.05)
{end}
""")
