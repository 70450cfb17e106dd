"""What exporters and other tools do to the names and the weights of a model."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .changed_nodes import copied

AWKWARD = {  # words that no field or class may have as they are
    "stages": "class", "blocks": "forward", "conv1": "backend", "conv2": "nn", "fc1": "00", "fc2": "parameters",
    "norm": "F", "gamma": "__init__", "se": "größe-2", "head": "INPUTS", "bn": "self", "shortcut": "x" * 60,
}  # fmt: skip


def weights(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The initializers of floating point with more than one element."""
    held = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    return [t for t in held if np.prod(t.dims) > 1]


def with_weight_names(model: onnx.ModelProto, rename: Callable[[str], str]) -> onnx.ModelProto:
    made = copied(model)
    names: dict[str, str] = {}
    for t in weights(made):
        new, n = rename(t.name), 1
        while new in names.values():
            new, n = f"{rename(t.name)}_{n}", n + 1
        names[t.name] = new
    for t in made.graph.initializer:
        t.name = names.get(t.name, t.name)
    for node in made.graph.node:
        node.input[:] = [names.get(i, i) for i in node.input]
    return made


def with_node_names(model: onnx.ModelProto, rename: Callable[[str], str]) -> onnx.ModelProto:
    made = copied(model)
    for node in made.graph.node:
        node.name = rename(node.name)
    return made


def tied(model: onnx.ModelProto, chosen: Callable[[onnx.TensorProto, onnx.TensorProto], bool]) -> onnx.ModelProto:
    """Tensors of one shape stored once, under the name of the first, where `chosen` says so."""
    made = copied(model)
    first: dict[tuple[int, ...], onnx.TensorProto] = {}
    names: dict[str, str] = {}
    for t in weights(made):
        like = first.setdefault(tuple(t.dims), t)
        if like is not t and chosen(like, t):
            names[t.name] = like.name
    for node in made.graph.node:
        node.input[:] = [names.get(i, i) for i in node.input]
    kept = [t for t in made.graph.initializer if t.name not in names]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


def equal_vectors(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """As before training: all vectors of one length are stored once."""
    return tied(model, lambda first, other: len(other.dims) == 1)


def some_equal(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    return tied(model, lambda first, other: draw.random() < 0.4)


def one_block(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Every layer of one kind has the same weights."""
    return tied(model, lambda first, other: first.name.rpartition(".")[2] == other.name.rpartition(".")[2])


def without_matrices(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """An exporter that stores matrices transposed loses their names; the nodes have none either."""
    matrices = {t.name for t in weights(model) if len(t.dims) == 2}
    made = with_weight_names(model, lambda name: f"onnx::MatMul_{len(name)}" if name in matrices else name)
    return with_node_names(made, lambda name: "")


def transposed(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Matrices are stored as checkpoints have them, and turned by a node."""
    made = copied(model)
    turns: list[onnx.NodeProto] = []
    for t in weights(made):
        if len(t.dims) == 2:
            t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(numpy_helper.to_array(t).T), t.name))
            turns.append(helper.make_node("Transpose", [t.name], [f"t{len(turns)}"], "", perm=[1, 0]))
    turned = {n.input[0]: n.output[0] for n in turns}
    for node in made.graph.node:
        node.input[:] = [turned.get(i, i) for i in node.input]
        node.name = ""
    for n in reversed(turns):
        made.graph.node.insert(0, n)
    return made


def nodes_alone(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    return with_weight_names(model, lambda name: f"w{len(name)}")


def weights_alone(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    return with_node_names(model, lambda name: "")


def some_names(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Some nodes and weights have lost their names."""
    made = with_node_names(model, lambda name: name if draw.random() < 0.6 else "")
    kept = {t.name for t in weights(made) if draw.random() < 0.6}
    return with_weight_names(made, lambda name: name if name in kept else f"val_{len(name)}")


def underscores(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """TensorFlow and older exporters join the words of a weight's name."""
    made = with_weight_names(model, lambda name: name.replace(".", "_"))
    return with_node_names(made, lambda name: name.replace("/", "_").strip("_"))


def paddle(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Layers are numbered over the whole model."""
    known: dict[str, str] = {}

    def name(old: str) -> str:
        layer, _, part = old.rpartition(".")
        number = known.setdefault(layer, f"{'conv2d' if 'conv' in layer else 'linear'}_{len(known)}")
        return f"{number}.{'b' if part == 'bias' else 'w'}_{0 if part in ('weight', 'bias') else 1}"

    return with_node_names(with_weight_names(model, name), lambda name: name.rpartition("/")[2])


def in_metadata(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """PyTorch's newer exporter lists the modules and their classes in each node's metadata."""
    made = copied(model)
    for node in made.graph.node:
        parts = node.name.strip("/").split("/")[:-1]
        paths = [".".join(parts[: n + 1]) for n in range(len(parts))]
        lists = "torch.nn.modules.container.ModuleList"
        kinds = [
            lists if p in ("stages", "blocks") else f"net.My{p.strip('0123456789').title() or 'Item'}" for p in parts
        ]
        node.name = f"node_{node.op_type}_{draw.randrange(1000)}"
        entry = node.metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.name_scopes", repr(["", *paths, node.name])
        entry = node.metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.class_hierarchy", repr(["net.Net", *kinds, node.op_type])
    return made


def wrapped(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """The whole model but its head is one module of another."""
    made = with_node_names(model, lambda name: name if name.startswith("/head") else "/model" + name)
    return with_weight_names(made, lambda name: name if name.startswith("head") else "model." + name)


def called(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Nodes are in a module of a tool, of which no weight's name speaks."""
    return with_node_names(model, lambda name: "/wrapper/net" + name)


def awkward(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    change = lambda text, mark: mark.join(AWKWARD.get(p, p) for p in text.split(mark))  # noqa: E731
    made = with_node_names(model, lambda name: change(name, "/"))
    return with_weight_names(made, lambda name: change(name, "."))


def fills(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """Many weights are one number, as before training."""
    made = copied(model)
    for t in weights(made):
        if draw.random() < 0.6:
            number = draw.choice([0.0, 1.0, 0.5])
            t.CopyFrom(numpy_helper.from_array(np.full(tuple(t.dims), number, np.float32), t.name))
    return made


def half(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    made = copied(model)
    for t in made.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    for o in made.graph.output:
        o.type.Clear()
    return made


def other_lists(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """The items of a list are numbered from another number, or with a gap, or have words."""
    names = draw.choice(
        [["1", "2", "3", "4"], ["0", "2", "3", "7"], ["first", "second", "third", "last"], ["00", "01", "2", "3"]]
    )
    old = re.compile(r"(?<=blocks[./])(\d)")
    change = lambda name: old.sub(lambda m: names[int(m[0])], name)  # noqa: E731
    return with_node_names(with_weight_names(model, change), change)


KINDS: dict[str, Callable[[onnx.ModelProto, random.Random], onnx.ModelProto]] = {
    f.__name__: f
    for f in (
        equal_vectors, some_equal, one_block, without_matrices, transposed, nodes_alone, weights_alone, some_names,
        underscores, paddle, in_metadata, wrapped, called, awkward, fills, half, other_lists,
    )
}  # fmt: skip


def exported(model: onnx.ModelProto, kind: str, seed: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The model after one change, and after another one drawn from the rest."""
    draw = random.Random(f"{kind} {seed}")
    made = KINDS[kind](model, draw)
    yield kind, made
    other = draw.choice([k for k in KINDS if k != kind])
    yield f"{kind}, {other}", KINDS[other](made, draw)
