"""Models of one node, each changed in a single place: an input's shape or dtype, an attribute, what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

DTYPES = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL)
LISTS = {AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings"}
Change = tuple[str, onnx.ModelProto]


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def changes(model: onnx.ModelProto, arrays: Sequence[Any]) -> Iterator[Change]:
    """(what is changed, the model) of everything below. arrays: values of the graph's inputs in their order."""
    yield from attributes(model)
    yield from attributes_more(model)
    yield from inputs_left_out(model)
    yield from shapes(model)
    yield from dtypes(model)
    yield from constants(model, arrays)
    yield from layers(model, arrays)
    yield from outputs(model)
    for i, known in enumerate(model.opset_import):
        for version in sorted({known.version + 1, known.version - 1, 1, 6} - {known.version}):
            made = copied(model)
            made.opset_import[i].version = version
            yield f"{known.domain or 'opset'} {version}", made


def attributes(model: onnx.ModelProto) -> Iterator[Change]:
    """Each attribute left out, of another type, and with numbers near its own and at the ends."""
    for i, attribute in enumerate(model.graph.node[0].attribute):
        name = attribute.name
        made = copied(model)
        del made.graph.node[0].attribute[i]
        yield f"no {name}", made
        for value in _values(attribute):
            made = copied(model)
            made.graph.node[0].attribute[i].CopyFrom(helper.make_attribute(name, value))
            yield f"{name}={value}", made
        if attribute.type in LISTS:
            made = copied(model)
            held = getattr(made.graph.node[0].attribute[i], LISTS[attribute.type])
            del held[:]
            yield f"{name}=[]", made


def attributes_more(model: onnx.ModelProto) -> Iterator[Change]:
    """Each attribute that the node leaves out, with numbers that are not its default."""
    node = model.graph.node[0]
    version = next((i.version for i in model.opset_import if i.domain == node.domain), 1)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return
    given = {a.name for a in node.attribute}
    kinds = onnx.defs.OpSchema.AttrType
    for name, attribute in sorted(schema.attributes.items()):
        numbers: dict[Any, list[Any]] = {
            kinds.INT: [0, 1, 2, -1], kinds.FLOAT: [0.5, 0.0], kinds.INTS: [[1], [2, 1], [1, 2, 1], [1, 0, 2, 1]],
            kinds.FLOATS: [[0.5]], kinds.STRING: ["other"],
        }  # fmt: skip
        for value in numbers.get(attribute.type, []) if name not in given else []:
            made = copied(model)
            made.graph.node[0].attribute.append(helper.make_attribute(name, value))
            yield f"{name}={value}", made


def _values(attribute: onnx.AttributeProto) -> list[Any]:
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.INT:
        return list(dict.fromkeys([value + 1, value - 1, 0, -1, -value, 2.5]))
    if attribute.type == AttributeProto.FLOAT:
        return list(dict.fromkeys([value * 2, 0.0, -1.0, 1]))
    if attribute.type == AttributeProto.STRING:
        return ["other", value.decode().swapcase(), 3]
    if attribute.type == AttributeProto.INTS and value:
        first, *more = value
        return [
            [*value, 1],
            list(value[::-1]),
            [first + 1, *more],
            [0, *more],
            [-1, *more],
            [*value[:-1], value[-1] + 1],
            1,
        ]
    if attribute.type == AttributeProto.FLOATS and value:
        return [[*value, 1.0], [*value[:-1], 0.5], 1.0]
    if attribute.type == AttributeProto.STRINGS and value:
        words = [v.decode() for v in value]
        return [[*words, "z"], words[::-1], "z"]
    return [7] if attribute.type == AttributeProto.TENSOR else []


def inputs_left_out(model: onnx.ModelProto) -> Iterator[Change]:
    """Each input of the node left out, those after it too, and one too many."""
    for i, name in enumerate(model.graph.node[0].input):
        if name:
            made = copied(model)
            made.graph.node[0].input[i] = ""
            yield f"no {name}", made
            if i + 1 < len(model.graph.node[0].input):
                made = copied(model)
                del made.graph.node[0].input[i:]
                yield f"none from {name}", made
    if model.graph.node[0].input:
        made = copied(model)
        made.graph.node[0].input.append(made.graph.node[0].input[0])
        yield "its first input as one more", made


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[int, onnx.ValueInfoProto]]:
    for i, info in enumerate(model.graph.input):
        if info.type.HasField("tensor_type"):
            yield i, info


