"""Resizing open axes: at every size, the same bits as the plan for that size."""

import math
import random
import re

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet import functional as F
from emberlet.errors import EmberletError
from emberlet.host.numpy_backend.compile import compile as compile_for_numpy
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile

COORDINATES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("seed", range(4))
def test_scales_of_whole_numbers_take_one_plan(mode, seed):
    r = random.Random(seed)
    rng = np.random.default_rng(seed)
    scales = [1.0, 1.0] + [r.choice([2.0, 4.0, 8.0, 0.5] + [3.0] * (mode == "nearest")) for _ in range(2)]
    options = {"mode": mode, "coordinates": COORDINATES[seed % 3], "nearest_mode": r.choice(NEAREST)}
    by_sizes = seed % 2 and min(scales) >= 1

    def model(x):
        if by_sizes:
            return F.resize(x, None, [n * int(s) for n, s in zip(x.shape, scales, strict=True)], **options)
        return F.resize(x, scales, **options)

    opened = compile(model, backend="wgpu", dims={"x": {0: "batch", 2: "height", 3: "width"}})
    alone = compile(model, backend="wgpu")
    for _ in range(4):
        x = rng.standard_normal((r.randint(1, 3), 2, r.randint(4, 40), r.randint(4, 40))).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(opened(x)), np.asarray(alone(x)), err_msg=str(x.shape))
    assert len(opened._open) == 1
    assert not opened.fixed


@pytest.mark.parametrize("options", [
    {"scales": [1.0, 1.3]},
    {"scales": [1.0, 3.0], "mode": "linear"},
    {"scales": [1.0, 2.0], "mode": "linear", "coordinates": "align_corners"},
    {"scales": [1.0, 0.5], "mode": "cubic", "exclude_outside": True},
    {"scales": [1.0, 0.125], "mode": "linear", "antialias": True},
    {"sizes": [3, 50]},
])  # fmt: skip
def test_other_scales_keep_a_plan_for_each_size_and_say_so(options):
    def model(x):
        return F.resize(x, **options)

    compiled = compile(model, backend="wgpu", dims={"x": {1: "width"}})
    for n in (9, 16, 31):
        x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
        wanted = np.asarray(model(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-5, atol=1e-5)
    assert "of the open size width is needed" in str(compiled.fixed["width"])


@pytest.mark.parametrize("scale", [-2.0, -0.5, math.nan, math.inf])
@pytest.mark.parametrize("backend", ["numpy", "wasm"])
def test_a_scale_that_gives_no_length_is_refused_as_eagerly(scale, backend):
    def model(x):
        return F.interpolate(x, scale_factor=(scale, 1.5))

    x = np.ones((1, 1, 2, 3), np.float32)
    with pytest.raises(EmberletError) as eager:
        model(emberlet.asarray(x, backend="numpy"))
    if backend == "numpy":
        compiled = compile_for_numpy(model, dims={"x": {2: "height"}})
    else:
        compiled = compile(model, backend=backend, dims={"x": {2: "height"}})
    with pytest.raises(eager.type, match=f"^{re.escape(str(eager.value))}$"):
        compiled(emberlet.asarray(x, backend="numpy"))


def test_a_segmentation_model_takes_pictures_of_any_size():
    model = codegen.load("tests/models/unet_traced/model.onnx", backend="numpy")
    compiled = model.compile(backend="wgpu", dims={"batch": 4, "height": range(16, 65, 4), "width": range(16, 65, 4)})
    rng = np.random.default_rng(0)
    for batch, height, width in ((1, 16, 24), (2, 64, 32), (1, 48, 20), (4, 28, 60)):
        x = rng.standard_normal((batch, 1, height, width)).astype(np.float32)
        wanted = np.asarray(model(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-3, atol=1e-4)
    assert len(compiled._open) == 1
    assert not compiled.fixed


def test_a_saved_plan_resizes_any_length(tmp_path):
    def model(x):
        return F.interpolate(x, scale_factor=2, mode="linear")

    path = str(tmp_path / "resize.plan")
    plan_file.save(path, model, emberlet.zeros((1, 2, 5)), dims={"x": {2: ("length", 100)}})
    plan = plan_file.load(path)
    for n in (1, 7, 100):
        x = np.random.default_rng(n).standard_normal((1, 2, n)).astype(np.float32)
        (found,) = plan.run(x)
        wanted = np.asarray(model(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(found.to_list(), wanted, rtol=1e-5, atol=1e-6)
