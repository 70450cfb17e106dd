"""A plan with open sizes has no more dispatches than a plan for one size, on any machine, under any load."""

from __future__ import annotations

import warnings
from pathlib import Path

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from emberlet.wgpu_backend.compiled import compile

MODELS = Path(__file__).parents[1] / "models"
SIZES = {"batch": 2, "past": 16, "new": 1}  # and 7 with any other
# A plan for one size holds as constants whatever a model computes from its lengths alone: the cosines and sines of
# llama's positions, the embeddings of bert's, a number of quantized_dynamic's first step. Where it knows that an
# operand of a product, or a tensor that several kernels read, is little, it computes it anew instead of storing it: 26
# of quantized_dynamic's, one of gpt's.
FROM_LENGTHS = {"llama": 2, "bert_traced": 1, "quantized_dynamic": 27, "gpt": 1}


def _counts(model, arguments, dims):
    fixed = model.compile(*arguments, backend="wgpu")
    opened = model.compile(*arguments, backend="wgpu", dims=dims)
    assert len(opened._open) == 1
    return len(fixed.plan().steps), len(opened.plan().steps)


@pytest.mark.parametrize(
    "name", ["bert_traced", "gpt", "gru_stack", "llama", "lstm_stack", "mobile_cnn", "quantized_dynamic", "vit"]
)
def test_an_open_plan_has_the_dispatches_of_a_plan_for_one_size(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load(str(MODELS / name / "model.onnx"), "numpy")
    rng = np.random.default_rng(0)
    names, arguments = set(), []
    for _, dtype, shape in model.INPUTS:
        names.update(d for d in shape if isinstance(d, str))
        sizes = [SIZES.get(d, 7) if isinstance(d, str) else d for d in shape]
        arguments.append((rng.random(sizes) * 5).astype(dtype))
    fixed, opened = _counts(model, arguments, dict.fromkeys(sorted(names), 64))
    assert opened <= fixed + FROM_LENGTHS.get(name, 0)


def test_a_growing_cache_is_read_by_one_kernel_of_attention():
    model = load(str(MODELS / "llama" / "model.onnx"), "numpy")
    given = [np.zeros((1, 1), np.int64), *(np.ones((1, 4, 16, 4), np.float32) for _ in range(4))]
    opened = model.compile(*given, backend="wgpu", dims={"past": 2048})
    plan = opened.plan()
    names = [plan.kernels[step.kernel][0] for step in plan.steps]
    assert len([n for n in names if n.startswith("attention")]) == 2, names
    assert not [n for n in names if "softmax" in n or n.startswith(("rows_max", "reduce"))], names


@pytest.mark.parametrize(
    "function, dispatches",
    [
        # a state of zeros that a model makes for any batch: the product is one row, computed once
        (lambda x, w: x + F.matmul(F.zeros(x.shape, backend=x.backend), w) + F.matmul(F.ones_like(x), w), 1),
        # extremes of one number, as dynamic quantization computes them of that state
        (lambda x, w: x * F.where(F.max(F.zeros_like(x)) == F.min(F.zeros_like(x)), 2.0, 3.0), 1),
    ],
)
def test_products_and_extremes_of_one_number_take_no_kernel(function, dispatches):
    weight = emberlet.asarray(np.arange(36, dtype=np.float32).reshape(6, 6) * 0.1)

    def model(x):
        return function(x, weight.to(x.backend))

    compiled = compile(model, np.zeros((3, 6), np.float32), backend="wgpu", dims={"x": {0: ("batch", 9)}})
    assert len(compiled._open) == 1 and len(compiled.plan().steps) == dispatches
    for batch in (1, 4, 9):
        x = np.random.default_rng(batch).standard_normal((batch, 6)).astype(np.float32)
        wanted = np.asarray(model(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-6, atol=1e-6)
