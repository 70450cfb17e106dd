"""Models made wrong on purpose: random inconsistencies of every kind that a file may contain."""

from __future__ import annotations

import random
from functools import cache

from onnx import AttributeProto, ModelProto, TensorProto

NUMBERS = (0, 1, -1, 2, 3, -2, 7, 64, 1000, -1000, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
NAMES = (
    "", " ", "x", "self", "class", "__class__", "__import__('os')", "a'b", 'a"b', "a\nb", "a\\", "{x}", "%s", "\0", "é",
    "../../etc/passwd", "x" * 3000, "None", "F", "backend", "\u202e", "a#b", '"""', "'''",
)  # fmt: skip


def mutated(source: ModelProto, seed: int, times: int = 3) -> ModelProto:
    """A copy of a model with a few things changed."""
    r = random.Random(seed)
    model = ModelProto()
    model.CopyFrom(source)
    for _ in range(r.randint(1, times)):
        graph = model.graph
        for _ in range(r.randint(0, 2)):  # into a subgraph, now and then
            inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
            if inner and r.random() < 0.6:
                graph = r.choice(inner)
        r.choice(CHANGES)(graph if graph.node else model.graph, r)
        if r.random() < 0.1:
            _model(model, r)
    return model


def _model(model: ModelProto, r: random.Random) -> None:
    if model.opset_import and r.random() < 0.7:
        r.choice(model.opset_import).version = r.choice((0, 1, 5, 6, 8, 9, 10, 11, 12, 13, 18, 20, 21, 23, 28, 99, -1))
    else:
        model.graph.name = r.choice(NAMES)
        model.producer_name = r.choice(NAMES)
        model.doc_string = r.choice(NAMES)


def _operator(graph, r):  # type: ignore[no-untyped-def]
    node = r.choice(graph.node)
    node.op_type = r.choice(_operators(node.domain))


@cache
def _operators(domain: str) -> list[str]:
    import onnx

    return sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == domain}) or ["Add"]


def _input(graph, r):  # type: ignore[no-untyped-def]
    node = r.choice(graph.node)
    known = [i for n in graph.node for i in (*n.input, *n.output)] + [i.name for i in graph.input] + ["", "nowhere"]
    if node.input and r.random() < 0.7:
        node.input[r.randrange(len(node.input))] = r.choice(known)
    elif node.input and r.random() < 0.5:
        node.input.pop()
    else:
        node.input.append(r.choice(known))


def _output(graph, r):  # type: ignore[no-untyped-def]
    node = r.choice(graph.node)
    if node.output and r.random() < 0.5:
        node.output[r.randrange(len(node.output))] = r.choice([*NAMES, *(o for n in graph.node for o in n.output)])
    elif node.output and r.random() < 0.5:
        node.output.pop()
    else:
        node.output.append(r.choice(NAMES))


def _attribute(graph, r):  # type: ignore[no-untyped-def]
    attributes = [a for n in graph.node for a in n.attribute]
    if not attributes:
        return _new_attribute(graph, r)
    a = r.choice(attributes)
    kind = r.random()
    if kind < 0.15:
        a.type = r.choice(list(AttributeProto.AttributeType.values()))
    elif kind < 0.25:
        a.name = r.choice(NAMES)
    elif a.type == AttributeProto.INT:
        a.i = r.choice(NUMBERS)
    elif a.type == AttributeProto.FLOAT:
        a.f = r.choice(FLOATS)
    elif a.type == AttributeProto.STRING:
        a.s = r.choice((b"", b"\xff\xfe", b"NOTSET", b"SAME_UPPER", b"linear", b"x" * 5000, b"'\"\n"))
    elif a.type == AttributeProto.INTS:
        _listed(a.ints, NUMBERS, r)
    elif a.type == AttributeProto.FLOATS:
        _listed(a.floats, FLOATS, r)
    elif a.type == AttributeProto.STRINGS:
        _listed(a.strings, (b"", b"\xff", b"a", b"'\"\n"), r)
    elif a.type == AttributeProto.TENSOR:
        _lie(a.t, r)
    return None