def shapes(model: onnx.ModelProto) -> Iterator[Change]:
    """Each input of another rank, and with other sizes of its first and last axes, known or not."""
    for i, info in _tensors(model):
        rank = len(info.type.tensor_type.shape.dim)
        made = copied(model)
        made.graph.input[i].type.tensor_type.ClearField("shape")
        yield f"{info.name} of unknown rank", made
        made = copied(model)
        made.graph.input[i].type.tensor_type.shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=2))
        yield f"{info.name} with 2 before", made
        made = copied(model)
        made.graph.input[i].type.tensor_type.shape.dim.add(dim_value=1)
        yield f"{info.name} with 1 behind", made
        for axis in dict.fromkeys((0, 1, rank - 1)):
            if not 0 <= axis < rank:
                continue
            made = copied(model)
            del made.graph.input[i].type.tensor_type.shape.dim[axis]
            yield f"{info.name} without axis {axis}", made
            size = info.type.tensor_type.shape.dim[axis].dim_value
            for other in dict.fromkeys((size + 1, size - 1, 1, 0, "n", 2 * size)):
                if other == size or (isinstance(other, int) and other < 0):
                    continue
                made = copied(model)
                dim = made.graph.input[i].type.tensor_type.shape.dim[axis]
                if isinstance(other, int):
                    dim.dim_value = other
                else:
                    dim.dim_param = other
                yield f"{info.name}.{axis}={other}", made


def dtypes(model: onnx.ModelProto) -> Iterator[Change]:
    """Each input of some other dtypes."""
    for i, info in _tensors(model):
        for dtype in DTYPES:
            if dtype != info.type.tensor_type.elem_type:
                made = copied(model)
                made.graph.input[i].type.tensor_type.elem_type = dtype
                yield f"{info.name} {TensorProto.DataType.Name(dtype).lower()}", made


def constants(model: onnx.ModelProto, arrays: Sequence[Any]) -> Iterator[Change]:
    """Each small input as a constant: its own value, and others near it."""
    for i, info in _tensors(model):
        array = arrays[i]
        if not isinstance(array, np.ndarray) or array.size > 64 or array.dtype.kind not in "iufb":
            continue
        values: dict[str, Any] = {"constant": array}
        if array.dtype.kind in "iu" and array.size:
            flat = array.copy().reshape(-1)
            flat[0] = 0
            values |= {
                "+1": array + 1,
                "0 first": flat.reshape(array.shape),
                "reversed": array[..., ::-1] if array.ndim else array,
            }
            if array.dtype.kind == "i":
                values |= {"-1": array - 1, "negative": -array}
        if array.ndim == 1 and array.size:
            values |= {"but its last": array[:-1], "and one more": np.append(array, array[-1])}
        elif array.ndim == 0:
            values["in a list"] = array.reshape(1)
        for label, value in values.items():
            made = copied(model)
            made.graph.initializer.append(
                numpy_helper.from_array(
                    np.ascontiguousarray(value).astype(array.dtype).reshape(np.shape(value)), info.name
                )
            )
            del made.graph.input[i]
            yield f"{info.name} {label}" if label == "constant" else f"{info.name} constant, {label}", made


def layers(model: onnx.ModelProto, arrays: Sequence[Any]) -> Iterator[Change]:
    """All inputs but the first as constants, one of them of another shape, or as an input after all."""
    tensors = [i for i, _ in _tensors(model)][1:]
    if not tensors or not all(isinstance(arrays[i], np.ndarray) and arrays[i].size <= 4096 for i in tensors):
        return
    values = {model.graph.input[i].name: arrays[i] for i in tensors}

    def made(held: dict[str, Any]) -> onnx.ModelProto:
        model_ = copied(model)
        for i in reversed(range(len(model_.graph.input))):
            name = model_.graph.input[i].name
            if name in held:
                model_.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(held[name]), name))
                del model_.graph.input[i]
        return model_

    yield "constants", made(values)
    open_ = made(values)
    open_.graph.input[0].type.tensor_type.ClearField("shape")
    yield "constants, the first of unknown rank", open_
    for name, array in values.items():
        yield f"constants but {name}", made({k: v for k, v in values.items() if k != name})
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
            continue
        others = {"1 before": array[None], "flat": array.reshape(-1), "0 instead": np.zeros_like(array)}
        if array.size:
            others["one element"] = array.reshape(-1)[:1]
        if array.ndim > 1:
            others["turned"] = array.T
        for label, other in others.items():
            if other.shape != array.shape or label == "0 instead":
                yield f"constants, {name} {label}", made({**values, name: other})


def outputs(model: onnx.ModelProto) -> Iterator[Change]:
    """An output too many, the last left out, the first, and all but the first."""
    made = copied(model)
    made.graph.node[0].output.append("more")
    yield "one output more", made
    if len(model.graph.node[0].output) > 1:
        made = copied(model)
        made.graph.node[0].output[1:] = [""] * (len(model.graph.node[0].output) - 1)
        del made.graph.output[1:]
        yield "no output but the first", made
    if len(model.graph.output) > 1:
        for at, label in ((-1, "the last"), (0, "the first")):
            made = copied(model)
            kept = list(model.graph.output)
            name = kept.pop(at).name
            del made.graph.output[:]
            made.graph.output.extend(kept)
            for k, output in enumerate(made.graph.node[0].output):
                if output == name:
                    made.graph.node[0].output[k] = ""
            yield f"no output, {label}", made
