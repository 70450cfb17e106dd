"""Operators of com.microsoft that are also in the standard, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from emberlet import dtypes, get_backend
from emberlet.codegen import load
from emberlet.errors import ModelError
from onnx import TensorProto, helper
from support.contrib_node import check, normal, number
from support.rows import every

I64 = np.int64


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(upper: int) -> None:
    check("Trilu", [normal(1, 4, 5), number(1, I64)], constants=(1,), upper=upper)


def test_expand_dims() -> None:
    check("ExpandDims", [normal(2, 2, 3), number(-2, np.int32)], constants=(1,))


def test_gather_nd() -> None:
    check("GatherND", [normal(3, 3, 4, 2), np.array([[0, 3], [2, 1]], dtype=I64)])


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(mode: str) -> None:
    grid = np.random.default_rng(4).uniform(-1.2, 1.2, (1, 3, 4, 2)).astype(np.float32)
    check("GridSample", [normal(5, 1, 2, 5, 6), grid], mode=mode, padding_mode="border", align_corners=1)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("row", [False, True])
def test_pad(mode: str, row: bool) -> None:
    pads = np.array([0, 2, 1, 1], dtype=I64)
    value = [number(1.5)] if mode == "constant" else []
    check("Pad", [normal(6, 3, 4), pads[None] if row else pads, *value], constants=(1, 2), mode=mode)


@pytest.mark.parametrize("step", [None, 2])
def test_range(step: int | None) -> None:
    inputs = [number(1, I64), number(8, I64), *([number(step, I64)] if step else [])]
    check("Range", inputs, results=(I64,))
    check("Range", inputs, results=(I64,), constants=range(1, len(inputs)))


def test_unique_keeps_the_order() -> None:
    check("Unique", [np.array([2, 1, 1, 3, 4, 3], dtype=np.float32)], results=(np.float32, I64, I64))


def test_matrices_of_16_bit_integers() -> None:
    a, b = (np.random.default_rng(i).integers(-3000, 3000, (4, 4)).astype(np.int16) for i in (7, 8))
    check("MatMulInteger16", [a, b], results=(np.int32,))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_of_rows(metric: str) -> None:
    check("CDist", [normal(9, 3, 5), normal(10, 4, 5)], metric=metric)


@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
@pytest.mark.parametrize("heads", [1, 3])
def test_gated_rms_norm(activation: str, heads: int) -> None:
    x, scale, gate = normal(11, 2, 4, 8 * heads), normal(12, 8), normal(13, 2, 4, 8 * heads)
    check("GatedRMSNorm", [x, scale, gate], constants=(1,), activation=activation)


@pytest.mark.parametrize("scale", [None, 0.3])
def test_scaled_silu(scale: float | None) -> None:
    check("ScaledSiLU", [normal(14, 3, 4), *([number(scale)] if scale else [])], alpha=1.5)


TEXTS = ["hello a bc  dée", "x", "", "  lead trail ", "a.b,c"]


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (5, 1), (0,), (0, 2)])
@every(
    "how",
    [
        {"separators": [" "]}, {"separators": [" ", "l+"]}, {"separators": ["e", "el"]}, {"separators": [r"[\.,]"]},
        {"separators": [" "], "mincharnum": 3}, {"separators": [" "], "mincharnum": 9}, {"separators": [""]},
        {"tokenexp": "[a-z]+"}, {"tokenexp": "[a-z]+", "mincharnum": 2}, {"tokenexp": "([a-z])([a-z])"},
        {"tokenexp": "[a-z]*"}, {"tokenexp": "[a-zA-Z0-9_]+", "mincharnum": 2},
    ],
)  # fmt: skip
def test_tokenizer(how: dict[str, object], shape: tuple[int, ...], mark: int) -> None:
    count = int(np.prod(shape))
    inputs = {"i0": np.array(TEXTS[:count], dtype=object).reshape(shape)}
    text = TensorProto.STRING
    node = helper.make_node(
        "Tokenizer", ["i0"], ["o0"], domain="com.microsoft", **{"pad_value": "#", "mincharnum": 1, "mark": mark, **how}
    )
    infos = [helper.make_tensor_value_info(n, text, None) for n in ("i0", "o0")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "tokens", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    for backend in ("numpy", "python"):
        home = get_backend(backend)
        y = load(model, backend)(home.from_list(inputs["i0"].ravel().tolist(), dtypes.string, shape))
        assert y.shape == expected.shape and y.tolist() == expected.tolist()


@pytest.mark.parametrize("how", [{}, {"separators": ["("]}, {"separators": [""], "mincharnum": 2}])
def test_a_tokenizer_that_cannot_be_is_refused(how: dict[str, object]) -> None:
    infos = [helper.make_tensor_value_info(n, TensorProto.STRING, [2]) for n in ("i0", "o0")]
    node = helper.make_node("Tokenizer", ["i0"], ["o0"], domain="com.microsoft", pad_value="#", **how)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with pytest.raises(ModelError, match="Tokenizer"):
        load(helper.make_model(helper.make_graph([node], "tokens", infos[:1], infos[1:]), opset_imports=opsets))
