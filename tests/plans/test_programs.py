"""Programs that take each decision of the kernels compute what NumPy does operation by operation: on every backend that
has kernels, in NumPy's plans with large and with lowered thresholds, and divided among the threads of a tab."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile as planned
from emberlet.host.thresholds import lowered
from emberlet.wgpu_backend.compiled import compile as compiled
from support.every_backend import NATIVE, WASM
from support.kernel_programs.values import PROGRAMS, difference
from support.rows import every


@pytest.mark.needs("gpu-driver")
@every("name", PROGRAMS, share=6)  # each kernel is compiled first
def test_kernels_of_the_gpu_compute_what_numpy_does(name: str) -> None:
    assert not difference(name, "wgpu")


@pytest.mark.parametrize("backend", [WASM, NATIVE])
@every("name", PROGRAMS, share=4)
def test_kernels_for_cpus_compute_what_numpy_does(backend: str, name: str) -> None:
    assert not difference(name, backend)


@pytest.mark.parametrize("lower", [False, True])
@every("name", PROGRAMS, share=2)
def test_plans_of_numpy_compute_what_the_operations_do(lower: bool, name: str) -> None:
    def run(function: Callable[..., Any]) -> Callable[..., Any]:
        made = planned(function, backend="numpy")

        def called(*tensors: Any) -> Any:
            made(*[F.flip(x) if x.dtype.is_float else x for x in tensors])  # nothing of these values may remain
            return made(*tensors)

        return called

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not lower:
            assert not difference(name, "numpy", run)
        for seed in (2, 3, 4) if lower else ():  # another half of the thresholds each time
            with lowered(seed, together=True):
                assert not difference(name, "numpy", run), seed


@every("name", PROGRAMS, share=4)
def test_threads_of_a_tab_give_the_bytes_of_one(name: str) -> None:
    pytest.importorskip("wasmtime")
    from support.divided import in_parts

    with in_parts():
        assert not difference(name, "wasm", lambda function: compiled(function, backend="wasm"))
