"""The backend's public behavior: values, plans, threads, refusals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import BackendError, UnsupportedError
from emberlet.wgpu_backend import compiled
from emberlet.wgpu_backend.wasm import WasmBackend
from emberlet.wgpu_backend.wasm.engine import compiled as compiled_module

from tools.paths import ROOT


def digits() -> Any:
    return codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")


def test_a_thousand_calls_take_no_more_memory() -> None:
    fast = digits().compile(np.zeros((1, 1, 8, 8), np.float32), backend="wasm")
    x = np.zeros((1, 1, 8, 8), np.float32)
    program = fast.planned().program
    before = program.instance.memory.data_len(program.instance.store)
    for _ in range(1000):
        fast(x)
    assert program.instance.memory.data_len(program.instance.store) == before


def test_a_released_program_says_so() -> None:
    fast = digits().compile(np.zeros((1, 1, 8, 8), np.float32), backend="wasm")
    fast.planned().program.release()
    with pytest.raises(BackendError, match="released"):
        fast(np.zeros((1, 1, 8, 8), np.float32))


def test_a_kernel_in_wgsl_is_refused_by_name() -> None:
    x = emberlet.asarray([1.0], backend="wasm")
    with pytest.raises(UnsupportedError, match="kernel swish"):
        x.backend.launch("swish", "", [x], x.dtype, x.shape, (1, 64))


def test_there_is_one_wasm_backend() -> None:
    with pytest.raises(BackendError, match="one wasm backend"):
        get_backend("wasm:1")


def test_without_wasmtime_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(BackendError, match="wasm"):
        WasmBackend()


def test_integers_beyond_32_bits_are_computed_on_the_host() -> None:
    backend = get_backend("wasm")
    before = dict(backend.fallbacks)  # type: ignore[attr-defined]
    x = emberlet.asarray([1 << 40, 3], dtype="int64", backend="wasm")
    assert np.asarray(x * x + 1).tolist() == [((1 << 80) + 1) % (1 << 64), 10]
    assert backend.fallbacks != before  # type: ignore[attr-defined]


FORKING = """
import os, sys
import numpy as np
from emberlet import codegen
from emberlet import functional as F
model = codegen.load(sys.argv[1], backend="numpy")
fast = model.compile(np.zeros((1, 1, 8, 8), np.float32), backend="wasm")
x = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
wanted = np.asarray(model(x))
child = os.fork()
np.testing.assert_allclose(np.asarray(fast(x)), wanted, rtol=1e-5, atol=1e-5)  # compiles
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_compiles() -> None:
    command = [sys.executable, "-c", FORKING, str(ROOT / "examples" / "digits" / "digits.onnx")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as running:
        try:
            _, said = running.communicate(timeout=600)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)  # the fork too, where it waits for ever
    assert running.returncode == 0, said.decode()


def test_strings_are_computed_on_the_host() -> None:
    texts = emberlet.asarray(["a", "b"], backend="numpy")
    assert compiled.compile(lambda x: x, backend="wasm")(texts).tolist() == ["a", "b"]


def test_an_invalid_module_of_its_own_is_an_error_of_the_backend() -> None:
    with pytest.raises(BackendError, match="emberlet wrote is invalid"):
        compiled_module(b"no module")


@pytest.mark.parametrize("shape, axis", [(s, a) for s in ((3, 5), (9, 38), (70, 64)) for a in (0, 1, None)] + [
    ((2, 8, 3, 3), (0, 2, 3)), ((3, 7, 9), (0, 2)), ((4, 3, 16), (0, 1)), ((2, 2, 33, 2), (0, 3))])  # fmt: skip
@pytest.mark.parametrize("backend", ["wasm", "native"])
def test_nan_is_the_least_and_the_largest_wherever_it_is(backend: str, shape: tuple[int, ...], axis: Any) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    rng = np.random.default_rng(0)
    for _ in range(12):
        x = rng.standard_normal(shape, np.float32)
        x.reshape(-1)[rng.integers(x.size // 2)] = rng.choice([np.nan, np.nan, np.inf, -np.inf, 0.0])
        for op in ("min", "max"):
            found = getattr(F, op)(emberlet.asarray(x, backend=backend), axis=axis)
            np.testing.assert_array_equal(np.asarray(found), getattr(np, op)(x, axis=axis))


@pytest.mark.parametrize("backend", ["wasm", "native"])
@pytest.mark.parametrize("shape", [(2, 8, 9, 9), (1, 3, 8, 21), (1, 4, 5, 6, 7)])
def test_the_largest_of_a_window_with_nan_is_nan(backend: str, shape: tuple[int, ...]) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape, np.float32)
    x[rng.random(shape) < 0.05] = np.nan
    axes = tuple(range(2, x.ndim))
    padded = np.pad(x, ((0, 0), (0, 0), *((1, 1) for _ in axes)), constant_values=-np.inf)
    want = np.lib.stride_tricks.sliding_window_view(padded, (3,) * len(axes), axes).max(
        tuple(range(x.ndim, x.ndim + len(axes)))
    )
    found = F.max_pool(emberlet.asarray(x, backend=backend), 3, 1, 1)
    np.testing.assert_array_equal(np.asarray(found), want)
