"""Calls of plans on NumPy: of several threads at once, and those that an error or an interrupt ends."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import Compiled, compile
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor

CHOOSE = np.random.default_rng(5)
SECONDS = 600  # after which a process hangs


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
