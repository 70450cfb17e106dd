"""emberlet codegen and inspect."""

import shutil
import sys

import pytest


def test_a_model_becomes_a_module_and_a_burnpack(emberlet, digits, tmp_path):
    said = emberlet("codegen", digits, "--out", tmp_path)
    assert said.status == 0
    assert said.out == f"wrote {tmp_path / 'digits.py'} and {tmp_path / 'digits.bpk'}: class Digits\n"
    assert (tmp_path / "digits.py").exists()


def test_weights_can_be_embedded_under_another_name(emberlet, digits, tmp_path, images):
    said = emberlet("codegen", digits, "--out", tmp_path, "--embed", "--name", "reader")
    assert said.out == f"wrote {tmp_path / 'reader.py'}: class Reader\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images.npy", "reader.py"]
    assert emberlet("run", tmp_path / "reader.py", "--input", f"image={images}").status == 0
    sys.modules.pop("emberlet_model_reader")


def test_half_precision_is_smaller(emberlet, digits, tmp_path):
    emberlet("codegen", digits, "--out", tmp_path / "full")
    emberlet("codegen", digits, "--out", tmp_path / "half", "--half")
    sizes = [(tmp_path / kind / "digits.bpk").stat().st_size for kind in ("full", "half")]
    assert sizes[1] < 0.6 * sizes[0]


def test_what_is_no_model_is_refused_in_one_line_and_leaves_nothing(emberlet, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    said = emberlet("codegen", tmp_path / "bad.onnx", "--out", tmp_path / "out")
    assert said.status == 2
    assert said.err.startswith("emberlet: ")
    assert said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\x1c\0\0\0TFL3", "a TensorFlow Lite model; `emberlet micro build` reads it"),
        (b"\x28\0\0\0ORTM", "onnxruntime's own format"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes"),
        (b"NRUB\0\0\0\0", "a burnpack of weights; `emberlet inspect` shows it"),
        (b"GGUF\3\0\0\0", "a GGUF file of weights"),
        (b"\x20\0\0\0\0\0\0\0{", "a safetensors file of weights"),
        (b"PK\3\4\0\0\0\0", "a zip archive, as PyTorch, Keras and NumPy write"),
    ],
)
def test_a_model_of_another_kind_is_named_with_what_reads_it(emberlet, tmp_path, head, said):
    path = tmp_path / "model.tflite"
    path.write_bytes(head + bytes(64))
    for command in ("codegen", "run", "verify", "compile"):
        found = emberlet(command, path)
        assert found.status == 2 and found.err.startswith("emberlet: ") and found.err.count("\n") == 1
        assert f"model.tflite is {said}" in found.err or f"model.tflite is a model in {said}" in found.err


def test_inspect_prints_the_typed_graph(emberlet, digits):
    said = emberlet("inspect", digits)
    assert said.status == 0
    assert said.out.startswith("Graph {")
    assert "name: 'image'" in said.out


def test_inspect_shows_a_model_of_any_ending(emberlet, digits, tmp_path):
    shutil.copy(digits, tmp_path / "digits.model")
    assert emberlet("inspect", tmp_path / "digits.model").out == emberlet("inspect", digits).out


def test_inspect_prints_what_is_in_a_burnpack(emberlet, digits, tmp_path):
    emberlet("codegen", digits, "--out", tmp_path)
    lines = emberlet("inspect", tmp_path / "digits.bpk").out.splitlines()
    assert lines[0].split() == ["tensor", "dtype", "shape", "bytes"]
    assert lines[1].split(maxsplit=2) == ["conv1.bias", "float32", "(8,)           32"]
    assert "metadata model: digits" in lines


def test_inspect_does_not_let_a_file_talk_to_the_terminal(emberlet, tmp_path):
    from support.burnpacks import pack

    (tmp_path / "evil.bpk").write_bytes(pack({"tensors": {}, "metadata": {"a\x1b[31m": "b\nc"}}))
    assert "metadata a\\x1b[31m: b\\nc" in emberlet("inspect", tmp_path / "evil.bpk").out


@pytest.mark.parametrize("passes", ["none", "no_such_pass"])
def test_passes_can_be_chosen(emberlet, digits, tmp_path, passes):
    said = emberlet("codegen", digits, "--out", tmp_path, "--passes", passes, "--explain")
    assert said.status == (0 if passes == "none" else 2)
