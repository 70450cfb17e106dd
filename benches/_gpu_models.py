"""The models of the GPU benchmark, as ONNX files in .cache/bench: onnx's light ones and a transformer encoder.

Weights are random: the time does not depend on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"


def models() -> dict[str, Path]:
    """Name -> model measured on every device: SqueezeNet, and mnist.onnx if the shared folder exists."""
    found = {"squeezenet": light("squeezenet")}
    shared = ROOT.parent / "shared" / "models" / "mnist.onnx"
    if shared.is_file():
        found = {"mnist": shared, **found}
    return found


def large_models(small: bool) -> dict[str, Path]:
    """Name -> model measured on a real GPU. small: smaller models, which a software device can finish."""
    if small:
        return {"squeezenet": light("squeezenet"), "encoder-1x64": encoder(1, 64, 4, 16)}
    return {
        "squeezenet": light("squeezenet"),
        "resnet50": light("resnet50"),
        "encoder-6x768": encoder(6, 768, 12, 128),
    }


def light(name: str) -> Path:
    """One of onnx's light models with random weights, because a compiler may fold its constant ones away."""
    path = CACHE / f"{name}.onnx"
    if path.is_file():
        return path
    import onnx

    model = onnx.load(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx")
    random = np.random.default_rng(0)
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(d) for d in shapes[node.input[0]]]
        if len(shape) > 1:
            weights = random.standard_normal(shape) * (2 / max(1, int(np.prod(shape[1:])))) ** 0.5
        else:  # a bias, or a batch norm's parameters, including its variance
            weights = random.uniform(0.1, 1.0, shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(np.float32), node.output[0]))
    held = [t for t in model.graph.initializer if not t.name.endswith("__SHAPE")]
    given = [i for i in model.graph.input if not i.name.endswith("__SHAPE")]
    del model.graph.input[:]
    model.graph.input.extend(given)
    del model.graph.initializer[:]
    model.graph.initializer.extend(held)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def encoder(layers: int, width: int, heads: int, tokens: int) -> Path:
    """A transformer encoder (layer norm after each half, GELU, 4 * width wide inside) over (1, tokens, width)."""
    path = CACHE / f"encoder-{layers}x{width}x{heads}x{tokens}.onnx"
    if path.is_file():
        return path
    import onnx
    from onnx import TensorProto, helper

    random = np.random.default_rng(0)
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any) -> str:
        name = f"c{len(constants)}"
        constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def linear(x: str, rows: int, columns: int) -> str:
        weight = (random.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
        return node("Add", node("MatMul", x, constant(weight)), constant(np.zeros(columns, np.float32)))

    def normalized(x: str) -> str:
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return node("LayerNormalization", x, constant(ones), constant(zeros), axis=-1)

    def number(value: float) -> str:
        return constant(np.float32(value))

    split = constant(np.array([1, tokens, heads, width // heads], np.int64))
    merged = constant(np.array([1, tokens, width], np.int64))
    x = "x"
    for _ in range(layers):
        q, k, v = (node("Reshape", linear(x, width, width), split) for _ in range(3))
        q, v = (node("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = node("MatMul", q, node("Transpose", k, perm=[0, 2, 3, 1]))
        weights = node("Softmax", node("Mul", scores, number((heads / width) ** 0.5)), axis=-1)
        seen = node("Reshape", node("Transpose", node("MatMul", weights, v), perm=[0, 2, 1, 3]), merged)
        x = normalized(node("Add", x, linear(seen, width, width)))
        h = linear(x, width, 4 * width)
        gate = node("Add", node("Erf", node("Mul", h, number(0.5**0.5))), number(1.0))
        h = node("Mul", node("Mul", h, number(0.5)), gate)
        x = normalized(node("Add", x, linear(h, 4 * width, width)))
    shape = [1, tokens, width]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        constants,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def model_input(path: Path) -> tuple[str, Any]:
    """The name of a model's one input, and a value for it."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    held = {i.name for i in graph.initializer}
    given = next(i for i in graph.input if i.name not in held)
    shape = [d.dim_value or 1 for d in given.type.tensor_type.shape.dim]
    return given.name, np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def matrices(n: int, dtype: str = "float32") -> tuple[Any, Any]:
    """Two random n × n matrices."""
    random = np.random.default_rng(n)
    first, second = (random.standard_normal((n, n), np.float32).astype(dtype) for _ in range(2))
    return first, second
