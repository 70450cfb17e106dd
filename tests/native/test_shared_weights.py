"""Plans that share their weights compute what they would with weights of their own."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.host.sharing import address_ranges
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm import regions
from emberlet.wgpu_backend.llvm.backend import NativeBackend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="plans share weights on Linux")
WIDTH = 48


class Net(nn.Module):
    """Two layers."""

    def __init__(self, backend: Any = "numpy") -> None:
        self.first = nn.Linear(WIDTH, WIDTH, backend=backend)
        self.second = nn.Linear(WIDTH, WIDTH, backend=backend)

    def forward(self, x: Any) -> Any:
        return self.second(F.relu(self.first(x)))

    def expected(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """By NumPy, in float64."""
        weights = [np.asarray(p.val()).astype(np.float64) for p in (*self.first.params(), *self.second.params())]
        a, b = (w for w in weights if w.ndim == 2)
        c, d = (w for w in weights if w.ndim == 1)
        found: np.ndarray[Any, Any] = np.maximum(x @ a + c, 0) @ b + d
        return found


@pytest.fixture(params=["shared", "own"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """With and without sharing, which small weights are otherwise not worth."""
    monkeypatch.setattr(regions, "LEAST", 1 if request.param == "shared" else 1 << 62)
    yield request.param == "shared"


def rows(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32)


def copies() -> set[int]:
    """The addresses of all weights that were copied."""
    gc.collect()
    return {at for each in address_ranges.ranges() for at in each.copies.values()}


def check(compiled: Any, model: Net, n: int) -> None:
    np.testing.assert_allclose(np.asarray(compiled(rows(n))), model.expected(rows(n)), rtol=1e-4, atol=1e-5)


def test_plans_of_several_shapes_and_models_of_the_same_weights_share_them(shared: bool) -> None:
    before = copies()
    model = Net()
    compiled = [model.compile(), model.compile(), model.compile(backend="native")]
    for n in (1, 2, 3, 5):
        for each in compiled[: 2 if n > 1 else 3]:
            check(each, model, n)
    assert len(copies() - before) == (4 if shared else 0)
    del compiled, each
    assert copies() <= before


@pytest.mark.usefixtures("shared")
def test_a_plan_has_the_weights_that_there_were_when_it_was_made() -> None:
    model = Net()
    compiled = model.compile(backend="native")
    old = model.expected(rows(2))
    check(compiled, model, 2)
    for given in (compiled.model, model):  # the copy that is compiled, and the caller's
        weight = emberlet.asarray(np.full((WIDTH, WIDTH), 0.5, np.float32), backend=given.first.weight.val().backend)
        given.first.weight.set(weight)
    np.testing.assert_allclose(np.asarray(compiled(rows(2))), old, rtol=1e-4, atol=1e-5)
    check(compiled, model, 3)
    again = model.compile()
    check(again, model, 2)
    record = Net().to_record()
    model.load_record(record)
    check(model.compile(), model, 2)
    np.testing.assert_allclose(np.asarray(compiled(rows(2))), old, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("shared")
def test_an_array_that_the_caller_changes_is_another_weight_afterwards() -> None:
    weight = np.zeros((WIDTH, WIDTH), np.float32)
    tensor = emberlet.asarray(weight, backend="numpy")

    def product(x: Any) -> Any:
        return x @ tensor.to(x.backend)

    compiled = compile(product, backend=NativeBackend())
    for n in (1, 2, 3):
        tensor.data[7, 7] = np.float32(n)  # where no sample of a weight is taken
        compiled(rows(n))
    for n in (1, 2, 3):
        np.testing.assert_allclose(np.asarray(compiled(rows(n)))[:, 7], rows(n)[:, 7] * n, rtol=1e-6)


@pytest.mark.usefixtures("shared")
def test_a_plan_that_grows_keeps_its_weights() -> None:
    model = Net()
    compiled = compile(model, backend="native", dims={"x": {0: "n"}})
    for n in (2, 3, 70, 9, 300, 2):
        check(compiled, model, n)
    compiled.release()
    check(compiled, model, 4)


def test_what_does_not_fit_into_a_range_gets_another_one_or_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "LEAST", 1)
    for module in (regions, address_ranges):
        monkeypatch.setattr(module, "HALF", 24 << 20)
    before = copies()
    model = Net()
    compiled = [model.compile(backend="native") for _ in range(12)]
    for n in (2, 4000):  # plans of 3 MB
        for each in compiled:
            check(each, model, n)
    assert len(copies() - before) > 4
    for n in (40_000, 2):  # of 30 MB
        for each in compiled[:2]:
            check(each, model, n)


def test_without_addresses_for_a_range_plans_have_their_own_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("no addresses are left")

    monkeypatch.setattr(regions, "LEAST", 1)
    monkeypatch.setattr(regions, "AddressRange", refuse)
    model = Net()
    check(model.compile(), model, 2)


MEMORY = """
import gc, sys
import emberlet, numpy as np
from emberlet import nn

class Net(nn.Module):
    def __init__(self):
        self.layers = [nn.Linear(1024, 1024, backend="numpy") for _ in range(8)]
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return int(file.read().split("VmRSS:")[1].split()[0]) >> 10

small = nn.Linear(8, 8, backend="numpy").compile()  # loads what a first compilation needs
small(np.ones((2, 8), np.float32))
model = Net()
if len(sys.argv) > 1:
    model.save_file(sys.argv[1])
    model = Net()
    model.load_file(sys.argv[1])
for param in model.params():
    param.val()  # drawn at random, or read
found = [resident()]
compiled = [model.compile() for _ in range(3)]
for each in compiled:
    each(np.ones((1, 1024), np.float32))
    found.append(resident())
for n in (2, 3):
    for each in compiled:
        each(np.ones((n, 1024), np.float32))
assert all(each.chosen == "native" for each in compiled)
found.append(resident())
del model, compiled, each, small
found.append(resident())
print(*[b - a for a, b in zip(found, found[1:])])
"""


def grown(*arguments: Any) -> list[int]:
    """The megabytes that a process with 32 MB of weights grows by: for the first plan of each of three compiled models,
    for two more shapes of each, and when nothing is left."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_further_plans_take_no_memory_for_weights() -> None:
    first, second, third, others, freed = grown()
    assert 30 < first < 48
    assert max(second, third, others) < 16
    assert freed < -30


def test_weights_of_a_file_are_used_where_they_lie(tmp_path: Path) -> None:
    *plans, freed = grown(tmp_path / "net.bpk")
    assert max(plans) < 16
    assert freed < -30