def _new_attribute(graph, r):  # type: ignore[no-untyped-def]
    import onnx

    node = r.choice(graph.node)
    try:
        names = sorted(onnx.defs.get_schema(node.op_type, domain=node.domain).attributes) or ["axis"]
    except onnx.defs.SchemaError:
        names = ["axis"]
    a = node.attribute.add(name=r.choice([*names, "axis", "axes"]))
    if r.random() < 0.5:
        a.type, a.i = AttributeProto.INT, r.choice(NUMBERS)
    else:
        a.type = AttributeProto.INTS
        a.ints.extend(r.choice(NUMBERS) for _ in range(r.randrange(5)))


def _listed(values, choices, r):  # type: ignore[no-untyped-def]
    if values and r.random() < 0.6:
        values[r.randrange(len(values))] = r.choice(choices)
    elif values and r.random() < 0.5:
        values.pop()
    else:
        values.append(r.choice(choices))


def _lie(t: TensorProto, r: random.Random) -> None:
    """A tensor with inconsistent parts or with other elements."""
    kind = r.random()
    if kind < 0.3 and t.dims:
        t.dims[r.randrange(len(t.dims))] = r.choice(NUMBERS)
    elif kind < 0.4:
        t.dims.append(r.choice(NUMBERS))
    elif kind < 0.5:
        t.data_type = r.choice([*range(30), 99])
    elif kind < 0.6:
        t.raw_data = bytes(r.randrange(256) for _ in range(r.choice((0, 1, 8, len(t.raw_data)))))
    elif kind < 0.8 and t.raw_data:
        data = bytearray(t.raw_data)
        data[r.randrange(len(data))] = r.randrange(256)
        t.raw_data = bytes(data)
    elif kind < 0.9 and t.int64_data:
        t.int64_data[r.randrange(len(t.int64_data))] = r.choice(NUMBERS)
    else:
        t.data_location = TensorProto.EXTERNAL
        t.external_data.add(
            key="location", value=r.choice(("../../etc/passwd", "/etc/passwd", "C:\\x", "", "a\0b", "x"))
        )
        t.external_data.add(
            key=r.choice(("offset", "length")), value=r.choice(("-1", "x", "99999999999999999999", "0"))
        )


def _weight(graph, r):  # type: ignore[no-untyped-def]
    if graph.initializer:
        _lie(r.choice(graph.initializer), r)
    else:
        _attribute(graph, r)


def _type(graph, r):  # type: ignore[no-untyped-def]
    infos = [*graph.input, *graph.output, *graph.value_info]
    if not infos:
        return
    info = r.choice(infos)
    tensor = info.type.tensor_type
    kind = r.random()
    if kind < 0.2:
        tensor.elem_type = r.choice(range(30))
    elif kind < 0.6 and tensor.shape.dim:
        d = r.choice(tensor.shape.dim)
        if r.random() < 0.6:
            d.dim_value = r.choice(NUMBERS)
        else:
            d.dim_param = r.choice(NAMES)
    elif kind < 0.7:
        tensor.ClearField("shape")
    elif kind < 0.8:
        tensor.shape.dim.add().dim_value = r.choice(NUMBERS)
    elif kind < 0.9:
        info.name = r.choice(NAMES)
    else:
        info.ClearField("type")


def _order(graph, r):  # type: ignore[no-untyped-def]
    nodes = [*graph.node]
    r.shuffle(nodes)
    if r.random() < 0.3 and nodes:
        nodes.append(r.choice(nodes))
    copies = []
    for n in nodes:
        copies.append(type(n)())
        copies[-1].CopyFrom(n)
    del graph.node[:]
    graph.node.extend(copies)


def _rename(graph, r):  # type: ignore[no-untyped-def]
    """One value called something else, everywhere."""
    known = sorted({o for n in graph.node for o in n.output if o} | {i.name for i in graph.input})
    if not known:
        return
    old, new = r.choice(known), r.choice(NAMES)
    for n in graph.node:
        n.name = r.choice((n.name, new))
        for names in (n.input, n.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.name == old:
            info.name = new


CHANGES = (_operator, _input, _output, _attribute, _attribute, _new_attribute, _weight, _weight, _type, _order, _rename)
