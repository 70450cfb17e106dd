"""emberlet verify."""

import json

import numpy as np
import onnx
import pytest
from emberlet.host.cli.verify import compare
from emberlet.host.numpy_backend import NumpyBackend
from models.index import HERE
from onnx import TensorProto, helper
from support.onnx_models import parse, with_constants


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


# -- sizes ------------------------------------------------------------------------------------------------------------


def kernel_of_512(path, shape=("N", 1, None)):
    """A convolution over sound with a kernel of length 512; the sound's length has no name."""
    text = "g (float[N, 1, length] sound) => (float[] y) { y = Conv<strides = [128]>(sound, w) }"
    model = with_constants(text, 17, w=np.random.default_rng(0).random((4, 1, 512), np.float32))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("sound", TensorProto.FLOAT, shape))
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("shape", [("N", 1, None), ("N", 1, "length"), (None, 1, None)])
def test_sizes_are_chosen_that_the_model_takes(emberlet, tmp_path, shape):
    said = emberlet("verify", kernel_of_512(tmp_path / "m.onnx", shape))
    assert (said.status, said.err) == (0, "")
    assert f"{shape[2] or 'sound:2'} = 512" in said.out and "(1, 4, 1)" in said.out


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_axes_without_a_name_are_given_sizes(emberlet, tmp_path, backend):
    path = kernel_of_512(tmp_path / "m.onnx")
    said = emberlet("verify", path, "--dim", "sound:2=640", "--dim", "N=2", "--backend", backend)
    assert said.status == 0 and "(2, 4, 2)" in said.out
    assert "(3, 4, 1)" in emberlet("verify", path, "--dim", "sound:0=3", "--dim", "sound:2=512").out
    assert (
        "no input has a dimension 'sound:1'; there are N, sound:2" in emberlet("verify", path, "--dim", "sound:1=2").err
    )


def test_sizes_that_no_choice_fits_name_the_option(emberlet, tmp_path):
    said = emberlet("verify", kernel_of_512(tmp_path / "m.onnx"), "--dim", "sound:2=100")
    assert said.status == 2 and "kernel (512,)" in said.err and "--dim N=…" in said.err


# -- lists of dicts ---------------------------------------------------------------------------------------------------


def classifier(path, keys):
    kind = "strings" if isinstance(keys[0], str) else "int64s"
    text = f"""g (float[N, {len(keys)}] x) => (int64[N] label, seq(map({kind[:-1]}, float)) probabilities) {{
        p = Softmax(x)  probabilities = ai.onnx.ml.ZipMap<classlabels_{kind} = {json.dumps(keys)}>(p)
        label = ArgMax<axis = 1, keepdims = 0>(x) }}"""
    onnx.save(parse(text, 17, **{"ai.onnx.ml": 3}), path)
    return path


@pytest.mark.parametrize("keys", [[7, 3, 5], ["cat", "dog", "newt"]])
def test_lists_of_dicts_are_compared(emberlet, tmp_path, keys):
    said = emberlet("verify", classifier(tmp_path / "m.onnx", keys), "--dim", "N=4")
    assert (said.status, said.err) == (0, "")
    assert "ok  probabilities: float32 (4, 3)" in said.out and "ok  probabilities.keys: " in said.out
    said = emberlet("verify", tmp_path / "m.onnx", "--reference", "onnx")  # which has no ZipMap
    assert said.status == 2 and "ONNX's reference implementation cannot run the model" in said.err


def test_lists_of_dicts_are_run_and_saved(emberlet, tmp_path):
    path = classifier(tmp_path / "m.onnx", ["cat", "dog"])
    np.save(tmp_path / "x.npy", np.float32([[0, 0], [0, 9]]))
    emberlet("codegen", path, "--out", tmp_path)
    for model in (path, tmp_path / "m.py"):
        said = emberlet("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--out", tmp_path / "o.npz")
        assert said.status == 0, said.err
        with np.load(tmp_path / "o.npz") as found:
            (table,) = [n for n in found.files if found[n].shape == (2, 2)]
            np.testing.assert_allclose(found[table], [[0.5, 0.5], [0.0001, 0.9999]], atol=1e-4)
            assert found[table + ".keys"].tolist() == ["cat", "dog"]


