"""Single com.microsoft operators, as exporters emit them: normalization, activations, fusions."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .recipe import Inputs, Recipe, normal, rng

FLOAT = TensorProto.FLOAT


Outputs = Sequence[tuple[str, int]]
"""Name and element type of each output, in the operator's order; an output named "" is left out."""


def declare(name: str, kind: int, arrays: Sequence[np.ndarray]) -> onnx.ValueInfoProto:
    """A value of the shape the arrays share; a dimension in which they differ is symbolic."""
    sizes = [set(axis) for axis in zip(*(array.shape for array in arrays), strict=True)]
    shape = [one.pop() if len(one) == 1 else f"{name}_{axis}" for axis, one in enumerate(sizes)]
    return helper.make_tensor_value_info(name, kind, shape)


def one(
    op: str,
    inputs: Sequence[str],
    cases: Mapping[str, Inputs],
    weights: Mapping[str, np.ndarray],
    outputs: Outputs,
    attributes: Mapping[str, object],
    *,
    domain: str = "com.microsoft",
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of one node. An input named "" is left out."""
    import onnxruntime

    values = []
    for name in inputs:
        if name and name not in weights:
            arrays = [case[name] for case in cases.values()]
            values.append(declare(name, helper.np_dtype_to_tensor_dtype(arrays[0].dtype), arrays))
    node = helper.make_node(
        op, list(inputs), [name for name, _ in outputs], domain=domain, name=f"node_{op}", **attributes
    )
    named = [(name, kind) for name, kind in outputs if name]
    model = helper.make_model(
        helper.make_graph(
            [node],
            "main_graph",
            values,
            [helper.make_tensor_value_info(name, kind, None) for name, kind in named],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
        producer_name="emberlet-tests",
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = [session.run(None, dict(case)) for case in cases.values()]
    del model.graph.output[:]
    model.graph.output.extend(
        declare(name, kind, arrays) for (name, kind), *arrays in zip(named, *results, strict=True)
    )
    return model


def contrib(
    name: str,
    about: str,
    op: str,
    inputs: Sequence[str],
    cases: Mapping[str, Inputs],
    weights: Mapping[str, np.ndarray] | None = None,
    outputs: Outputs = (("y", FLOAT),),
    domain: str = "com.microsoft",
    atol: float = 1e-4,
    literal: bool = False,
    **attributes: object,
) -> Recipe:
    """A recipe for one operator; the output is a float tensor `y` unless told otherwise."""
    return Recipe(
        f"contrib/{name}",
        about,
        lambda: one(op, inputs, cases, weights or {}, outputs, attributes, domain=domain),
        lambda: cases,
        checked=domain != "",
        literal=literal,
        atol=atol,
    )


def sequences(**extra: tuple[int, ...]) -> Mapping[str, Inputs]:
    """Two cases of x (batch, length, 16), with further inputs of the same leading sizes."""
    return {
        f"batch{n}_length{t}": {
            "x": normal(t, n, t, 16),
            **{name: normal(50 + t, n, t, *tail) for name, tail in extra.items()},
        }
        for n, t in ((1, 3), (2, 5))
    }


GAMMA, BETA, BIAS = normal(90, 16, scale=0.3) + 1, normal(91, 16, scale=0.3), normal(92, 16, scale=0.3)

NORMALIZATION = [
    contrib(
        "simplified_layer_normalization",
        "root-mean-square norm under the name exporters use, in the standard's own domain",
        "SimplifiedLayerNormalization", ["x", "scale"], sequences(), {"scale": GAMMA}, domain="", axis=-1, epsilon=1e-5,
        stash_type=1,
    ),
    contrib(
        "skip_layer_normalization", "sum of input, skip and bias, normalized; the sum is an output too",
        "SkipLayerNormalization", ["x", "skip", "gamma", "beta", "bias"], sequences(skip=(16,)),
        {"gamma": GAMMA, "beta": BETA, "bias": BIAS}, [("y", FLOAT), ("", FLOAT), ("", FLOAT), ("sum", FLOAT)],
        epsilon=1e-5,
    ),
    contrib(
        "skip_layer_normalization_plain", "the same without beta and bias", "SkipLayerNormalization",
        ["x", "skip", "gamma"], sequences(skip=(16,)), {"gamma": GAMMA}, epsilon=1e-12,
    ),
    contrib(
        "skip_simplified_layer_normalization", "the root-mean-square form", "SkipSimplifiedLayerNormalization",
        ["x", "skip", "gamma", "bias"], sequences(skip=(16,)), {"gamma": GAMMA, "bias": BIAS},
        [("y", FLOAT), ("", FLOAT), ("", FLOAT), ("sum", FLOAT)], epsilon=1e-6,
    ),
    contrib(
        "embed_layer_normalization",
        "word, position and segment embeddings summed and normalized; the mask becomes lengths",
        "EmbedLayerNormalization",
        ["input_ids", "segment_ids", "word", "position", "segment", "gamma", "beta", "mask"],
        {
            f"batch{n}_length{t}": {
                "input_ids": rng(t).integers(0, 20, (n, t), dtype=np.int32),
                "segment_ids": rng(9 + t).integers(0, 2, (n, t), dtype=np.int32),
                "mask": (np.arange(t) < np.array([t, t - 2])[:n, None]).astype(np.int32),
            }
            for n, t in ((1, 4), (2, 6))
        },
        {
            "word": normal(1, 20, 16), "position": normal(2, 8, 16), "segment": normal(3, 2, 16), "gamma": GAMMA,
            "beta": BETA,
        },
        [("y", FLOAT), ("mask_index", TensorProto.INT32)],
        epsilon=1e-12,
    ),
]  # fmt: skip

ACTIVATION = [
    contrib("fast_gelu", "tanh-approximated GELU", "FastGelu", ["x"], sequences()),
    contrib("fast_gelu_bias", "the same with a bias", "FastGelu", ["x", "bias"], sequences(), {"bias": BIAS}),
    contrib("bias_gelu", "GELU after a bias", "BiasGelu", ["x", "bias"], sequences(), {"bias": BIAS}),
    contrib("gelu", "GELU from before the standard had it", "Gelu", ["x"], sequences()),
    contrib("quick_gelu", "x · sigmoid(αx)", "QuickGelu", ["x"], sequences(), alpha=1.702),
]

FUSED = [
    contrib(
        "fused_matmul",
        "batched product of transposed operands, scaled",
        "FusedMatMul",
        ["a", "b"],
        {f"batch{n}": {"a": normal(n, n, 3, 6, 4), "b": normal(9 + n, n, 3, 5, 6)} for n in (1, 2)},
        transA=1,
        transB=1,
        alpha=0.35,
    ),
    contrib(
        "fused_matmul_batch", "the batch axis moved in as well", "FusedMatMul", ["a", "b"],
        {"": {"a": normal(1, 4, 3, 6), "b": normal(2, 3, 6, 5)}}, transBatchA=1, alpha=1.0,
    ),
    contrib(
        "fused_conv", "convolution, an added tensor and ReLU in one node", "FusedConv", ["x", "w", "b", "z"],
        {"": {"x": normal(1, 1, 4, 6, 5), "z": normal(4, 1, 6, 6, 5)}},
        {"w": normal(2, 6, 4, 3, 3, scale=0.3), "b": normal(3, 6)}, kernel_shape=[3, 3], pads=[1, 1, 1, 1],
        activation="Relu",
    ),
    contrib(
        "fused_conv_clip", "convolution with a hard sigmoid and its parameters, depthwise", "FusedConv", ["x", "w"],
        {"": {"x": normal(1, 2, 4, 6, 5)}}, {"w": normal(2, 4, 1, 3, 3, scale=0.3)}, kernel_shape=[3, 3],
        strides=[2, 1], group=4, activation="HardSigmoid", activation_params=[0.25, 0.4],
    ),
    contrib(
        "fused_gemm", "Gemm and leaky ReLU in one node", "FusedGemm", ["a", "b", "c"], {"": {"a": normal(1, 3, 6)}},
        {"b": normal(2, 4, 6), "c": normal(3, 4)}, transB=1, alpha=0.5, beta=2.0, activation="LeakyRelu",
        activation_alpha=0.2,
    ),
]  # fmt: skip

RECIPES = [*NORMALIZATION, *ACTIVATION, *FUSED]
