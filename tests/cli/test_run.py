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
        (["--input", "image"], "--input image: expected NAME=FILE.npy or FILE.npz"),
        ([], "the model also needs --input NAME=FILE for image: float32 (batch, 1, 8, 8)"),
        (["--input", "image=IMAGES", "--backend", "gpu"], "there is no backend 'gpu'"),
        (["--input", "image=IMAGES", "--input", "image=IMAGES"], "--input image: given twice"),
        (["--input", "image=IMAGES", "--backend", "numpy:1"], "there is no backend 'numpy:1'"),
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
    (tmp_path / "nothing_here.py").write_text("from emberlet.model import Model\n", encoding="utf-8")
    said = emberlet("run", tmp_path / "nothing_here.py")
    assert "expected one class derived from emberlet.model.Model, found none" in said.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f(:\n", "SyntaxError: invalid syntax (broken.py, line 1)"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(emberlet, tmp_path, text, says):
    (tmp_path / "broken.py").write_text(text, encoding="utf-8")
    said = emberlet("run", tmp_path / "broken.py")
    assert (said.status, said.err) == (2, f"emberlet: {tmp_path / 'broken.py'}: cannot be imported: {says}\n")


@pytest.mark.parametrize(
    "values",
    [np.zeros((1, 3, 8, 8), np.float32), np.zeros((1, 1, 8, 9), np.float32), np.zeros((1, 8, 8), np.float32),
     np.zeros((1, 1, 8, 8)), np.zeros((1, 1, 8, 8), np.int32)],
)  # fmt: skip
@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_input_of_another_shape_or_dtype_says_both(emberlet, digits, tmp_path, command, values):
    np.save(tmp_path / "x.npy", values)
    said = emberlet(command, digits, "--input", f"image={tmp_path / 'x.npy'}")
    wanted = f"x.npy holds {values.dtype} {values.shape}, the model takes image: float32 (batch, 1, 8, 8)"
    assert said.status == 2
    assert wanted in said.err
    assert said.err.count("\n") == 1


def test_a_generated_module_says_what_it_takes(emberlet, generated, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 9), np.float32))
    said = emberlet("run", generated, "--input", f"image={tmp_path / 'x.npy'}")
    assert "holds float32 (1, 1, 8, 9), the model takes image: float32 (batch, 1, 8, 8)" in said.err


def test_a_narrow_input_comes_from_the_wider_file_it_would_be_written_to(emberlet, tmp_path):
    (tmp_path / "half.py").write_text(
        "from emberlet.model import Model\n\n\n"
        "class Half(Model):\n"
        '    INPUTS = (("x", "bfloat16", ("n",)),)\n'
        '    OUTPUTS = (("y", "bfloat16", ("n",)),)\n\n'
        "    @classmethod\n"
        "    def default(cls, backend=None):\n"
        "        return cls()\n\n"
        "    def forward(self, x):\n"
        "        return x + x\n",
        encoding="utf-8",
    )
    np.save(tmp_path / "x.npy", np.asarray([1.0, 2.5], np.float32))
    said = emberlet("run", tmp_path / "half.py", "--input", f"x={tmp_path / 'x.npy'}")
    assert said.out == "y: bfloat16 (2,) [2, 5]\n"


def test_a_folder_that_is_not_there_is_named(emberlet, digits, images, tmp_path):
    out = tmp_path / "no" / "o.npz"
    said = emberlet("run", digits, "--input", f"image={images}", "--out", out)
    assert (said.status, said.err) == (2, f"emberlet: {out}: No such file or directory\n")


def test_an_archive_names_its_inputs(emberlet, digits, images, tmp_path):
    np.savez(tmp_path / "inputs.npz", image=np.load(images))
    from_archive = emberlet("run", digits, "--input", tmp_path / "inputs.npz")
    assert from_archive.status == 0
    assert from_archive.out == emberlet("run", digits, "--input", f"image={images}").out
    np.savez(tmp_path / "other.npz", picture=np.load(images))
    assert "there is no input 'picture'" in emberlet("run", digits, "--input", tmp_path / "other.npz").err
