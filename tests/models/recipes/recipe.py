"""Describes a test model, and exports it by either of PyTorch's two exporters."""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

Inputs = Mapping[str, np.ndarray | None]
"""Input name -> array; None for an input of optional type that is left out."""


@dataclass(frozen=True)
class Recipe:
    """One committed model: how to build it, and its inputs."""

    name: str
    about: str
    build: Callable[[], onnx.ModelProto]
    cases: Callable[[], Mapping[str, Inputs]]
    """Label -> inputs; several where a dimension is dynamic."""
    atol: float = 1e-4
    rtol: float = 1e-4
    checked: bool = True
    """Let onnx check the file: no for SimplifiedLayerNormalization, put in the standard's own domain by exporters."""
    literal: bool = False
    """Let onnxruntime run the graph as it is written, without fusing: a fused quantized kernel rounds differently."""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float32."""
    return (rng(seed).standard_normal(shape) * scale).astype(np.float32)


def tokens(seed: int, vocabulary: int, *shape: int) -> np.ndarray:
    return rng(seed).integers(0, vocabulary, shape, dtype=np.int64)


def strip(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the exporter's records of each node's Python source, which name folders of the exporting machine."""

    def clean(graph: onnx.GraphProto | onnx.FunctionProto) -> None:
        for node in graph.node:
            del node.metadata_props[:]
            node.ClearField("doc_string")
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    clean(attribute.g)
        del graph.metadata_props[:]
        if isinstance(graph, onnx.GraphProto):
            for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
                del value.metadata_props[:]

    clean(proto.graph)
    for function in proto.functions:
        clean(function)
    del proto.metadata_props[:]
    proto.graph.doc_string = ""
    return proto


def seeded(make: Callable[[], Any]) -> Any:
    """A module built under a fixed seed, its batch-norm statistics moved off 0 and 1, in evaluation mode."""
    import torch

    torch.manual_seed(0)
    module = make()
    for layer in module.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            torch.nn.init.normal_(layer.running_mean, std=0.2)
            torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
            torch.nn.init.normal_(layer.bias, std=0.2)
    return module.eval()


def export(
    module: Any,
    args: Sequence[Any],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Sequence[Mapping[int, str] | None] | None = None,
    opset: int = 20,
    optimize: bool = True,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
) -> onnx.ModelProto:
    """By `torch.export`, PyTorch's present way. `dynamic` gives, per input, the names of its dynamic dimensions."""
    import torch

    shapes = None
    if dynamic is not None:
        dims = {name: torch.export.Dim(name) for one in dynamic if one for name in one.values()}
        shapes = tuple({axis: dims[name] for axis, name in one.items()} if one else None for one in dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            tuple(args),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=shapes,
            opset_version=opset,
            optimize=optimize,
            custom_translation_table=translations,
            dynamo=True,
            verbose=False,
        )
    return strip(program.model_proto)


def export_traced(
    module: Any,
    args: Sequence[Any],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    opset: int = 17,
    fold: bool = True,
) -> onnx.ModelProto:
    """By TorchScript, the older way, which most files in circulation came from."""
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(args),
            file,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=dynamic,
            opset_version=opset,
            do_constant_folding=fold,
            dynamo=False,
        )
    return strip(onnx.load_from_string(file.getvalue()))
