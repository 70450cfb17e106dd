"""Small models with their expected results, computed once by NumPy."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.tensor import Tensor

WIDTH = 16


def given(rows: int, seed: int = 0) -> np.ndarray:
    """An input of that many rows."""
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)


@functools.cache
def weights(which: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1000 + which)
    return tuple(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) * 0.3 for _ in range(2))  # type: ignore[return-value]


def wanted(x: np.ndarray, which: int = 0) -> np.ndarray:
    """The results of model number `which`."""
    first, second = (w.astype(np.float64) for w in weights(which))
    y = np.maximum(x @ first, 0.0) @ second
    e = np.exp(y - y.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def model(which: int, backend: Any) -> Callable[[Tensor], Tensor]:
    """Model number `which`, its weights on `backend`."""
    first, second = (tensor(w, backend) for w in weights(which))

    def forward(x: Tensor) -> Tensor:
        return F.softmax(F.relu(x @ first.to_device(x.backend)) @ second.to_device(x.backend))

    return forward


def tensor(x: np.ndarray, backend: Any) -> Tensor:
    found: Tensor = backend.from_bytes(x.astype(np.float32).tobytes(), dtypes.float32, x.shape)
    return found


def array(x: Any) -> np.ndarray:
    """The elements of a Tensor or of TensorData."""
    data = x.backend.to_bytes(x) if isinstance(x, Tensor) else x.bytes
    return np.frombuffer(bytes(data), np.float32).reshape(x.shape)


def wrong(got: np.ndarray, want: np.ndarray) -> str:
    """A description of what is wrong with a result, or ""."""
    if got.shape != want.shape:
        return f"shape {got.shape} in the place of {want.shape}"
    off = float(np.abs(got - want).max()) if got.size else 0.0
    return "" if off < 1e-4 else f"off by {off}"


def compiled(which: int = 0, rows: int = 4) -> Any:
    from emberlet.wgpu_backend.compiled import compile

    gpu, cpu = get_backend("wgpu"), get_backend("numpy")
    return compile(model(which, gpu), tensor(given(rows), cpu), backend=gpu)


@functools.cache
def plan_bytes(which: int = 0, rows: int = 4) -> bytes:
    """A saved plan of model number `which`."""
    from emberlet.wgpu_backend import plan_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.plan"
        cpu = get_backend("numpy")
        plan_file.save(str(path), _Moving(which), tensor(given(rows), cpu))
        return path.read_bytes()


class _Moving:
    """The model on the backend of its input."""

    def __init__(self, which: int) -> None:
        self._which = which

    def __call__(self, x: Tensor) -> Tensor:
        return model(self._which, x.backend)(x)


def plan(which: int = 0, rows: int = 4) -> Any:
    from emberlet.wgpu_backend import plan_file

    return plan_file.load(plan_bytes(which, rows))


def ways(which: int = 0, rows: int = 4) -> dict[str, Callable[[], np.ndarray]]:
    """Ways to compute model number `which` on `given(rows)`, by name, each of which has run once."""
    gpu, cpu = get_backend("wgpu"), get_backend("numpy")
    x = given(rows)
    ready = compiled(which, rows)
    loaded = plan(which, rows)
    eager = model(which, gpu)
    found = {
        "compiled": lambda: array(ready(tensor(x, cpu))),
        "eager": lambda: array(eager(tensor(x, gpu))),
        "plan": lambda: array(loaded.run(x)[0]),
    }
    for way in found.values():
        way()
    return found


def ways_async(which: int = 0, rows: int = 4) -> dict[str, Any]:
    """The same, as coroutine functions."""
    cpu, gpu = get_backend("numpy"), get_backend("wgpu")
    x = given(rows)
    ready = compiled(which, rows)
    loaded = plan(which, rows)
    eager = model(which, gpu)

    async def by_compiled() -> np.ndarray:
        return array(await ready.call_async(tensor(x, cpu)))

    async def by_eager() -> np.ndarray:
        return array(await gpu.to_data_async(eager(tensor(x, gpu))))

    async def by_plan() -> np.ndarray:
        return array((await loaded.run_async(x))[0])

    return {"compiled": by_compiled, "eager": by_eager, "plan": by_plan}
