"""The native backend as a caller sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import BackendError
from emberlet.wgpu_backend.llvm import backend as backend_module
from emberlet.wgpu_backend.llvm import processor
from emberlet.wgpu_backend.llvm.backend import NativeBackend
from support.processes import python


@pytest.fixture
def forgotten() -> Iterator[None]:
    """What the process found out about llvmlite is forgotten, before and afterwards."""
    found = (processor.llvm, processor._here, processor._identity)
    for each in found:
        each.cache_clear()
    yield
    for each in found:
        each.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_without_llvmlite_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    with pytest.raises(BackendError, match=r"backend 'native' needs llvmlite: .*emberlet\[native\]"):
        NativeBackend()


def test_a_processor_that_is_not_known_is_refused() -> None:
    script = """
import emberlet
from emberlet.errors import BackendError
from emberlet.wgpu_backend import llvm
for name in ("x86_64-v3", "avx2", ""):
    try:
        llvm.set_processor(name)
        print((emberlet.full((3,), 1.0, backend=llvm.NativeBackend()) + 1.0).tolist())
    except BackendError as error:
        print(error)
"""
    done = python("-c", script)
    assert done.returncode == 0 and done.stdout.count("x86-64-v2, x86-64-v3") == 3, done.stderr


def test_there_is_one_native_backend() -> None:
    with pytest.raises(BackendError, match="only one native backend"):
        emberlet.get_backend("native:1")


@pytest.mark.parametrize(("layer", "gates"), [(F.lstm, 4), (F.gru, 3), (F.rnn, 1)])
def test_directions_of_recurrent_layers_run_apart_where_their_matrices_are_large(
    layer: Any, gates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    shapes = (5, 2, 6), (2, 8 * gates, 6), (2, 8 * gates, 8), (2, 16 * gates)
    given = [random.standard_normal(s).astype(np.float32) for s in shapes]
    lengths = np.array([5, 3], np.int32)
    backend = NativeBackend()
    native = [emberlet.asarray(x, backend=backend) for x in given]
    asked: list[bool] = []
    ask = NativeBackend.directions_apart
    monkeypatch.setattr(NativeBackend, "directions_apart", staticmethod(lambda r: asked.append(ask(r)) or asked[-1]))
    for apart, lens in ((1 << 21, None), (0, None), (0, lengths)):
        monkeypatch.setattr(backend_module, "APART", apart)
        expected = layer(*given, direction="bidirectional", sequence_lens=lens)
        for found, y in zip(layer(*native, direction="bidirectional", sequence_lens=lens), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(y), rtol=1e-4, atol=1e-5)
    assert asked == [False, True, True]


def stack(x: Any) -> Any:
    return F.softmax(F.tanh(x) @ F.permute_dims(x, (1, 0)), axis=1).sum(axis=0)


def test_a_plan_of_several_steps_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend.compiled import compile

    a = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    fast = compile(stack, a, backend="native")
    assert len(fast.plan().steps) > 1
    calls = []
    steps = fast.planned().program.instance.steps
    call: Callable[..., None] = steps.call
    monkeypatch.setattr(steps, "call", lambda *given: (calls.append(given), call(*given)))
    found = np.asarray(fast(a))
    assert len(calls) == 1
    np.testing.assert_allclose(found, np.asarray(stack(emberlet.asarray(a, backend="numpy"))), rtol=1e-5)


def test_equal_layers_share_their_code() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Linear(32, 32) for _ in range(5)]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = F.relu(layer(x))
            return x

    x = np.ones((4, 32), np.float32)
    steps = Net().compile(x, backend="native").planned().program.instance.steps
    assert len(steps.codes) >= 5 and len({id(c) for c in steps.codes}) < len(steps.codes)


def test_a_plan_that_needs_more_memory_than_addresses_reach_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "MOST", 4096)
    x = emberlet.asarray(np.zeros(5000, np.float32), backend="native")
    with pytest.raises(BackendError, match="bytes of memory"):
        (x + 1).tolist()


def test_denormals_are_kept() -> None:
    a = np.full(3000, 1e-40, np.float32)
    np.testing.assert_array_equal(np.asarray(emberlet.asarray(a, backend="native") * 0.5), a * np.float32(0.5))


BLOCKED = """
import subprocess
import sys
sys.modules["llvmlite"] = sys.modules["llvmlite.binding"] = None
import numpy as np
from emberlet import nn
from emberlet.errors import BackendError
from emberlet.host.cli import main
assert main(["devices"]) == 0
print(nn.Linear(4, 4).compile()(np.ones((2, 4), np.float32)).shape)
try:
    nn.Linear(4, 4).compile(backend="native")
except BackendError as error:
    print(error)
"""


def test_a_process_without_llvmlite_computes_on_the_other_backends() -> None:
    done = python("-c", BLOCKED, check=True)
    advice = "backend 'native' needs llvmlite: "
    *devices, shape, error = done.stdout.strip().splitlines()
    assert [line for line in devices if line.startswith(f"native: {advice}") and "emberlet[native]" in line]
    assert shape == "(2, 4)" and error.startswith(advice)
