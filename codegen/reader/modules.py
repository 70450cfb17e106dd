"""Finds the module of the source model that a node came from, as exporters record it.

PyTorch's newer exporter lists the modules around a node in its metadata; its older one, Keras and Paddle put them into
the node's name, between slashes.
"""

from __future__ import annotations

import re

from ..ops import is_operator
from ..protobuf import NodeProto

Path = tuple[str, ...]
"""The names of the modules, outermost first; items of a list are numbers: ("layers", "0", "attention")."""

MAX_DEPTH = 64
MOST_PARTS = 4 * MAX_DEPTH  # the longest name; that of an inlined node contains the calls around it
_SCOPES, _KINDS, _NAMESPACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "namespace"
_QUOTED = re.compile(r"'([^']*)'")
_FUSION = re.compile(r"(/+\w*Fusion)+/*$")  # what onnxruntime's optimizer appends to the name of a node that it fuses
_CALL = re.compile(r"@\d+$")  # marks a module's second call


def written_scopes(node: NodeProto, kinds: dict[Path, str]) -> Path | None:
    """The path in a node's metadata, None if there is none. Fills in `kinds`, the classes along the path."""
    found = {p.key: p.value for p in node.metadata_props}
    if _SCOPES in found:
        names = _QUOTED.findall(found[_SCOPES])[:-1]
        classes = _QUOTED.findall(found.get(_KINDS, ""))[:-1]
    elif found.get("pkg.torch.onnx.namespace", found.get(_NAMESPACE)):
        text = found.get("pkg.torch.onnx.namespace") or found[_NAMESPACE]
        pairs = [part.partition(": ") for part in text.split("/")][:-1]
        names, classes = [p[0] for p in pairs], [p[2] for p in pairs]
    else:
        return None
    if any(n.startswith("_empty_nn_module_stack") for n in names):
        return None
    path: Path = ()
    for i, name in enumerate(names):
        path = _path(_CALL.sub("", name))
        if i < len(classes) and path not in kinds:
            kinds[path] = classes[i].rpartition(".")[2]
    return path if len(path) <= MAX_DEPTH else None


def _path(name: str) -> Path:
    return tuple(part for part in name.split(".") if part)


def named_scope(name: str) -> Path | None:
    """The path in a node's name: ("layer1", "0", "conv1") of "/layer1/layer1.0/conv1/Conv"."""
    name = name.removeprefix("fused ")  # onnxruntime's name for a product and its activation
    name = _FUSION.sub("", name)
    if "/" not in name:
        return None
    if ";" in name:
        return _most_named(name.split(";"))
    path: Path = ()
    if name.count("/") + name.count(".") > MOST_PARTS:
        return None
    for part in name.split("/")[:-1]:
        inner = _path(part)
        # A list item that is called directly repeats the list's name: "layer1/layer1.0".
        if len(inner) > 1 and path and inner[: len(inner) - 1] == path[-(len(inner) - 1) :]:
            inner = inner[len(inner) - 1 :]
        path += inner
    while path and _is_operator(path[-1]):  # a fused node's name contains those of its parts
        path = path[:-1]
    return path if len(path) <= MAX_DEPTH else None


def _most_named(names: list[str]) -> Path | None:
    """The module that most parts of a node's name point to: TensorFlow Lite joins the names of all operations that it
    fuses."""
    found: dict[Path, int] = {}
    for name in names:
        path = named_scope(name) or ()
        while path and path[-1][:1].isupper():  # an operation: Keras's module names are in lower case
            path = path[:-1]
        if path:
            found[path] = found.get(path, 0) + 1
    return max(found, key=lambda p: found[p]) if found else None


def _is_operator(part: str) -> bool:
    name = part.partition("_")[0]
    return is_operator(name) or name.endswith("Fusion")