# -- bisection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("backend", ["numpy", "python", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_bisect_finds_no_difference_in_a_right_model(emberlet, digits, reference, backend):
    said = emberlet("verify", digits, "--bisect", "--reference", reference, "--backend", backend)
    assert said.status == 0 and said.out.startswith("all ") and "values are as" in said.out


@pytest.mark.parametrize(("method", "operator"), [("relu", "Relu"), ("pool", "MaxPool"), ("conv", "Conv")], ids=str)
def test_bisect_names_the_first_node_that_differs(emberlet, digits, monkeypatch, method, operator):
    real = getattr(NumpyBackend, method)
    monkeypatch.setattr(NumpyBackend, method, lambda self, *a, **k: self.binary("add", *(2 * (real(self, *a, **k),))))
    first = next(n for n in onnx.load(digits).graph.node if n.op_type == operator)
    said = emberlet("verify", digits, "--bisect", "--backend", "numpy")
    assert said.status == 1 and f"({operator}), {first.output[0]}: " in said.out
    found = json.loads(emberlet("verify", digits, "--bisect", "--json").out)
    assert found["output"] == first.output[0] and not found["within"]


@pytest.mark.needs("gpu-driver")
@pytest.mark.parametrize(("method", "operator"), [("pool", "MaxPool"), ("conv", "Conv")], ids=str)
def test_bisect_names_the_first_node_that_differs_on_the_gpu(emberlet, digits, monkeypatch, method, operator):
    from emberlet.wgpu_backend import WgpuBackend

    real = getattr(WgpuBackend, method)
    monkeypatch.setattr(WgpuBackend, method, lambda self, *a, **k: self.binary("add", *(2 * (real(self, *a, **k),))))
    first = next(n for n in onnx.load(digits).graph.node if n.op_type == operator)
    said = emberlet("verify", digits, "--bisect", "--backend", "wgpu")
    assert said.status == 1 and f"({operator}), {first.output[0]}: " in said.out


def test_recognized_patterns_are_said_and_checked(emberlet):
    model = HERE / "modules" / "llama" / "model.onnx"
    said = emberlet("verify", model, "--backend", "numpy", "--idioms")
    assert said.status == 0
    lines = [line for line in said.out.splitlines() if "(" in line]
    for idiom in ("norms", "activations", "rotary", "attention", "masks", "heads"):
        (line,) = [line for line in lines if line.startswith(f"ok  {idiom} (")]
        assert "differs by at most" in line or line.endswith("equal")
    found = json.loads(emberlet("verify", model, "--backend", "numpy", "--idioms", "--json").out)
    assert [row["idiom"] for row in found["idioms"]][-4:] == ["rotary", "attention", "masks", "heads"]
    assert all(row["within"] and row["found"] for row in found["idioms"])


def test_a_mask_that_is_taken_for_lengths_is_checked(emberlet):
    model = HERE / "speech_encoder_traced" / "model.onnx"
    said = emberlet("verify", model, "--backend", "numpy", "--idioms")
    assert said.status == 0 and "ok  lengths (replaced 3 padding masks by lengths): equal" in said.out


def test_a_pattern_that_is_taken_for_another_is_found(emberlet, monkeypatch):
    from emberlet.codegen.passes import attention

    right = attention.scaled
    monkeypatch.setattr(attention, "scaled", lambda a, walk: (right(a, walk)[0], right(a, walk)[1] * 3.0))
    said = emberlet("verify", HERE / "modules" / "bert" / "model.onnx", "--backend", "numpy", "--idioms")
    assert said.status == 1
    assert [line[:15] for line in said.out.splitlines() if line.startswith("OUT a")] == ["OUT attention ("]


def test_a_model_without_patterns_says_so(emberlet, digits):
    said = emberlet("verify", digits, "--backend", "numpy", "--idioms")
    assert said.status == 0


def test_an_idiom_may_be_no_number_where_its_parts_are_none(emberlet):
    """The separate operators give NaN for a query whose keys are all hidden."""
    said = emberlet("verify", HERE / "transformer_encoder" / "model.onnx", "--backend", "numpy", "--idioms", "--json")
    found = json.loads(said.out)
    assert {row["idiom"]: row["within"] for row in found["idioms"]}["attention"]
