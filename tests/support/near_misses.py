"""Models that differ from one in a single place each: an operand, a number, an attribute, an operator, a shape."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from .changed_nodes import copied

OTHERS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul", "Pow": "Mul", "Max": "Min", "ReduceMean": "ReduceSum",
    "ReduceSum": "ReduceMean", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Erf": "Tanh", "Softplus": "Exp", "Relu": "Neg",
    "Sqrt": "Exp", "Reciprocal": "Exp", "Neg": "Abs", "Abs": "Exp", "Floor": "Exp", "Softmax": "LogSoftmax",
    "Less": "LessOrEqual", "LessOrEqual": "Less", "GreaterOrEqual": "Greater", "And": "Or", "Cos": "Sin", "Sin": "Cos",
    "Equal": "Less", "Not": "Identity", "Identity": "Neg", "Transpose": "Neg",
}  # fmt: skip
SYMMETRIC = ("Add", "Mul", "Max", "Min", "And", "Or", "Equal")


def operators(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each operator replaced by another."""
    for i, node in enumerate(model.graph.node):
        if node.op_type in OTHERS:
            made = copied(model)
            made.graph.node[i].op_type = OTHERS[node.op_type]
            del made.graph.node[i].attribute[len(node.attribute) if node.op_type != "Transpose" else 0 :]
            yield f"{node.op_type} {node.output[0]} is {OTHERS[node.op_type]}", made


def turned(model: onnx.ModelProto, symmetric: bool) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The first two operands of each node exchanged, for operators where the order matters and for those where it does
    not."""
    for i, node in enumerate(model.graph.node):
        if len(node.input) >= 2 and (node.op_type in SYMMETRIC) is symmetric and node.input[0] != node.input[1]:
            made = copied(model)
            made.graph.node[i].input[:2] = [node.input[1], node.input[0]]
            yield f"the operands of {node.op_type} {node.output[0]} exchanged", made


def operands(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """One operand of each node negated, and one replaced by another value of the model."""
    held = {t.name for t in model.graph.initializer}
    known = [i.name for i in model.graph.input]
    for i, node in enumerate(model.graph.node):
        for j, name in enumerate(node.input):
            if name and name not in held:
                made = copied(model)
                made.graph.node.insert(i, helper.make_node("Neg", [name], ["negated"], name="negation"))
                made.graph.node[i + 1].input[j] = "negated"
                yield f"operand {j} of {node.output[0]} negated", made
            for other in known[-2:]:
                if name and name not in held and other != name:
                    made = copied(model)
                    made.graph.node[i].input[j] = other
                    yield f"operand {j} of {node.output[0]} is {other}", made
        known += node.output


def outputs(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each value between two nodes an output of the model too."""
    taken = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in taken:
                made = copied(model)
                made.graph.output.append(onnx.ValueInfoProto(name=name))
                yield f"{name} is an output", made


