"""The time of the first result on a GPU: C types, and kernels compiled in parallel."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from emberlet import functional as F
from emberlet.errors import BackendError
from emberlet.wgpu_backend.cffi_types import quicken
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.run.pipelines import pipelines_of
from emberlet.wgpu_backend.run.side_by_side import compile_kernels

SAID = """
import sys
import numpy as np
from cffi.api import FFI

asked = []
whole = FFI._typeof_locked

def spy(self, text):
    asked.append(text)
    return whole(self, text)

FFI._typeof_locked = spy
from emberlet.backend import get_backend
from emberlet.functional import exp, matmul, asarray
from wgpu.backends.wgpu_native._ffi import ffi
from emberlet.wgpu_backend.cffi_types import quicken_wgpu

assert quicken_wgpu() and quicken_wgpu()
x = asarray(np.ones((3, 3), np.float32), backend="wgpu")
np.asarray(matmul(exp(x), x))
parser = ffi._parser
asked += ["const char *", "WGPUDevice const *", "void *", "uint32_t", "WGPUBool", "struct WGPULimits", "WGPULimits[3]",
          "WGPULimits * *", "int (*)(WGPUBuffer, uint64_t)", "unsigned long long", "WGPUTextureFormat"]
for text in dict.fromkeys(asked):
    quick, slow = parser.parse_type(text), type(parser).parse_type(parser, text)
    assert quick == slow and type(quick) is type(slow), (text, quick, slow)
for text in ("WGPUNothing", "WGPULimits [", "struct"):
    found = []
    for parse in (parser.parse_type, lambda t: type(parser).parse_type(parser, t)):
        try:
            parse(text)
        except Exception as error:
            found.append(type(error).__name__)
    assert len(found) == 2 and found[0] == found[1], (text, found)
print(len(set(asked)))
"""


@pytest.mark.needs("gpu-driver")
def test_every_type_that_is_asked_is_what_cffi_itself_finds() -> None:
    done = subprocess.run([sys.executable, "-c", SAID], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


class _Slots:
    __slots__ = ("_declarations",)

    def __init__(self) -> None:
        self._declarations: dict[str, Any] = {}

    def parse_type(self, text: str) -> str:
        return text


class _Ffi:
    def __init__(self, parser: Any = None) -> None:
        if parser is not None:
            self._parser = parser


@pytest.mark.parametrize("parser", [None, object(), _Slots()], ids=["no parser", "another", "no place"])
def test_nothing_is_changed_where_cffi_is_another(parser: Any) -> None:
    assert not quicken(_Ffi(parser))


def test_kernels_compiled_side_by_side_are_those_compiled_alone(gpu: Any, make: Any) -> None:
    def model(x: Any) -> Any:
        return [F.exp(x) @ x, F.sum(x, axis=0), F.cumulative_sum(x, axis=1), F.argmax(x, axis=1)]

    x = make((5, 5))
    wants = [t.tolist() for t in compile(model, x, backend=gpu)(x)]
    gpu.device.pipelines.clear()
    assert [t.tolist() for t in compile(model, x, backend=gpu)(x)] == wants


def test_a_kernel_that_does_not_compile_says_so_among_others(gpu: Any) -> None:
    good = (
        "@group(0) @binding(0) var<storage, read_write> o: array<f32>;\n"
        "@compute @workgroup_size({}) fn main() {{ o[0] = 1.0; }}"
    )
    kernels = [("one", good.format(7)), ("two", "this is no WGSL"), ("three", good.format(9))]
    compile_kernels(gpu.device, kernels)
    assert gpu.device.pipelines.get(kernels[0][1]) and gpu.device.pipelines.get(kernels[2][1])
    with pytest.raises(BackendError, match="compiling kernel two"):
        pipelines_of(gpu.device, kernels)


ADAPTERS = """
import numpy as np
import wgpu

asked = []
kind = type(wgpu.gpu)
whole = kind.enumerate_adapters_sync
kind.enumerate_adapters_sync = lambda self, *given: asked.append(1) or whole(self, *given)
from emberlet.functional import asarray, exp
from emberlet.wgpu_backend.compiled import compile

x = asarray(np.ones((3, 3), np.float32), backend="wgpu")
np.asarray(exp(x))
for _ in range(2):
    np.asarray(compile(exp, x)(x))
print(len(asked))
"""


@pytest.mark.needs("gpu-driver")
def test_the_adapters_are_asked_for_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ADAPTERS], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1"]


EARLY = """
import os, sys, threading
import emberlet
from emberlet.wgpu_backend import device, native

how = sys.argv[1]
gate, opened, threads = threading.Event(), [], []
whole = native.open_raw

def open_raw(*arguments):
    threads.append(threading.current_thread())
    gate.wait(60)
    if how == "fails":
        raise emberlet.errors.BackendError("no adapter today")
    opened.append(1)
    return whole(*arguments)

native.open_raw = open_raw

def model(x):
    gate.set()  # tracing has begun, while the device waits to be opened
    if how == "forks":
        child = os.fork()
        if not child:
            try:
                emberlet.ones((2,), device="wgpu").tolist()
            except emberlet.errors.BackendError as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    return x * 2.0

if how == "forks":
    gate.set()
x = emberlet.ones((2,), backend="numpy")
try:
    from emberlet.wgpu_backend.compiled import compile
    fast = compile(model, x)
except emberlet.errors.BackendError as error:
    assert how == "fails" and "no adapter today" in str(error), error
else:
    assert fast(x).tolist() == [2.0, 2.0] and opened == [1]
    assert threads[0] is not threading.main_thread()
"""


@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize("how", ["works", "fails", "forks"])
def test_the_device_opens_while_a_model_is_traced(how: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", EARLY, how]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_a_backend_for_plans_never_opens_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.wgpu_backend import native
    from emberlet.wgpu_backend.backend import WgpuBackend

    started: list[int] = []
    monkeypatch.setattr(native, "open_early", lambda index, opened: started.append(index))
    WgpuBackend(planning=True).open_early()
    assert not started
