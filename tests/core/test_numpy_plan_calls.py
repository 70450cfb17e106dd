"""Calls of plans on NumPy: of several threads at once, and those that an error or an interrupt ends."""

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
from emberlet.host.numpy_backend.compile import Compiled, calling, compile, steps, windows
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor

CHOOSE = np.random.default_rng(5)
SECONDS = 120  # after which a process hangs


def drawn(*shape: int) -> Tensor:
    return emberlet.asarray(CHOOSE.standard_normal(shape).astype(np.float32), backend="numpy")


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


def test_a_linear_layer_takes_a_vector() -> None:
    model = Held(lambda weight, x: F.silu(F.linear(x, weight[:, :24])) * F.linear(x, weight[:, 24:]))
    x = drawn(48)
    near(compile(model, x)(x), np.asarray(model(x)))


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


@pytest.mark.parametrize("at", [0, 3, -1])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_what_a_step_raises_is_raised_and_the_next_call_works(at: int, kind: Any) -> None:
    compiled, x, want = compiled_layers()

    def fail() -> None:
        raise kind("as told")

    compiled.plan()._free[-1].steps.insert(at, (fail, ()))  # type: ignore[union-attr]
    with pytest.raises(kind, match="as told"):
        compiled(x)
    for _ in range(3):
        near(compiled(x), want)


def test_an_index_outside_is_refused() -> None:
    taken = Held(lambda weight, x, at: F.take(x @ weight, at, axis=0) @ weight)
    x, at = drawn(64, 48), emberlet.asarray([0, 63, 5], backend="numpy")
    compiled = compile(taken, x, at)
    near(compiled(x, at), np.asarray(taken(x, at)))
    with pytest.raises(IndexingError, match="outside"):
        compiled(x, emberlet.asarray([0, 64, 5], backend="numpy"))
    near(compiled(x, at), np.asarray(taken(x, at)))


def test_convolutions_by_few_lines_read_the_border_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "BLOCK", 64)
    first = nn.Conv2d(4, 4, 3, stride=(2, 1), padding=1, bias=False, backend="numpy")
    model = nn.Sequential(first, nn.Conv2d(4, 4, (3, 1), padding=(2, 0), dilation=(2, 1), backend="numpy"))
    x = drawn(2, 4, 13, 5)
    near(compile(model, x)(x), np.asarray(model(x)))


FLOATS = [np.ones((), np.float32), np.float32(2.5), np.float64(2.5), 2.5]


@pytest.mark.parametrize("number", FLOATS)
@pytest.mark.parametrize("function", [np.add, np.power, steps.maximum, steps.minimum])
def test_the_shortest_call_computes_the_same(function: Any, number: Any) -> None:
    x = CHOOSE.standard_normal((3, 4)).astype(np.float32)[::-1]
    outs = [np.empty((3, 4), np.result_type(x, number)) for _ in range(2)]
    short, args = calling.called(function, (x, number, outs[0]))
    short(*args)
    function(x, number, outs[1])
    np.testing.assert_array_equal(*outs)


@pytest.mark.parametrize("a, b", [
    ((3, 4), (4, 5)), ((1, 4), (4, 5)), ((3, 4), (4, 1)), ((2, 3, 4), (4, 5)), ((3, 0), (0, 2)), ((40, 700), (700, 30)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_the_shortest_product_has_the_same_bits(a: Any, b: Any, dtype: str) -> None:
    x, y = ((CHOOSE.standard_normal(shape) * 9).astype(dtype) for shape in (a, b))
    want = x @ y
    for left, right in ((x, y), (np.asfortranarray(x), y), (x, np.asfortranarray(y))):
        found = np.empty_like(want)
        short, args = calling.called(np.matmul, (left, right, found))
        short(*args)
        np.testing.assert_array_equal(found, np.matmul(left, right))


# -- what happens to a process

START = """
import signal
import emberlet, numpy as np
from emberlet.host.numpy_backend.compile import compile
class Layers(emberlet.Module):
    def __init__(self):
        self.weight = emberlet.Param(emberlet.asarray(np.ones((48, 48), np.float32) / 48, backend="numpy"))
    def forward(self, x):
        for _ in range(4):
            x = emberlet.functional.softmax(x @ self.weight.val(), axis=0) @ self.weight.val()
        return x
x = emberlet.asarray(np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32), backend="numpy")
compiled = compile(Layers(), x)
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
