"""Gradients of layers and functions in random configurations, compared with PyTorch 2.13 (fixtures/torch_gradients.py).

Left out are the interpolations whose gradient in PyTorch fails its own gradcheck: where a scale leaves a length as it
is. tests/autodiff compares these with finite differences, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.backend import get_backend

from . import test_torch_configurations as forward
from .gradient_answers import kept, wanted, weights
from .torch_configurations import EACH, KINDS, configuration

FIXTURE = Path(__file__).parent / "fixtures" / "torch_gradients.npz"
# Of each kind on wgpu and wasm, which compile a kernel for most of them; EACH are all.
COMPILED = int(os.environ.get("EMBERLET_CONFIGURATIONS", "2"))
# Of equal elements, PyTorch gives the whole gradient to one in cummax and sort, and a share to each in amax: as here.
# At the bounds of its range, clip passes the gradient on, and PyTorch's relu6 and hardtanh do not.


def answers() -> Iterator[tuple[str, int, list[Any]]]:
    """(kind, number, kept elements of each float array's gradient)."""
    with np.load(FIXTURE) as file:
        for name in KINDS:
            values, ends = file[name + "/values"], [0, *file[name + "/ends"]]
            at = 0
            for i in range(EACH):
                count = len(wanted(name, configuration(name, i)[0]))
                yield name, i, [values[ends[at + k] : ends[at + k + 1]] for k in range(count)]
                at += count


def gradients(name: str, i: int, backend: Any) -> list[Any]:
    arrays, options = configuration(name, i)
    made = []

    def tensor(key: str) -> Any:
        v = arrays[key]
        x = emberlet.asarray(np.ascontiguousarray(v), backend=backend).reshape(np.shape(v))
        if key in required:
            x = x.require_grad()
            made.append(x)
        return x

    required = wanted(name, arrays)
    y = forward.computed(name, dict(options), {k: tensor(k) for k in arrays})
    if not y.dtype.is_float or y.data.node is None:
        return [np.zeros(x.shape, np.float32) for x in made]
    grads = y.backward(emberlet.asarray(weights(y.shape), backend=backend))
    found = [x.grad(grads) for x in made]
    return [np.zeros(x.shape, np.float32) if g is None else np.asarray(g) for x, g in zip(made, found, strict=True)]


def differences(backend: Any, most: int) -> list[str]:
    out = []
    for name, i, answer in answers():
        if i >= most:
            continue
        try:
            if any(np.isnan(v).any() for v in answer):
                continue
            for found, expected in zip(gradients(name, i, backend), answer, strict=True):
                np.testing.assert_allclose(kept(found), expected, rtol=1e-3, atol=1e-4)
        except Exception as error:  # a failure names all that differ
            lines = [line for line in str(error).splitlines() if line.strip()]
            out.append(f"{name} {i} {configuration(name, i)[1]}: {type(error).__name__} {' '.join(lines[:5])[:240]}")
    return out


def test_the_gradients_are_many() -> None:
    assert sum(not any(np.isnan(v).any() for v in answer) for _, _, answer in answers()) >= 1000


@pytest.mark.parametrize("name", ["numpy", "python"])
def test_every_gradient_is_pytorchs(name: str) -> None:
    found = differences(get_backend("autodiff:" + name), EACH)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)


@pytest.mark.usefixtures("wgpu_adapter")
@pytest.mark.needs("gpu-driver")
def test_gradients_on_the_gpu_are_pytorchs() -> None:
    found = differences(get_backend("autodiff:wgpu"), COMPILED)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)


def test_gradients_in_webassembly_are_pytorchs() -> None:
    found = differences(get_backend("autodiff:wasm"), COMPILED)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)
