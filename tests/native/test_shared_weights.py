"""Plans that share their weights compute what they would with weights of their own."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.host import files
from emberlet.host.sharing import address_ranges
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.llvm import regions
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from support.processes import python

resource = pytest.importorskip("resource")
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


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sharing of small weights, without the ranges of other tests."""
    monkeypatch.setattr(regions, "LEAST", 1)
    monkeypatch.setattr(address_ranges, "_ranges", weakref.WeakSet())
    monkeypatch.setattr(address_ranges, "_latest", [])


@pytest.fixture
def little(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with ranges of 48 MB."""
    for module in (regions, address_ranges):
        monkeypatch.setattr(module, "HALF", 24 << 20)


def rows(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).standard_normal((n, WIDTH)).astype(np.float32)


def copies() -> set[int]:
    """The addresses of all weights that were copied."""
    gc.collect()
    return {copy.address for each in address_ranges.ranges() for copy in each.copies}


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


def test_the_memory_that_a_plan_says_it_takes_is_its_own_and_its_weights(shared: bool) -> None:
    instance = Net().compile(rows(1), backend="native").planned().program.instance
    weights = 4 * 2 * WIDTH * (WIDTH + 1)
    assert weights < instance.nbytes < weights + 4096
    assert (memoryview(instance.memory).nbytes > 1 << 30) == shared  # addresses up to the weights, not memory


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


@pytest.mark.usefixtures("little")
def test_what_does_not_fit_into_a_range_gets_another_one_or_has_its_own() -> None:
    model = Net()
    compiled = [model.compile(backend="native") for _ in range(5)]
    for n in (2, 12_000):  # plans of 9 MB
        for each in compiled:
            check(each, model, n)
    assert len(copies()) > 4
    count = len(address_ranges.ranges())
    for n in (40_000, 2):  # of 30 MB
        for each in compiled[:2]:
            check(each, model, n)
    again = model.compile(backend="native")
    for _ in range(4):  # where there is room, although the first range is full
        again.release()
        check(again, model, 12_000)
    assert len(address_ranges.ranges()) <= count + 1


@pytest.mark.usefixtures("little")
def test_the_memory_of_released_plans_is_used_again() -> None:
    model = Net()
    kept, compiled = model.compile(backend="native"), model.compile(backend="native")
    check(kept, model, 2)
    before = copies()
    for n in range(12_000, 12_005):  # 9 MB each
        check(compiled, model, n)
        assert copies() == before and len(address_ranges.ranges()) == 1
        compiled.release()


def test_parts_of_a_range_do_not_overlap_and_are_zeros_when_they_are_used_again(little: None) -> None:
    random = np.random.default_rng(0)
    within = address_ranges.AddressRange()
    used: list[tuple[address_ranges.Memory, memoryview, int]] = []
    for number in range(1, 600):
        take = within.below if random.random() < 0.5 else within.above
        nbytes = int(random.choice([100, 5000, 300_000, 9 << 20]))
        memory = take(nbytes)
        if memory is not None:
            view = memory.view(nbytes, memory)
            assert not np.frombuffer(view, np.uint8).any()
            assert (memory.address < within.end - (24 << 20)) == (take == within.below)
            view[:4] = view[-4:] = number.to_bytes(4, "little")
            used.append((memory, view, number))
        if memory is None or random.random() < 0.4:
            for _ in range(min(len(used), 3)):
                used.pop(int(random.integers(len(used))))
        assert all(bytes(v[:4]) == bytes(v[-4:]) == n.to_bytes(4, "little") for _, v, n in used)
    memory = view = None
    used.clear()
    assert within.below(22 << 20) and within.above(23 << 20)


@pytest.mark.usefixtures("fresh")
def test_copies_go_with_the_last_plan_that_has_them() -> None:
    model, head = Net(), nn.Linear(WIDTH, WIDTH, backend="numpy")
    kept, other = model.compile(backend="native"), nn.Sequential(model, head).compile(backend="native")
    check(kept, model, 2)
    before = copies()
    other(rows(2))
    assert len(copies() - before) == 2
    other.release()
    assert copies() == before
    kept.release()
    assert not copies()


@pytest.mark.usefixtures("fresh")
def test_weights_that_differ_where_no_sample_is_taken_are_found_again() -> None:
    model = Net()
    compiled = []
    seen: set[int] = set()
    for i, value in enumerate([1.0, 2.0, 1.0, 2.0]):
        weight = np.asarray(model.first.weight.val()).copy()
        weight[7, 7] = value
        model.first.weight.set(emberlet.asarray(weight, backend="numpy"))
        compiled.append(model.compile(backend="native"))
        check(compiled[-1], model, 2)
        assert i < 2 or copies() == seen
        seen = copies()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("refused", ["limit", "system"])
def test_without_addresses_for_a_range_plans_have_their_own_weights(
    refused: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse() -> None:
        raise OSError("no addresses are left")

    if refused == "limit":  # as `ulimit -v` does
        monkeypatch.setattr(resource, "getrlimit", lambda what: (1 << 40, 1 << 40))
    else:
        for module in (regions, address_ranges):
            monkeypatch.setattr(module, "AddressRange", refuse)
    monkeypatch.setattr(files, "LARGE", 1)
    Net().save_file(tmp_path / "net.bpk")
    model = Net()
    model.load_file(tmp_path / "net.bpk")
    check(model.compile(), model, 2)
    assert not address_ranges.ranges()


@pytest.mark.usefixtures("fresh")
def test_where_no_thread_starts_one_copies_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(regions, "PIECE", 1024)
    monkeypatch.setattr(regions.threads, "threads", lambda: 4)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    model = Net()
    compiled = model.compile()
    check(compiled, model, 2)
    assert copies() and compiled.chosen == "native"


INTERRUPTED = """
import threading, time
import emberlet, numpy as np
from emberlet import nn
from emberlet.wgpu_backend.llvm import regions

class Slow:
    def __init__(self, real):
        self.memcmp, self.real = real.memcmp, real

    def memmove(self, *what):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.1)
        self.real.memmove(*what)

model = nn.Linear(1024, 1024, backend="numpy")
x = np.ones((1, 1024), np.float32)
real = regions.library
regions.PIECE, regions.threads.threads = 1 << 16, lambda: 4
regions.library = lambda: Slow(real())
try:
    model.compile(backend="native")(x)
except KeyboardInterrupt:
    print("interrupted")
time.sleep(0.3)
regions.library = real
found = np.asarray(model.compile(backend="native")(x))
np.testing.assert_allclose(found, np.asarray(model(emberlet.asarray(x, backend="numpy"))), rtol=1e-4, atol=1e-4)
"""


def test_after_ctrl_c_nothing_is_copied_into_memory_that_is_gone() -> None:
    done = python("-c", INTERRUPTED)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


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
    done = python("-c", MEMORY, *arguments)
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
