"""emberlet run."""

import json

import numpy as np
import pytest


@pytest.fixture
def generated(emberlet, digits, tmp_path):
    emberlet("codegen", digits, "--out", tmp_path)
    return tmp_path / "digits.py"


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_onnx_and_generated_models_give_the_same(emberlet, digits, generated, images, tmp_path, backend):
    for model in (digits, generated):
        said = emberlet("run", model, "--input", f"image={images}", "--backend", backend, "--out", tmp_path / "o.npz")
        assert said.status == 0
        assert said.out.startswith("logits: float32 (2, 10) [")
        assert said.out.endswith(f"wrote {tmp_path / 'o.npz'}\n")
        with np.load(tmp_path / "o.npz") as outputs:
            assert list(outputs) == ["logits"]
            logits = outputs["logits"]
        wanted = reference(digits, np.load(images))
        np.testing.assert_allclose(logits, wanted, rtol=1e-4, atol=1e-4)


def reference(path, images):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(str(path)).run(None, {"image": images})[0]


def test_repeating_prints_how_long_it_took(emberlet, digits, images):
    said = emberlet("run", digits, "--input", f"image={images}", "--repeat", 3)
    assert said.out.splitlines()[1].startswith("first ")
    assert said.out.splitlines()[1].endswith("of 2")


def test_json_can_be_read_by_a_program(emberlet, digits, images):
    said = emberlet("run", digits, "--input", f"image={images}", "--repeat", 2, "--json")
    found = json.loads(said.out)
    assert found["outputs"]["logits"]["shape"] == [2, 10]
    assert found["outputs"]["logits"]["backend"] == "numpy"
    assert found["outputs"]["logits"]["finite"] == 20
    assert len(found["times"]["all_ms"]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--input", "image=missing.npy"], "missing.npy: No such file or directory"),
        (["--input", "picture=IMAGES"], "there is no input 'picture'; the model has image: float32 (batch, 1, 8, 8)"),
        (["--input", "image"], "--input image: expected NAME=FILE.npy"),
        ([], "the model also wants --input NAME=FILE for image: float32 (batch, 1, 8, 8)"),
        (["--input", "image=IMAGES", "--backend", "gpu"], "there is no backend 'gpu'"),
        (["--input", "image=IMAGES", "--repeat", "0"], "--repeat is 0, expected 1 or more"),
    ],
)
def test_mistakes_are_one_line(emberlet, digits, images, arguments, says):
    said = emberlet("run", digits, *[a.replace("IMAGES", str(images)) for a in arguments])
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("emberlet: " + says)
    assert said.err.count("\n") == 1


def test_a_file_of_another_kind_is_refused(emberlet, images):
    assert "expected an .onnx file, or a generated module (.py)" in emberlet("run", images).err


def test_a_module_without_a_model_is_refused(emberlet, tmp_path):
    (tmp_path / "nothing_here.py").write_text("from emberlet.model import Model\n")
    said = emberlet("run", tmp_path / "nothing_here.py")
    assert "expected one class derived from emberlet.model.Model, found none" in said.err


def test_an_input_of_the_wrong_shape_says_both(emberlet, digits, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 8, 8), np.float32))
    said = emberlet("run", digits, "--input", f"image={tmp_path / 'x.npy'}")
    assert said.status == 2
    assert "(1, 3, 8, 8)" in said.err
