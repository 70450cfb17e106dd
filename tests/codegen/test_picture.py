"""Pictures of models: nested boxes, each module once, and costs that can be checked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from emberlet.codegen.picture.cost import short
from emberlet.codegen.picture.page import as_html
from emberlet.codegen.picture.svg import GAP, MOST_BOXES, PAD, Placed, _placed, as_svg, readable, shown
from emberlet.codegen.picture.text import as_text
from emberlet.codegen.picture.tree import PLAIN, Box, tree
from emberlet.host.cli import main
from models.index import HERE
from onnx import numpy_helper
from support.onnx_models import parse

MODELS = [p.parent for p in sorted(HERE.glob("*/model.onnx")) + sorted(HERE.glob("modules/*/model.onnx"))]
SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).resolve().parents[2]


def test_bert_has_twelve_layers_drawn_once() -> None:
    box = tree(HERE / "modules" / "bert" / "model.onnx")
    layers = [b for b in box.boxes if b.kind == "BertLayer"]
    assert [(b.times, b.name) for b in layers] == [(12, "encoder.layer.0 … 11")]
    with np.load(HERE / "modules" / "bert" / "checkpoint.npz") as held:
        assert box.weights == sum(held[k].size for k in held.files if not k.startswith(("in_", "out_")))
    assert "×12" in as_svg(box) and "×12" in as_html(box) and "×12" in as_text(box)


def test_costs_are_those_of_the_layers() -> None:
    box = tree(ROOT / "examples" / "digits" / "digits.onnx")
    costs = {b.detail: (b.weights, b.flops) for b in box.boxes if b.weights}
    assert costs["conv2"] == (8 * 16 * 9 + 16, 2 * 16 * 8 * 8 * 8 * 9)
    assert costs["fc1"] == (256 * 32 + 32, 2 * 256 * 32)
    twice = tree(ROOT / "examples" / "digits" / "digits.onnx", sizes={"batch": 2})
    assert twice.flops == 2 * box.flops


@pytest.mark.parametrize("folder", MODELS, ids=lambda p: p.name)
@pytest.mark.parametrize("depth", [None, 0, 9])
def test_boxes_lie_within_the_one_around_them(folder: Path, depth: int | None) -> None:
    box = tree(folder / "model.onnx")
    placed = _placed(box, 0, readable(box) if depth is None else depth, set() if depth is None else None)

    def visit(p: Placed) -> None:
        bottom = 0.0
        for inner in p.inner:
            assert inner.x >= 0 and inner.x + inner.width <= p.width
            assert inner.y >= bottom and inner.y + inner.height <= p.height
            bottom = inner.y + inner.height
            visit(inner)
        if p.inner:  # an arrow that leaves the last box has the room of one between boxes
            last = len(p.inner) - 1
            leaves = any((e.start, e.end) == (last, last + 1) for e in p.box.edges)
            assert p.height - bottom == (GAP + 4 if leaves else 10 + PAD)

    visit(placed)
    root = ElementTree.fromstring(as_svg(box, depth))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for r in root.iter(f"{SVG}rect"):
        if "x" in r.attrib:
            assert float(r.attrib["x"]) + float(r.attrib["width"]) <= width
            assert float(r.attrib["y"]) + float(r.attrib["height"]) <= height
    assert shown(box, readable(box), set()) <= max(MOST_BOXES, shown(box, 1, set()))


def test_costs_of_a_module_are_those_of_what_it_holds() -> None:
    def visit(box: Box) -> None:
        if box.boxes:
            assert box.weights == sum(b.weights * b.times for b in box.boxes)
            assert box.flops == sum(b.flops * b.times for b in box.boxes)
        for b in box.boxes:
            visit(b)
            assert b.kind != PLAIN or not b.boxes

    visit(tree(HERE / "modules" / "resnet50" / "model.onnx"))


def test_names_of_a_model_are_text_in_a_picture() -> None:
    model = parse("g (float[N, 2] x) => (float[N, 2] y) { a = MatMul(x, w)  y = Relu(a) }")
    random = np.ones((2, 2), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(random, "layers.<script>&.weight"))
    model.graph.node[0].input[1] = "layers.<script>&.weight"
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = '<b>"&'
    model.graph.name = "]]><script>"
    box = tree(model, "<script>alert(1)</script>")
    text = as_svg(box, note="<script>")
    ElementTree.fromstring(text)
    assert "<script" not in text and "<script" not in as_html(box, note="<script>")


def test_a_tree_in_ascii_has_ascii_alone() -> None:
    as_text(tree(HERE / "modules" / "bert" / "model.onnx"), unicode=False).encode("ascii")


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0"), (999, "999"), (1000, "1 k"), (11_173_962, "11.2 M"), (2 * 10**9, "2 G")]
)
def test_large_numbers_are_short(n: int, said: str) -> None:
    assert short(n) == said


# -- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svg", "html", "txt"])
def test_a_picture_is_written(tmp_path: Path, capsys: Any, kind: str) -> None:
    out = tmp_path / f"picture.{kind}"
    model = ROOT / "examples" / "digits" / "digits.onnx"
    assert main(["graph", str(model), "--out", str(out), "--dim", "batch=4"]) == 0
    first = out.read_bytes()
    assert b"conv1" in first and "wrote" in capsys.readouterr().out
    assert main(["graph", str(model), "--out", str(out), "--dim", "batch=4"]) == 0
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    "wrong", [["--out", "x.png"], ["--out", "x.svg", "--depth", "-1"], ["--out", "x.svg", "--dim", "n"]]
)
def test_what_cannot_be_drawn_is_said(wrong: list[str], capsys: Any) -> None:
    assert main(["graph", str(ROOT / "examples" / "digits" / "digits.onnx"), *wrong]) == 2
    assert "expected" in capsys.readouterr().err


def test_a_dimension_that_the_model_lacks_is_refused(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "picture.svg"
    model = ROOT / "examples" / "digits" / "digits.onnx"
    assert main(["graph", str(model), "--out", str(out), "--dim", "bach=4"]) == 2
    assert "no value has a dimension 'bach'; there are batch" in capsys.readouterr().err and not out.exists()


def test_a_tree_as_json_is_refused(capsys: Any) -> None:
    assert main(["inspect", "--tree", "--json", str(ROOT / "examples" / "digits" / "digits.onnx")]) == 2
    assert "--tree" in capsys.readouterr().err


def test_inspect_shows_the_tree(capsys: Any) -> None:
    assert main(["inspect", str(HERE / "modules" / "bert" / "model.onnx"), "--tree"]) == 0
    said = capsys.readouterr().out
    assert "BertLayer" in said and "12" in said and "weights" in said


def test_a_model_of_one_node_has_a_picture() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert "Relu" in as_svg(tree(model, "one"))
