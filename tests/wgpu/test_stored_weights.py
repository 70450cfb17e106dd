"""Weights stored in fewer bits follow the definition of their format, for tensors of any size and value."""

from __future__ import annotations

import json

import numpy as np
import pytest
from emberlet import Module, Param, dtypes
from emberlet import functional as F
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from emberlet.host import burnpack_writer
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan.data import KEY, VERSION, VERSION_STORED
from emberlet.wgpu_backend.plan.stored import BLOCK


def reference(values: np.ndarray, how: str) -> np.ndarray:
    """By GGUF's Q8_0, block after block, or by NumPy's float16."""
    if how == "float16":
        return values.astype(np.float16).astype(np.float32)
    out = []
    for at in range(0, len(values), BLOCK):
        block = values[at : at + BLOCK]
        scale = np.float16(np.abs(block).max() / 127).astype(np.float32)
        whole = np.clip(np.rint(block / (scale or np.float32(1))), -127, 127)
        out.append(whole * scale)
    return np.concatenate(out).astype(np.float32)


def tensor(make, values: np.ndarray):
    return make.cpu.from_list(values.tolist(), dtypes.float32, values.shape)


def saved(tmp_path, weights, how):
    """The plan of x + weights; with x = 0 its result is the weights as they arrived."""

    class Sum(Module):
        def __init__(self):
            self.w = Param(weights)

        def forward(self, x):
            return F.add(x, self.w.val())

    path = tmp_path / "w.plan"
    plan_file.save(str(path), Sum(), weights, weights=how)
    return path


@pytest.mark.parametrize("how", ["float16", "q8"])
def test_tensors_drawn_at_random_come_back_as_the_definition_has_them(gpu, make, tmp_path, how):
    rng = np.random.default_rng(5)
    for _ in range(12):
        count = int(rng.integers(1024, 9000))
        values = rng.standard_normal(count).astype(np.float32) * np.float32(10.0 ** rng.integers(-3, 3))
        values[rng.integers(0, count, 40)] = 0
        if rng.integers(2):
            values[:BLOCK] = 0  # a block without a scale
        weights = tensor(make, values)
        path = saved(tmp_path, weights, how)
        content = json.loads(Burnpack.from_file(str(path)).metadata[KEY])
        assert content["version"] == VERSION_STORED
        assert content["constants"][0][2] == how
        plan = plan_file.load(str(path), gpu.device, verify=True)
        (found,) = plan.run(np.zeros(count, np.float32))
        plan.release()
        np.testing.assert_array_equal(np.frombuffer(found.bytes, np.float32), reference(values, how))


def test_weights_that_would_lose_too_much_are_stored_unchanged(gpu, make, tmp_path):
    beyond = np.full(2048, 1e5, np.float32)  # no float16
    mask = np.where(np.arange(2048) % 2, -np.inf, 0).astype(np.float32)
    small = np.ones(100, np.float32)
    for values, how in [(beyond, "float16"), (mask, "q8"), (mask, "float16"), (small, "q8")]:
        path = saved(tmp_path, tensor(make, values), how)
        assert json.loads(Burnpack.from_file(str(path)).metadata[KEY])["version"] == VERSION
        plan = plan_file.load(str(path), gpu.device)
        (found,) = plan.run(np.zeros(len(values), np.float32))
        np.testing.assert_array_equal(np.frombuffer(found.bytes, np.float32), values)
        plan.release()


def test_an_unknown_way_to_store_is_refused(make, tmp_path):
    x = tensor(make, np.zeros(2000, np.float32))
    with pytest.raises(ValueError, match=r"float16.*q8.*'int3'"):
        saved(tmp_path, x, "int3")


def test_files_whose_parts_do_not_fit_are_refused(gpu, make, tmp_path):
    weights = tensor(make, np.random.default_rng(0).standard_normal(2000).astype(np.float32))
    source = Burnpack.from_file(str(saved(tmp_path, weights, "q8")))
    tensors = {name: source.tensor(name, "numpy") for name in source.tensors}

    def refused(change, tensors=tensors):
        content = json.loads(source.metadata[KEY])
        change(content["constants"][0])
        with pytest.raises(FormatError) as caught:
            plan_file.load(burnpack_writer.dumps(tensors, {KEY: json.dumps(content)}), gpu.device)
        return str(caught.value)

    assert "in 1 parts" in refused(lambda c: c.__setitem__(3, None))
    assert "as 'int3' in 2 parts" in refused(lambda c: c.__setitem__(2, "int3"))
    assert "that is missing" in refused(lambda c: c.__setitem__(3, "gone"))
    assert "does not fit buffer" in refused(lambda c: c.__setitem__(3, c[1]))
    assert "not a list of 2 or 4" in refused(lambda c: c.pop())
    short = {**tensors, "constant0": tensors["constant0"][:-8]}
    assert "does not fit buffer" in refused(lambda c: None, short)
