"""--freeze of codegen, run, verify, compile and profile."""

import json

import numpy as np
import onnx
import pytest
from emberlet.burnpack import Burnpack
from support.deciding_model import DECIDES, arrays
from support.onnx_models import expected, parse


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "detector.onnx"
    onnx.save(parse(DECIDES), path)
    return path


SHAPE = ("--freeze", "shape=[1, -1]")


@pytest.mark.parametrize("sr", [16000, 8000])
def test_verify_gives_the_reference_the_same_value(emberlet, model, sr):
    said = emberlet("verify", model, "--freeze", f"sr={sr}", *SHAPE, "--dim", "batch=2")
    assert said.status == 0, said.err
    assert f"frozen: sr = [{sr}], shape = [1, -1]\n" in said.out
    assert said.out.count("ok ") == 3 + 4  # its outputs, and the ways of running
    said = emberlet("verify", model, "--freeze", f"sr={sr}", *SHAPE, "--bisect")
    assert said.status == 0, said.err


def test_codegen_and_run(emberlet, model, tmp_path):
    inputs = arrays(2, 3)
    given = []
    for name, x in {**inputs, "gain": np.array([0.5], np.float32)}.items():
        np.save(tmp_path / f"{name}.npy", x)
        given += ["--input", f"{name}={tmp_path / (name + '.npy')}"]
    np.save(tmp_path / "sr.npy", np.array(16000))
    freeze = ["--freeze", f"sr={tmp_path / 'sr.npy'}", "--freeze", "loud=true", *SHAPE]
    want = expected(
        parse(DECIDES),
        {**inputs, "gain": np.array([0.5], np.float32), "sr": np.array(16000), "loud": np.array(True),
         "shape": np.array([1, -1])},
    )  # fmt: skip

    said = emberlet("run", model, *freeze, *given, "--out", tmp_path / "y.npz")
    assert said.status == 0, said.err
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], want[0], rtol=1e-5)

    assert emberlet("codegen", model, *freeze, "--out", tmp_path).status == 0
    said = emberlet("run", tmp_path / "detector.py", *given, "--out", tmp_path / "z.npz")
    assert said.status == 0, said.err
    np.testing.assert_allclose(np.load(tmp_path / "z.npz")["y"], want[0], rtol=1e-5)


def test_a_model_that_branches_on_an_input_has_a_plan_once_it_is_frozen(emberlet, model, tmp_path):
    plan = tmp_path / "d.plan"
    assert emberlet("compile", model, *SHAPE, "--out", plan).status == 2
    said = emberlet("compile", model, "--freeze", "sr=16000", "--freeze", "loud=1", *SHAPE, "--out", plan)
    assert said.status == 0, said.err
    assert Burnpack.from_file(plan).tensors


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sr"], "--freeze sr: expected NAME=VALUE"),
        (["sr=1", "sr=2"], "--freeze sr: given twice"),
        (["ssr=1"], "detector.onnx: there is no input 'ssr' to freeze (did you mean 'sr'?)"),
        (["sr=fast"], "detector.onnx: input 'sr' cannot be frozen: its dtype is int64, found 'fast'"),
        (["sr=nowhere.npy"], "nowhere.npy: No such file or directory"),
    ],
)
@pytest.mark.parametrize("command", ["codegen", "run", "verify", "compile"])
def test_mistakes_are_one_line(emberlet, model, command, words, says):
    said = emberlet(command, model, *[w for word in words for w in ("--freeze", word)])
    assert said.status == 2
    assert said.err.startswith("emberlet: " + says) and said.err.count("\n") == 1


def test_a_frozen_input_is_given_once(emberlet, model, tmp_path):
    np.save(tmp_path / "sr.npy", np.array(1))
    said = emberlet("verify", model, "--freeze", "sr=1", "--input", f"sr={tmp_path / 'sr.npy'}")
    assert said.err == "emberlet: the input 'sr' is frozen; leave out either --freeze or --input\n"


def test_a_module_is_frozen_when_it_is_generated(emberlet, digits, tmp_path):
    emberlet("codegen", digits, "--out", tmp_path)
    said = emberlet("run", tmp_path / "digits.py", "--freeze", "image=1")
    assert (said.status, "emberlet codegen --freeze" in said.err) == (2, True)


def test_json_names_what_is_frozen(emberlet, model):
    found = json.loads(emberlet("verify", model, "--freeze", "sr=8000", *SHAPE, "--json").out)
    assert found["frozen"] == ["sr", "shape"]
