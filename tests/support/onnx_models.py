"""Small ONNX models written as text, run by onnxruntime and as generated code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

Model = onnx.ModelProto | str | os.PathLike[str]


def parse(text: str, opset: int = 21, **domains: int) -> onnx.ModelProto:
    """The model whose graph is `text`, in ONNX's own notation: `g (float[N] x) => (float[N] y) { y = Relu(x) }`."""
    imports = ", ".join(f'"{domain}" : {version}' for domain, version in {"": opset, **domains}.items())
    return parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{text}")


def with_constants(text: str, opset: int = 21, **constants: NDArray[Any]) -> onnx.ModelProto:
    """`parse`, with initializers."""
    model = parse(text, opset)
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    return model


def expected(model: Model, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """onnxruntime's outputs, computed without rewriting the graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(None, dict(inputs))
    return found


def generated(
    model: Model, inputs: Iterable[Any], backend: str = "numpy", passes: Iterable[str] | None = None
) -> list[Any]:
    """The outputs of the code generated from `model`, for arrays in the order of its inputs."""
    from emberlet.backend import get_backend
    from emberlet.codegen import load
    from emberlet.codegen.onnx_backend import Prepared

    return list(Prepared(load(model, backend, passes=passes), get_backend(backend)).run(list(inputs)))


def assert_same(got: Iterable[Any], want: Iterable[NDArray[Any]], atol: float = 1e-5, rtol: float = 1e-4) -> None:
    """Equal dtypes and shapes, and values within the tolerances."""
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"output {i}: {g.dtype} {g.shape}, not {w.dtype} {w.shape}"
        np.testing.assert_allclose(g, w, atol=atol, rtol=rtol, err_msg=f"output {i}")


def check(
    model: Model, *inputs: NDArray[Any], atol: float = 1e-5, rtol: float = 1e-4, passes: Iterable[str] | None = None
) -> None:
    """The generated code gives onnxruntime's outputs."""
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    held = {i.name for i in proto.graph.initializer}
    names = [i.name for i in proto.graph.input if i.name not in held]
    want = expected(model, dict(zip(names, inputs, strict=True)))
    assert_same(generated(model, inputs, passes=passes), want, atol, rtol)


def source(model: Model, passes: Iterable[str] | None = None, name: str = "net") -> str:
    """The Python generated from `model`."""
    from emberlet.codegen.generation import translate

    return translate(model, name, passes)[1].source
