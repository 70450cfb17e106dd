"""Names of generated files, classes, fields and comments, and files that are never overwritten."""

from __future__ import annotations

import ast
import ntpath
import shutil
import sys
import tokenize
import unicodedata
from pathlib import Path, PureWindowsPath

import numpy as np
import onnx
import pytest
from emberlet.burnpack import Burnpack
from emberlet.codegen import OverwriteError, generate, load
from emberlet.codegen.emit.names import MAX_FILE, MAX_LOCAL, file_stem, identifier
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError, ModelError
from emberlet.host import burnpack_writer
from emberlet.host.cli.model import load as load_file
from emberlet.model import Model
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from support.onnx_models import parse
from support.rows import every

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
SINE = ROOT / "examples" / "sine" / "sine.onnx"
RELU = "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }"


# -- identifiers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("模型", "模型"), ("größe.x", "größe_x"), ("a²", "a2"),
        ("encoder.layers.11.self_attn.q_proj", "encoder_layers_11_self_attn_q_proj"),
        ("/decoder/block.3/quantize/DequantizeLinear_Output", "Output"), ("9lives", "value_9lives"),
        ("class", "class_"),
    ],
)  # fmt: skip
def test_an_identifier_keeps_whole_words_of_any_script(name: str, becomes: str) -> None:
    assert identifier(name, limit=MAX_LOCAL if "Dequantize" in name else 48) == becomes


@given(st.text(max_size=80), st.integers(min_value=8, max_value=60))
def test_whatever_a_name_is_an_identifier_is_made_of_it(text: str, limit: int) -> None:
    name = identifier(text, limit=limit)
    assert name.isidentifier() and ast.parse(f"{name} = 1")
    assert ast.parse(name).body[0].value.id == name  # type: ignore[attr-defined]  # as Python normalizes it


@given(st.text(min_size=1, max_size=300))
def test_whatever_a_models_name_is_its_files_name_fits(text: str) -> None:
    stem = file_stem(text)
    assert stem.isidentifier() and len(stem.encode()) <= MAX_FILE + 1


def reserved(name: str) -> bool:
    """Whether Windows keeps the name of a file for a device, as Python knows it."""
    if sys.version_info >= (3, 13):
        return ntpath.isreserved(name)
    return PureWindowsPath(name).is_reserved()


@pytest.mark.parametrize("name", ["CON", "con", "Prn", "AUX", "nul", "COM1", "LPT9", "com¹", "LPT³", "_con_", "/nul"])
def test_a_name_that_windows_keeps_for_a_device_is_changed(name: str, tmp_path: Path) -> None:
    made = generate(parse(RELU), tmp_path, name=name)
    assert made.module.stem[:-1] in unicodedata.normalize("NFKC", name).lower() and made.module.stem[-1] == "_"
    assert not any(reserved(p.name) for p in tmp_path.iterdir())


@given(st.text(max_size=12))
def test_whatever_a_models_name_is_windows_takes_its_file(text: str) -> None:
    assert not reserved(file_stem(text) + ".py")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("模型", "MODEL"), ("a" * 200 + "1", "a" * 200 + "2"),
        ("resnet_v1_finetuned_on_faces_2024", "vit_finetuned_on_faces_2024"),
    ],
)  # fmt: skip
def test_models_of_different_names_become_different_files(one: str, other: str, tmp_path: Path) -> None:
    made = [generate(parse(RELU), tmp_path, name=name).module for name in (one, other)]
    assert len(set(made)) == 2 and all(m.is_file() for m in made)


def test_a_model_in_chinese_is_one_that_runs(tmp_path: Path) -> None:
    text = parse("g (float[N, 3] 图像) => (float[N, 3] y) { y = Relu(图像) }".replace("图像", "image"))
    text.graph.input[0].name = text.graph.node[0].input[0] = "图像"
    made = generate(text, tmp_path, name="模型")
    assert made.class_name == "模型" and "def forward(self, 图像):" in made.module.read_text(encoding="utf-8")
    assert load(text, "numpy", name="模型")(np.float32([[1, -1, 0]])) is not None


@every("member", sorted(m for m in dir(Model) if not m.startswith("_")))
def test_a_layer_never_hides_a_member_of_model(member: str) -> None:
    weight = numpy_helper.from_array(np.ones((3, 3), np.float32), f"{member}.weight")
    model = parse("g (float[N, 3] x) => (float[N, 3] y) { y = Gemm(x, w) }")
    model.graph.node[0].input[1] = weight.name
    model.graph.initializer.append(weight)
    (name,) = translate(model, "net")[1].record
    assert name.startswith(member) and not hasattr(Model, name.partition(".")[0])


@pytest.mark.parametrize(
    ("given_name", "field"),
    [
        ("stem", "stem"), ("node_conv2d_1", "conv1"), ("Conv_0", "conv1"), ("", "conv1"), ("n0", "conv1"),
        ("head_2", "head_2"),
    ],
)  # fmt: skip
def test_a_node_with_a_name_of_its_own_names_its_layer(given_name: str, field: str) -> None:
    weight = numpy_helper.from_array(np.ones((4, 3, 1, 1), np.float32), "onnx::Conv_17")
    node = helper.make_node("Conv", ["x", weight.name], ["features"], name=given_name)
    info = [
        helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, c, 8, 8]) for n, c in (("x", 3), ("features", 4))
    ]
    model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:], [weight]), ir_version=10)
    assert list(translate(model, "net")[1].record) == [f"{field}.weight"]