def numbers(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """One number of each constant changed, except sizes in the shape of a Reshape."""
    targets = {n.input[1] for n in model.graph.node if n.op_type == "Reshape"}
    for i, tensor in enumerate(model.graph.initializer):
        value = numpy_helper.to_array(tensor)
        if value.dtype == bool or not value.size:
            continue
        steps = (1, -1) if value.dtype.kind == "i" else (0.25, -0.25)
        places = range(value.size) if value.size <= 4 else (0, value.size - 1)
        for at in places:
            if tensor.name in targets and value.reshape(-1)[at] <= 0:
                continue
            for step in steps:
                changed = value.copy()
                with np.errstate(over="ignore"):
                    changed.reshape(-1)[at] += step
                made = copied(model)
                made.graph.initializer[i].CopyFrom(numpy_helper.from_array(changed, tensor.name))
                yield f"{tensor.name}[{at}] is {step} more", made


def shapes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each constant with one axis of size 1 more, or one fewer."""
    for i, tensor in enumerate(model.graph.initializer):
        value = numpy_helper.to_array(tensor)
        other = [value[None], value[..., None], *([value[0]] if value.shape[:1] == (1,) else [])]
        for changed in (o for o in other if value.size <= 4096):
            made = copied(model)
            made.graph.initializer[i].CopyFrom(numpy_helper.from_array(changed, tensor.name))
            yield f"{tensor.name} is {changed.shape}", made


def attributes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each attribute of integers and numbers changed, or left out."""
    for i, node in enumerate(model.graph.node):
        for j, a in enumerate(node.attribute):
            found: list[AttributeProto] = []
            if a.type == AttributeProto.INT and node.op_type != "Cast":
                found = [helper.make_attribute(a.name, a.i + step) for step in (1, -1)]
            elif a.type == AttributeProto.FLOAT:
                found = [helper.make_attribute(a.name, a.f + 0.25)]
            elif a.type == AttributeProto.INTS and len(a.ints) > 1:
                found = [helper.make_attribute(a.name, [*a.ints][::-1])]
                found += [helper.make_attribute(a.name, [*a.ints[1:], a.ints[0]])]
            for other in found:
                made = copied(model)
                made.graph.node[i].attribute[j].CopyFrom(other)
                yield f"{node.output[0]}: {helper.printable_attribute(other)}", made
            made = copied(model)
            del made.graph.node[i].attribute[j]
            yield f"{node.output[0]} without {a.name}", made


def unknown(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The shape of an input unknown, or its sizes, or the fact that two sizes are equal."""
    for i, info in enumerate(model.graph.input):
        made = copied(model)
        made.graph.input[i].type.tensor_type.ClearField("shape")
        yield f"the rank of {info.name} is unknown", made
        for j, _ in enumerate(info.type.tensor_type.shape.dim):
            made = copied(model)
            made.graph.input[i].type.tensor_type.shape.dim[j].Clear()
            yield f"size {j} of {info.name} is unknown", made


def given(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each constant an input of the model; `added` gives the arrays."""
    for tensor in model.graph.initializer:
        made = copied(model)
        kept = [t for t in made.graph.initializer if t.name != tensor.name]
        del made.graph.initializer[:]
        made.graph.initializer.extend(kept)
        made.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        yield f"{tensor.name} is an input", made


def doubles(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """One input or constant, or all of them, in float64 in place of float32."""
    places = [("input", i, v) for i, v in enumerate(model.graph.input)]
    floats = [p for p in places if p[2].type.tensor_type.elem_type == TensorProto.FLOAT]
    held = [(i, t) for i, t in enumerate(model.graph.initializer) if t.data_type == TensorProto.FLOAT]
    for only in [*held, None]:
        made = copied(model)
        for i, t in [only] if only else held:
            made.graph.initializer[i].CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name)
            )
        for _, i, _ in () if only else floats:
            made.graph.input[i].type.tensor_type.elem_type = TensorProto.DOUBLE
        for o in made.graph.output:
            o.type.Clear()
        yield f"{only[1].name if only else 'all'} in float64", made


KINDS = {
    "operators": operators,
    "turned": lambda m: turned(m, False),
    "operands": operands,
    "outputs": outputs,
    "numbers": numbers,
    "shapes": shapes,
    "attributes": attributes,
    "unknown": unknown,
    "given": given,
    "doubles": doubles,
}


def drawn(model: onnx.ModelProto, count: int, seed: int) -> list[tuple[str, onnx.ModelProto]]:
    """Models with one change, of a kind and place drawn at random."""
    changes = [change for kind in KINDS.values() for change in kind(model)]
    return random.Random(seed).sample(changes, min(count, len(changes)))


def drawn_pairs(model: onnx.ModelProto, count: int, seed: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Models with two changes, of kinds and places drawn at random."""
    draw = random.Random(seed)
    for one, changed in drawn(model, count, seed):
        second = [change for kind in draw.sample([*KINDS.values()], 3) for change in kind(changed)]
        if second:
            other, made = draw.choice(second)
            yield f"{one}, {other}", made
