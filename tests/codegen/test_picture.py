"""Pictures of models: nested boxes, each module once, and costs that can be checked by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from emberlet.codegen.picture.cost import number, short
from emberlet.codegen.picture.page import as_html
from emberlet.codegen.picture.svg import GAP, MOST_BOXES, PAD, Placed, _placed, as_svg, readable, shown
from emberlet.codegen.picture.text import as_text
from emberlet.codegen.picture.tree import PLAIN, Box, tree
from emberlet.errors import ModelError
from emberlet.host.cli import main
from models.index import HERE
from onnx import numpy_helper
from support.onnx_models import parse
from support.rows import every

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


@every("folder", MODELS)
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


def test_a_depth_opens_every_module_down_to_it() -> None:
    box = tree(HERE / "modules" / "bert" / "model.onnx")

    def levels(placed: Placed) -> int:
        return 1 + max(map(levels, placed.inner), default=0) if placed.is_open else 0

    assert [levels(_placed(box, 0, depth, None)) for depth in range(5)] == [0, 1, 2, 3, 4]
    assert as_text(box, depth=1).count("\n") == 2 + len([b for b in box.boxes if b.kind != PLAIN or b.weights])
    assert as_text(box, depth=0).count("\n") == 2
    assert as_html(box, 0).count("<details open>") == 0 < as_html(box, 1).count("<details open>") == 1
    assert as_html(box, 9).count("<details>") == 0


@pytest.mark.parametrize(
    ("op", "shapes", "weights", "flops"),
    [
        # 2 operations for a multiply-add; of a convolution, for each element of the result and of the filter
        ("y = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w)", ["2, 3, 8, 6", "?"], {"w": (5, 3, 3, 3)},
         2 * (2 * 5 * 4 * 3) * 27),
        ("y = Conv<group = 3>(x, w)", ["2, 3, 8, 6", "?"], {"w": (6, 1, 3, 1)}, 2 * (2 * 6 * 6 * 6) * 3),
        ("y = ConvTranspose(x, w)", ["2, 3, 8, 6", "?"], {"w": (3, 5, 2, 2)}, 2 * (2 * 3 * 8 * 6) * 20),
        ("y = MatMul(x, w)", ["N, 3, 8", "?"], {"w": (8, 5)}, 2 * (4 * 3 * 5) * 8),
        ("y = Gemm<transB = 1>(x, w)", ["N, 8", "?"], {"w": (5, 8)}, 2 * (4 * 5) * 8),
        ("y = Gemm<transA = 1>(x, w)", ["8, N", "?"], {"w": (8, 5)}, 2 * (4 * 5) * 8),
        ("y = Exp(x)", ["N, 3", "?"], {}, 12),
        ("y = Exp(x)", ["N, M", "?"], {}, 4),
        ("y = Transpose(x)", ["N, 3", "?"], {}, 0),
        ("a = Exp(x)  y = Concat<axis = 0>(a, x)", ["N, 3", "?"], {}, 12),
        ("y = ReduceSum<keepdims = 0>(x)", ["N, 3", ""], {}, 1),
    ],
)  # fmt: skip
def test_operations_are_counted_by_hand(op: str, shapes: list[str], weights: Any, flops: int) -> None:
    """With N = 4; M is not given, and counts as 1."""
    model = parse(f"g (float[{shapes[0]}] x) => (float[{shapes[1].replace('?', 'a')}] y) {{ {op} }}")
    if shapes[1]:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    for name, shape in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    box = tree(model, sizes={"N": 4} if "N" in shapes[0] else {})
    assert box.flops == flops
    assert box.weights == sum(np.prod(shape) for shape in weights.values())


@pytest.mark.parametrize("packed", [False, True])
def test_attention_costs_its_two_products(packed: bool) -> None:
    """(batch, heads, queries, width) or (batch, queries, heads * width); 2 products of 2 operations."""
    shape = "2, 5, 12" if packed else "2, 3, 5, 4"
    keys = "2, 7, 12" if packed else "2, 3, 7, 4"
    given = "<q_num_heads = 3, kv_num_heads = 3>" if packed else ""
    text = f"g (float[{shape}] q, float[{keys}] k, float[{keys}] v) => (float[{shape}] y)"
    model = parse(f"{text} {{ y = Attention{given}(q, k, v) }}", 23)
    assert tree(model).flops == 2 * (2 * 2 * 3 * 5 * 7 * 4)


@pytest.mark.parametrize(
    ("dim", "sizes", "n"),
    [
        (7, {}, 7), (None, {}, 1), ("a", {"a": 5}, 5), ("a", {}, 1), ("a + 3", {"a": 5}, 8), ("a + 3", {}, 4),
        ("2*a + b", {"a": 5, "b": 3}, 13), ("min(7, a)", {"a": 5}, 5), ("min(7, a)", {"a": 9}, 7),
        ("2*min(7, a) + 1", {"a": 9}, 15), ("(a + 1) // 2", {}, 1),
    ],
)  # fmt: skip
def test_a_dimension_is_a_number_once_its_names_have_sizes(dim: Any, sizes: dict[str, int], n: int) -> None:
    assert number(dim, sizes) == n


def test_a_size_is_refused_unless_some_value_has_a_dimension_of_that_name() -> None:
    model = parse("g (float[a, 4] x, float[b, 4] z) => (float[c, 4] y) { y = Concat<axis = 0>(x, z) }")
    for name in ("a", "b"):
        tree(model, sizes={name: 2})
    with pytest.raises(ModelError, match=r"no value has a dimension 'd'; there are a, b"):
        tree(model, sizes={"a": 2, "d": 3})
    with pytest.raises(ModelError, match="there are none"):
        tree(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"), sizes={"a": 1})


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
    box = tree(HERE / "modules" / "bert" / "model.onnx")
    as_text(box, unicode=False).encode("ascii")
    box = dataclasses.replace(box, name="a · b…")
    assert "a + b.." in as_text(box, unicode=False)


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "0"), (999, "999"), (1000, "1 k"), (1234, "1.23 k"), (999_499, "999 k"), (999_999, "999 k"), (10**6, "1 M"),
        (11_173_962, "11.2 M"), (999_999_999, "999 M"), (10**9, "1 G"), (2 * 10**9, "2 G"), (10**12, "1 T"),
        (4_560 * 10**12, "4560 T"),
    ],
)  # fmt: skip
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
