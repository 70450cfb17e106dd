"""An ONNX model in the form that its quantization starts from. Needs the package onnx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from emberlet.errors import UnsupportedError

from .floats import PRODUCTS
from .graph_names import Unused, graphs_of, keep_only, names_defined, names_read, readers, rename_inputs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

QUANTIZED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
             "ConvInteger", "MatMulInteger", "DynamicQuantizeLSTM"}  # fmt: skip
OPSET = 13  # the first with a scale for each channel
FOLDED = {"Cast", "Mul", "Div", "Sub", "Add", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity"}
FLOATS = {1, 10, 11, 16}  # TensorProto.FLOAT, FLOAT16, DOUBLE, BFLOAT16


def prepared(model: ModelProto) -> ModelProto:
    """A copy with opset 13 or later, its functions in their places, constants as initializers, also those of branches
    and bodies, batch norms folded into the products before them, and without nodes whose results nobody reads. Raises
    UnsupportedError for a model that cannot be converted, or is quantized already."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    if found.functions:
        from onnx import inliner

        found = inliner.inline_local_functions(found)
    if any(n.op_type in QUANTIZED for n in found.graph.node):
        raise UnsupportedError("the model is quantized already; quantize the float model that it was made from")
    found.ir_version = max(found.ir_version, 4)  # before, every initializer was an input too
    found = with_opset(found, OPSET)
    graph = found.graph
    given = {t.name for t in graph.initializer}
    keep_only(graph.input, [i.name not in given for i in graph.input])
    _drop_dead(graph)
    _with_constants(graph)
    _compute_weights(found)
    _drop_dead(graph)
    _fold_batch_norms(found)
    return found


def check(quantized: ModelProto, model: ModelProto) -> None:
    """Raise UnsupportedError for a quantized model that is no valid ONNX, unless the model was none either, as where
    outputs have no shape, which runtimes take."""
    import onnx

    try:
        onnx.checker.check_model(quantized)
    except Exception as error:  # onnx raises its own ValidationError, and ValueError for models beyond 2 GiB
        try:
            onnx.checker.check_model(model)
        except Exception:
            return
        raise UnsupportedError(f"the quantized model is no valid ONNX: {error}; leave out activations") from None


def with_opset(model: ModelProto, opset: int) -> ModelProto:
    """The model, converted to this opset if it has an earlier one. Raises UnsupportedError."""
    from onnx import version_converter

    own = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    if own >= opset:
        return model
    try:
        return version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises RuntimeError and others of its own
        raise UnsupportedError(f"opset {own} cannot be converted to {opset}: {error}") from None


def _drop_dead(graph: GraphProto) -> None:
    read = {o.name for o in graph.output}
    live = []
    for node in reversed(graph.node):
        live.append(not read.isdisjoint(node.output))
        if live[-1]:
            read.update(names_read([node]))
    keep_only(graph.node, live[::-1])


def _held(node: NodeProto) -> Any:
    """The tensor of a Constant; None of other nodes."""
    return next((a.t for a in node.attribute if a.name == "value"), None) if node.op_type == "Constant" else None


def _with_constants(main: GraphProto) -> None:
    """Let the main graph have the constants of nodes as initializers, those of branches and bodies, too, if they may be
    weights: what quantizes weights looks for them there. Their names change where other values have the same."""
    defined = Counter(names_defined(main))
    unused = Unused(main)

    def raise_from(graph: GraphProto) -> None:
        outputs = {o.name for o in graph.output} if graph is not main else set()
        renamed = {}
        held = [(o, value) for node in graph.node for o in node.output if (value := _held(node)) is not None]
        if graph is not main:
            held += [(t.name, t) for t in graph.initializer]
            held = [(name, t) for name, t in held if name not in outputs and t.dims and t.data_type in FLOATS]
        for name, value in held:
            main.initializer.add().CopyFrom(value)
            renamed[name] = name if defined[name] == 1 else unused.stem(name, "")
            main.initializer[-1].name = renamed[name]
        keep_only(graph.node, [n.op_type != "Constant" or n.output[0] not in renamed for n in graph.node])
        if graph is not main:
            keep_only(graph.initializer, [t.name not in renamed for t in graph.initializer])
        rename_inputs(graph.node, {old: new for old, new in renamed.items() if old != new})
        for node in graph.node:
            for inner in graphs_of(node):
                raise_from(inner)

    raise_from(main)


