"""Inputs are taken in the order that the module documents, whichever axis of the model is the channels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from emberlet.errors import ModelError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.cli import main
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from hypothesis import given, settings
from hypothesis import strategies as st
from support.microcontrollers.onnx_models import Maker
from support.onnx_models import expected

TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def image_network(data: st.DataObject) -> tuple[onnx.ModelProto, tuple[int, ...], bool]:
    """A network over an image, its shape (height, width, channels), and whether the model has the channels last."""
    m, draw = Maker(data.draw(st.integers(0, 1 << 30))), data.draw
    h, w, c = (draw(st.integers(3, 7), label=n) for n in "hwc")
    last, at = draw(st.booleans(), label="channels last"), "x"
    n = 0

    def then(op: str, more: str = "", **attributes: object) -> None:
        nonlocal at, n
        n += 1
        m(op, f"{at} {more}", f"t{n}", **attributes)
        at = f"t{n}"

    if draw(st.booleans(), label="scaled"):
        m.weight("mean", *((c,) if last else (c, 1, 1)))
        then("Sub", "mean")
    if draw(st.booleans(), label="activation"):
        then(draw(st.sampled_from(["Relu", "Tanh", "Identity"])))
    if draw(st.booleans(), label="padded"):
        m.constant("pads", [0, 1, 1, 0, 0, 1, 1, 0] if last else [0, 0, 1, 1, 0, 0, 1, 1])
        then("Pad", "pads")
    if draw(st.booleans(), label="a unit axis put in and taken out"):
        m.constant("place", [draw(st.integers(0, 4))])
        then("Unsqueeze", "place")
        then("Squeeze", "place")
    if last:
        then("Transpose", perm=TO_FIRST)
    kind = draw(st.sampled_from(["Conv", "Pool", "GlobalAveragePool", "BatchNormalization"]))
    if kind == "Conv":
        m.weight("w", 4, c, 3, 3)
        then("Conv", "w", pads=[1, 1, 1, 1])
    elif kind == "Pool":
        then(draw(st.sampled_from(["MaxPool", "AveragePool"])), kernel_shape=[2, 2])
    elif kind == "BatchNormalization":
        for name in ("gamma", "beta", "moved"):
            m.weight(name, c)
        m.constant("variance", m.rng.uniform(0.5, 2, c))
        then(kind, "gamma beta moved variance")
    else:
        then(kind)
    if last:
        then("Transpose", perm=TO_LAST)
    if draw(st.booleans(), label="flattened"):
        then("Flatten")
    then("Identity")
    m.nodes[-1].output[0] = "y"
    return m.model([1, h, w, c] if last else [1, c, h, w]), (h, w, c), last


@given(st.data())
@settings(max_examples=60)
def test_an_image_is_taken_as_height_width_channels(data: st.DataObject) -> None:
    model, shape, last = image_network(data)
    graph = read_graph(model.SerializeToString(), "m")
    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    fed = image[None] if last else np.moveaxis(image, 2, 0)[None]
    (wanted,) = expected(model, {"x": fed})
    assert graph.shapes["x"] == shape
    for g in (graph, fuse(graph)):
        np.testing.assert_allclose(
            g.run({"x": image})[g.outputs[0]].reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=1e-5
        )
    text = build(graph, Options("m")).sources["m.py"]
    assert f"input x: {' × '.join(map(str, shape))} (height × width × channels)" in text


def sequence_network(last: bool) -> onnx.ModelProto:
    """A convolution over 20 steps of 6 channels; last: the model has the channels last."""
    m = Maker()
    m.weight("w", 4, 6, 3)
    if last:
        m("Transpose", "x", "t", perm=[0, 2, 1])
    m("Conv", f"{'t' if last else 'x'} w", "y")
    return m.model([1, 20, 6] if last else [1, 6, 20])


@pytest.mark.parametrize("last", [False, True])
def test_a_sequence_is_taken_as_steps_and_channels(last: bool) -> None:
    model = sequence_network(last)
    graph = read_graph(model.SerializeToString(), "m")
    steps = np.random.default_rng(1).standard_normal((20, 6)).astype(np.float32)
    (wanted,) = expected(model, {"x": (steps if last else steps.T)[None]})
    found = graph.run({"x": steps})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=1e-5)
    assert graph.order_text("x") == ("as in the model" if last else "steps × channels")


def test_a_sequence_that_tf_takes_for_an_image_keeps_its_order() -> None:
    # Keras's Conv1D: a row of an image.
    m = Maker()
    m.constant("one", [1])
    m("Unsqueeze", "x one", "a")
    m("Transpose", "a", "b", perm=TO_FIRST)
    m.weight("w", 4, 6, 1, 3)
    m("Conv", "b w", "c")
    m("Transpose", "c", "d", perm=TO_LAST)
    m("Squeeze", "d one", "y")
    model = m.model([1, 20, 6])
    steps = np.random.default_rng(1).standard_normal((20, 6)).astype(np.float32)
    (wanted,) = expected(model, {"x": steps[None]})
    graph = read_graph(model.SerializeToString(), "m")
    found = graph.run({"x": steps})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(-1), wanted.reshape(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dims", "shape"), [([1, 3, 9, 8], (9, 8, 3)), ([1, 9, 8, 3], (9, 8, 3))])
def test_without_a_layer_that_tells_the_shape_does(dims: list[int], shape: tuple[int, ...]) -> None:
    m = Maker()
    m("Flatten", "x", "a")
    m.weight("w", 216, 4)
    m("MatMul", "a w", "y")
    assert read_graph(m.model(dims).SerializeToString(), "m").shapes["x"] == shape  # type: ignore[arg-type]


# -- sizes that are left open -----------------------------------------------------------------------------------------


def open_network(folder: Path) -> Path:
    m = Maker()
    m.weight("w", 4, 3, 3, 3)
    m("Conv", "x w", "a")
    m("GlobalAveragePool", "a", "y")
    path = folder / "open.onnx"
    onnx.save(m.model(["n", 3, "height", "width"]), path)
    return path


def test_an_open_size_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"--shape x=1,3,SIZE,SIZE or --shape height=SIZE --shape width=SIZE") as error:
        read_graph(open_network(tmp_path))
    assert "input 'x' is (n,3,height,width)" in str(error.value)


@pytest.mark.parametrize("way", [["x=1,3,12,10"], ["height=12", "width=10"], ["n=1", "height=12", "width=10"]])
def test_either_way_of_saying_a_size_is_taken(
    way: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [text for shape in way for text in ("--shape", shape)]
    assert main(["build", str(open_network(tmp_path)), "--out", str(tmp_path / "dist"), *said]) == 0
    assert "input   x: 12 × 10 × 3 (height × width × channels)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"y": (1,)}, "--shape y: the model has no input and no open dimension of that name; its inputs are x"),
        ({"x": (1, 4, 9, 9)}, r"--shape x=1,4,9,9 does not fit: the model says \(n,3,height,width\)"),
        ({"x": (1, 3, 9)}, "--shape x=1,3,9 does not fit"),
        ({"x": (1, 3, 9, 0)}, "sizes are positive"),
        ({"height": (1, 2)}, "'height' is one dimension"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, tuple[int, ...]], says: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=says):
        read_graph(open_network(tmp_path), "m", sizes)


def test_a_batch_is_one_wherever_it_stands() -> None:
    m = Maker()
    m("Relu", "x", "y")
    graph = read_graph(m.model([5, "batch_size", 3]).SerializeToString(), "m")
    assert graph.shapes["x"] in ((5, 1, 3), (5, 3))
