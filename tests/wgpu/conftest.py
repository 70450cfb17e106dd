"""A wgpu backend for the tests, and the same call on NumPy for comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emberlet.backend import Backend, get_backend
from emberlet.tensor import Tensor
from emberlet.wgpu_backend.device import Device

from tools.components import require


@pytest.fixture(scope="session")
def gpu() -> Backend:
    require("gpu-driver")
    pytest.importorskip("wgpu")
    return get_backend("wgpu")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The WGSL of each pipeline that is compiled from here on."""
    sources = []
    keep = Device.keep

    def kept(device: Device, source: str, pipeline: Any) -> Any:
        sources.append(source)
        return keep(device, source, pipeline)

    monkeypatch.setattr(Device, "keep", kept)
    return sources


class Twin:
    """Runs the same function of a backend on wgpu and on numpy and compares every tensor it returns."""

    def __init__(self, gpu: Backend) -> None:
        self.gpu = gpu
        self.cpu = get_backend("numpy")

    def move(self, x: Tensor, backend: Backend) -> Tensor:
        return backend.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)

    def check(
        self,
        function: Callable[..., Any],
        *inputs: Tensor,
        rtol: float = 1e-5,
        atol: float = 1e-5,
    ) -> None:
        """function(backend, *tensors) -> Tensor or tuple of Tensor."""
        with np.errstate(all="ignore"):
            want = function(self.cpu, *inputs)
        got = function(self.gpu, *[self.move(x, self.gpu) for x in inputs])
        wants = want if isinstance(want, tuple) else (want,)
        gots = got if isinstance(got, tuple) else (got,)
        assert len(wants) == len(gots)
        for w, g in zip(wants, gots, strict=True):
            assert g.dtype is w.dtype
            assert g.shape == w.shape
            a, b = np.array(self.gpu.to_list(g)), np.array(self.cpu.to_list(w))
            if w.dtype.is_float:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
            else:
                np.testing.assert_array_equal(a, b)


@pytest.fixture
def twin(gpu: Backend) -> Twin:
    return Twin(gpu)


class Maker:
    """Random tensors of the numpy backend."""

    def __init__(self) -> None:
        self.cpu = get_backend("numpy")
        self.random = np.random.default_rng(7)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None, low: int = -9, high: int = 9) -> Tensor:
        from emberlet import dtypes

        dtype = dtype or dtypes.float32
        if dtype.is_float:
            values = self.random.standard_normal(shape)
        elif dtype.is_bool:
            values = self.random.integers(0, 2, shape)
        else:
            values = self.random.integers(0 if dtype.kind == "uint" else low, high, shape)
        return self.cpu.from_list(np.asarray(values).reshape(-1).tolist(), dtype, shape)

    def of(self, values: Any, dtype: Any) -> Tensor:
        array = np.asarray(values)
        return self.cpu.from_list(array.reshape(-1).tolist(), dtype, array.shape)


@pytest.fixture
def make() -> Maker:
    return Maker()