def _compute_weights(model: ModelProto) -> None:
    """Replace weights that products compute from constants, such as float16 or integers times a scale, by their values.
    The transpose of an initializer stays (`activations.weight_of`)."""
    from onnx import numpy_helper as helper

    graph = model.graph
    constants = {t.name: t for t in graph.initializer}
    computed: dict[str, NodeProto] = {}
    for node in graph.node:
        plain = node.op_type in FOLDED and node.domain in ("", "ai.onnx")
        if plain and all(not n or n in constants or n in computed for n in node.input):
            computed[node.output[0]] = node
    uses, outputs = readers(graph), {o.name for o in graph.output}
    weights = dict.fromkeys(n.input[1] for n in graph.node if n.op_type in PRODUCTS and n.input[1] in computed)
    for name in weights:
        needed = _needed(name, computed)
        held = {n: constants[n] for node in needed for n in node.input if n in constants}
        x = _value(model, name, needed, list(held.values()))
        if x.dtype != np.float32 or [n.op_type for n in needed] == ["Transpose"]:
            continue
        main = max(held, key=lambda n: prod(held[n].dims))
        passed = [main, *(node.output[0] for node in needed[:-1])]
        if all(len(uses[n]) == 1 for n in passed) and name not in outputs:  # its name says whose weight it is
            constants[main].CopyFrom(helper.from_array(x, main))
            rename_inputs(graph.node, {name: main})
            uses[main] = uses[name]
        else:
            graph.initializer.append(helper.from_array(x, name))
            keep_only(graph.node, [name not in n.output for n in graph.node])


def _needed(name: str, computed: Mapping[str, NodeProto]) -> list[NodeProto]:
    """The nodes that compute a value, in order."""
    read, found = {name}, []
    for output, node in reversed(list(computed.items())):
        if output in read:
            read.update(node.input)
            found.append(node)
    return found[::-1]


def _value(model: ModelProto, name: str, nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> Any:
    from onnx import ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(nodes, "weight", [], [ValueInfoProto(name=name)], constants)
    made = helper.make_model(graph, opset_imports=model.opset_import)
    results: Any = ReferenceEvaluator(made).run(None, {})
    return results[0]


def _fold_batch_norms(model: ModelProto) -> None:
    """Fold each batch norm into the product before it, as codegen/passes/batch_norm.py does."""
    from onnx import numpy_helper as helper

    graph = model.graph
    _with_dense_layers(model)
    constants = {t.name: t for t in graph.initializer}
    uses, outputs = readers(graph), {o.name for o in graph.output}
    by_output = {o: n for n in graph.node for o in n.output}
    wanted = [True] * len(graph.node)
    unused = Unused(graph)
    for i, node in enumerate(graph.node):
        before = by_output.get(node.input[0]) if node.op_type == "BatchNormalization" else None
        if (
            before is None or before.op_type not in ("Conv", "ConvTranspose", "Gemm") or len(uses[node.input[0]]) != 1
            or node.input[0] in outputs or any(a.name == "training_mode" and a.i for a in node.attribute)
            or any(n not in constants for n in (before.input[1], *filter(None, before.input[2:]), *node.input[1:]))
            or len(uses[before.input[1]]) != 1 or constants[before.input[1]].data_type not in FLOATS
        ):  # fmt: skip
            continue
        gain, shift, mean, var = (helper.to_array(constants[n]).astype(np.float64) for n in node.input[1:5])
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
        factor = gain / np.sqrt(var + epsilon)
        held = helper.to_array(constants[before.input[1]])
        weight = _scaled(before, held, factor)
        bias = helper.to_array(constants[before.input[2]]) if any(before.input[2:3]) else np.zeros(1)
        if weight is None or bias.size not in (1, len(factor)) or bias.shape[-1:] not in ((), (bias.size,)):
            continue  # it does not scale each output, or a Gemm adds a row of its own to each sample
        constants[before.input[1]].CopyFrom(helper.from_array(weight.astype(held.dtype), before.input[1]))
        name = unused.stem(before.input[1], ".bias") + ".bias"
        moved = (bias.reshape(-1) - mean) * factor + shift
        graph.initializer.append(helper.from_array(moved.astype(held.dtype), name))
        del before.input[2:]
        before.input.append(name)
        before.output[0] = node.output[0]
        wanted[i] = False
    keep_only(graph.node, wanted)


def _with_dense_layers(model: ModelProto) -> None:
    """Write the products of two matrices that batch norms read as Gemm, which has room for a bias."""
    from onnx import shape_inference

    normed = {n.input[0] for n in model.graph.node if n.op_type == "BatchNormalization"}
    products = [n for n in model.graph.node if n.op_type == "MatMul" and n.output[0] in normed]
    if not products:
        return
    graph = shape_inference.infer_shapes(model).graph
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in (*graph.value_info, *graph.output)}
    ranks |= {t.name: len(t.dims) for t in graph.initializer}
    for node in products:
        if ranks.get(node.output[0]) == ranks.get(node.input[1]) == 2:
            node.op_type = "Gemm"


def _scaled(node: NodeProto, weight: Any, factor: Any) -> Any:
    """The weight of a product whose outputs are multiplied by a factor each; None for a Gemm that is more than that."""
    options = {a.name: a.f if a.type == 1 else a.i for a in node.attribute}
    if node.op_type == "Conv":
        return weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    if node.op_type == "ConvTranspose":  # (in, outputs of a group, …)
        parts = weight.reshape(options.get("group", 1), -1, *weight.shape[1:])
        each = factor.reshape(len(parts), 1, -1, *[1] * (weight.ndim - 2))
        return (parts * each).reshape(weight.shape)
    if options.get("alpha", 1) != 1 or options.get("beta", 1) != 1 or options.get("transA"):
        return None
    return weight * (factor.reshape(-1, 1) if options.get("transB") else factor)
