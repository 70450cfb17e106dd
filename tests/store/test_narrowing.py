"""Weights stored in fewer bits stay finite and none vanishes; what the dtype does not hold is kept wider and named."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen, nn, store
from emberlet.burnpack import Burnpack
from emberlet.host.cli import main
from emberlet.module import Module
from emberlet.module.narrowing import PrecisionWarning, holds
from support.onnx_models import with_constants
from support.rows import every


class Net(Module):
    def __init__(self) -> None:
        self.fc = nn.Linear(3, 2)
        self.norm = nn.BatchNorm(2)
        self.mask = nn.Param(emberlet.asarray([0.0, -3.4e38]))
        self.tiny = nn.Param(emberlet.asarray([1e-12]))


def dtypes_of(path: Path) -> dict[str, str]:
    return {name: entry.dtype.name for name, entry in store.open(path).items()}


@every(("values", "dtype", "expected"), [
        ([1.0, -65504.0], "float16", True), ([65519.0], "float16", True), ([65520.0], "float16", False),
        ([np.inf, np.nan, 1.0], "float16", True), ([-3.4e38], "float16", False), ([-3.4028234e38], "bfloat16", False),
        ([3.38e38], "bfloat16", True), ([1.0, 1e-9], "float16", True), ([1e-9], "float16", False),
        ([1e-4, 2e-8], "float16", True), ([0.0, 0.0], "float16", True), ([6e-8], "float16", True),
        ([1e-30], "bfloat16", True), ([], "float16", True), ([np.inf, 1e-9], "float16", False),
    ])  # fmt: skip
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_dtype_holds_what_stays_finite_and_does_not_vanish(
    values: Any, dtype: str, expected: bool, backend: str
) -> None:
    x = emberlet.asarray(np.array(values, np.float32), backend=backend)
    assert holds(x, getattr(emberlet, dtype)) is expected


@pytest.mark.parametrize("precision", ["half", "bfloat16"])
@pytest.mark.parametrize("way", ["save_file", "save_into", "store", "record"])
def test_saving_keeps_what_does_not_fit_and_batch_norms(way: str, precision: str, tmp_path: Path) -> None:
    net, path = Net(), tmp_path / "net.bpk"
    net.norm.running_var.set(emberlet.asarray([1e6, 1e-9]))
    if precision == "bfloat16":
        net.mask.set(emberlet.asarray([0.0, -3.4028234e38]))
    with pytest.warns(PrecisionWarning, match="'mask' stays float32.* float16|'mask' stays float32.* bfloat16"):
        if way == "save_file":
            net.save_file(path, precision)
        elif way == "save_into":
            net.save_into(path, precision=precision)
        elif way == "store":
            store.from_module(net).precision(precision).save(path)
        else:
            net.to_record().with_precision(precision).save(path)
    found, narrow = dtypes_of(path), "float16" if precision == "half" else "bfloat16"
    assert {found["fc.weight"], found["fc.bias"]} == {narrow}
    assert {found[name] for name in ("norm.weight", "norm.bias", "norm.running_mean", "norm.running_var", "mask")} == {
        "float32"
    }
    again = Net()
    again.load_file(path)
    assert again.norm.running_var.val().tolist() == net.norm.running_var.val().tolist()
    assert np.isfinite(np.asarray(again.mask.val())).all() and np.asarray(again.tiny.val()).all()


def test_weights_that_fit_are_narrowed_without_a_word(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Linear(3, 2).save_file(tmp_path / "net.bpk", "half")
    assert set(dtypes_of(tmp_path / "net.bpk").values()) == {"float16"}


def test_float64_that_float32_does_not_hold_stays(tmp_path: Path) -> None:
    wide = store.store_of({"a": np.array([1e300]), "b": np.array([1e30]), "c": np.array([2.5])})
    with pytest.warns(PrecisionWarning, match="'a' stays float64"):
        wide.precision("full").save(tmp_path / "full.bpk")
    assert dtypes_of(tmp_path / "full.bpk") == {"a": "float64", "b": "float32", "c": "float32"}
    with pytest.warns(PrecisionWarning, match=r"'a'.*float64, 'b'.*float32"):
        wide.half().save(tmp_path / "half.bpk")
    assert dtypes_of(tmp_path / "half.bpk") == {"a": "float64", "b": "float32", "c": "float16"}


def test_convert_says_what_it_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Net().save_into(tmp_path / "net.safetensors")
    assert main(["convert", str(tmp_path / "net.safetensors"), str(tmp_path / "half.bpk"), "--half"]) == 0
    assert (
        "note: 'mask' stays float32, 'tiny' stays float32: float16 does not hold their values"
        in capsys.readouterr().err
    )
    found = dtypes_of(tmp_path / "half.bpk")
    assert found["mask"] == found["norm.running_var"] == "float32" and found["fc.weight"] == "float16"


def test_a_generated_model_keeps_its_mask(tmp_path: Path) -> None:
    mask = np.array([[0, -3.4e38, 0, -3.4e38, 0]], np.float32)
    w = np.random.default_rng(1).normal(size=(5, 5)).astype(np.float32)
    text = "g (float[1, 5] x) => (float[1, 5] y) { h = MatMul(x, w)  m = Add(h, mask)  y = Softmax(m) }"
    model = with_constants(text, 17, w=w, mask=mask)
    with pytest.warns(PrecisionWarning, match="stays float32"):
        made = codegen.generate(model, tmp_path, name="masked", half=True)
    assert made.weights is not None
    pack = Burnpack.from_file(made.weights)
    assert sorted(e.dtype.name for e in pack.tensors.values()) == ["float16", "float32"]
