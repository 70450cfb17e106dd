"""Padding and texts of com.microsoft against onnxruntime; test_changed_nodes.py compares the other operators that are
also in the standard."""

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


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("row", [False, True])
def test_pad(mode: str, row: bool) -> None:
    pads = np.array([0, 2, 1, 1], dtype=I64)
    value = [number(1.5)] if mode == "constant" else []
    check("Pad", [normal(6, 3, 4), pads[None] if row else pads, *value], constants=(1, 2), mode=mode)


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