# -- comments and docstrings ------------------------------------------------------------------------------------------

WORDS = 'Classifies "cats" and ’dogs’ – since 2024, with a \\ in its text, and """ too: ' + "word " * 60


def test_a_comment_and_a_description_are_kept_whole(tmp_path: Path) -> None:
    model = parse(RELU)
    model.doc_string = WORDS + "\n\nSecond paragraph, 日本語."
    made = generate(model, tmp_path, name="net", top_comment=WORDS + "\nno\u202eesrever")
    with tokenize.open(made.module) as file:
        source = file.read()
    lines = source.split("\n")
    assert lines[0] == "# " + WORDS.strip() and lines[1] == "# no esrever"
    body = ast.parse(source).body
    said = ast.get_docstring(next(b for b in body if isinstance(b, ast.ClassDef))) or ""
    assert said.split() == model.doc_string.split()
    assert max(map(len, lines[2:])) <= 88


@given(st.text(max_size=200))
def test_whatever_a_model_says_of_itself_is_its_docstring(text: str) -> None:
    model = parse(RELU)
    model.doc_string = text.encode("utf-8", "replace").decode()
    source = translate(model, "net")[1].source
    assert isinstance(ast.parse(source).body[-1], ast.ClassDef)


# -- names of values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "y = Relu(x)  y = Neg(x)", "a = Relu(x)  y = Neg(a)  a = Exp(y)", "x = Relu(x)  y = Neg(x)",
        "y = Neg(w) w = Relu(x)",
    ],
)  # fmt: skip
def test_a_name_that_is_written_twice_is_said_to_be(body: str) -> None:
    model = parse(f"g (float[3] x) => (float[3] y) {{ {body} }}")
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "w"))
    with pytest.raises(ModelError, match="which an earlier node already writes") as caught:
        load(model)
    assert "cycle" not in str(caught.value)


# -- writing over -----------------------------------------------------------------------------------------------------


def test_an_unedited_module_is_written_over(tmp_path: Path) -> None:
    first = generate(SINE, tmp_path).module.read_bytes()
    assert generate(SINE, tmp_path, half=True).module.read_bytes() == first


@pytest.mark.parametrize("embed", [False, True])
def test_an_edited_module_is_not_written_over(embed: bool, tmp_path: Path) -> None:
    made = generate(SINE, tmp_path, embed=embed)
    edited = made.module.read_text(encoding="utf-8").replace("return ", "return 2 * ")
    made.module.write_text(edited, encoding="utf-8")
    with pytest.raises(OverwriteError, match="--force"):
        generate(SINE, tmp_path)
    assert made.module.read_text(encoding="utf-8") == edited

    generate(SINE, tmp_path, force=True)

    assert "2 * " not in made.module.read_text(encoding="utf-8")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_editors_byte_order_mark_and_line_ends_are_no_edit(mark: bytes, end: bytes, tmp_path: Path) -> None:
    made = generate(SINE, tmp_path)
    made.module.write_bytes(mark + made.module.read_bytes().replace(b"\n", end))
    assert [i.name for i in load_file(str(made.module), "numpy").inputs] == ["x"]
    generate(SINE, tmp_path)


def test_a_file_of_somebody_elses_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "sine.py").write_text("import math\n", encoding="utf-8")
    with pytest.raises(OverwriteError, match="no digest"):
        generate(SINE, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["sine.py"]


def test_another_model_of_the_same_name_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(SINE, tmp_path / "models" / "MODEL.onnx")
    shutil.copy(SINE, tmp_path / "models" / "model.onnx")
    generate(tmp_path / "models" / "MODEL.onnx", tmp_path / "out")
    with pytest.raises(EmberletError, match=r"MODEL\.onnx.*model\.onnx"):
        generate(tmp_path / "models" / "model.onnx", tmp_path / "out")


def test_trained_weights_beside_an_unedited_module_are_not_written_over(tmp_path: Path) -> None:
    made = generate(DIGITS, tmp_path)
    assert made.weights is not None
    generate(DIGITS, tmp_path, half=True)  # the same weights may be written again
    model = load(DIGITS, "numpy")
    model.fc2.bias.set(model.fc2.bias.val() + 1)
    model.save_file(made.weights)
    trained = made.weights.read_bytes()
    with pytest.raises(OverwriteError, match=r"digits.bpk no longer holds the weights that were generated.*--force"):
        generate(DIGITS, tmp_path)
    assert made.weights.read_bytes() == trained
    generate(DIGITS, tmp_path, name="other")
    generate(DIGITS, tmp_path, force=True)
    assert made.weights.read_bytes() != trained
    made.weights.write_bytes(b"no burnpack")
    with pytest.raises(OverwriteError, match="no longer holds"):
        generate(DIGITS, tmp_path)
    made.weights.unlink()
    generate(DIGITS, tmp_path)
    pack = Burnpack.from_file(made.weights)
    changed = {name: pack.tensor(name) + 1 for name in pack.tensors}
    burnpack_writer.save(made.weights, changed, pack.metadata)  # what keeps the metadata
    with pytest.raises(OverwriteError, match="no longer holds"):
        generate(DIGITS, tmp_path, half=True)
