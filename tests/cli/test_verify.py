"""emberlet verify."""

import json

import numpy as np
import pytest
from emberlet.host.cli.verify import compare


@pytest.mark.parametrize("reference", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_right_model_is_within_tolerance(emberlet, digits, reference, backend):
    said = emberlet("verify", digits, "--backend", backend, "--reference", reference, "--dim", "batch=2")
    assert said.status == 0
    assert said.out.startswith(
        "compared with " + {"onnx": "ONNX's reference ", "onnxruntime": "onnxruntime "}[reference]
    )
    assert "ok  logits: float32 (2, 10) differs by at most" in said.out


def test_out_of_tolerance_is_status_1(emberlet, digits, images):
    said = emberlet("verify", digits, "--input", f"image={images}", "--atol", 0, "--rtol", 0, "--json")
    found = json.loads(said.out)
    assert said.status == 1
    assert not found["within"]
    assert 0 < found["outputs"][0]["absolute"] < 1e-4


def test_seeds_draw_different_inputs(emberlet, digits):
    said = {emberlet("verify", digits, "--seed", seed, "--rtol", 1, "--json").out for seed in (0, 0, 1)}
    assert len(said) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dim", "batch"], "--dim batch: expected NAME=NUMBER"),
        (["--dim", "btch=2"], "--dim btch=2: no input has a dimension 'btch'; there are batch"),
        (["--input", "x"], "--input x: expected NAME=FILE.npy or FILE.npz"),
        (["--seed", "-1"], "--seed is -1, expected 0 or more"),
        (["--atol", "nan"], "--atol is nan, expected 0 or more"),
        (["--rtol=-0.001"], "--rtol is -0.001, expected 0 or more"),
    ],
)
def test_mistakes_are_one_line(emberlet, digits, arguments, says):
    said = emberlet("verify", digits, *arguments)
    assert (said.status, said.err) == (2, f"emberlet: {says}\n")


def test_a_reference_that_fails_is_one_line(emberlet, digits, monkeypatch):
    def fail(inputs):
        raise ValueError("no memory")

    monkeypatch.setattr("emberlet.host.cli.verify._reference", lambda path, asked: ("onnxruntime 1", fail))
    assert emberlet("verify", digits).err == "emberlet: onnxruntime 1 fails on these inputs: no memory\n"


@pytest.mark.parametrize("expected", [0.0, np.nan, np.inf])
def test_json_is_json_whatever_the_difference(emberlet, digits, monkeypatch, expected):
    def wrong(inputs):
        return [np.full((1, 10), expected, np.float32)]

    monkeypatch.setattr("emberlet.host.cli.verify._reference", lambda path, asked: ("a reference", wrong))
    said = emberlet("verify", digits, "--json")
    found = json.loads(said.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert said.status == 1
    assert found["outputs"][0]["relative"] is None


def test_only_onnx_files_are_verified(emberlet, tmp_path):
    assert emberlet("verify", tmp_path / "m.py").status == 2


def test_without_onnxruntime_onnxs_reference_is_used(emberlet, digits, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    said = emberlet("verify", digits)
    assert said.status == 0
    assert "ONNX's reference" in said.out
    assert "refuses" not in said.out


@pytest.mark.parametrize(
    ("got", "expected", "within"),
    [
        (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]), True),
        (np.array([np.nan]), np.array([1.0]), False),
        (np.array([np.inf]), np.array([-np.inf]), False),
        (np.array([1.0]), np.array([np.inf]), False),
        (np.array([1.0 + 5e-5]), np.array([1.0]), True),
        (np.array([1.1]), np.array([1.0]), False),
        (np.array([1000.5]), np.array([1000.0]), True),
        (np.array([2], np.int64), np.array([3], np.int64), False),
        (np.array([True]), np.array([True]), True),
        (np.array(["a"], object), np.array(["b"], object), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
        (np.zeros((0,)), np.zeros((0,)), True),
    ],
)
def test_tolerance(got, expected, within):
    assert compare(got, expected, 1e-4, 1e-3)["within"] is within
