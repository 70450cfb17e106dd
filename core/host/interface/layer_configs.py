"""The Configs of the built-in layers, made from their constructors: `nn.LinearConfig(8, 16).init(backend)` is
`nn.Linear(8, 16, backend=backend)`."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ...config import Config

# Parameters of constructors that are not settings of the layer: where it is, and how its weights begin.
_NOT_SETTINGS = ("backend", "dtype", "initializer")
_TYPES = {"int": int, "float": float, "bool": bool, "str": str, "None": None}


class LayerConfig(Config):
    """The settings of a layer of `emberlet.nn`: the arguments of its constructor, in their order and with their
    defaults, without backend, dtype and initializer."""

    FIELDS: Any = ()

    def init(self, backend: Any = None, dtype: Any = None, initializer: Any = None) -> Any:
        """The layer, on `backend`. dtype, initializer: as the layer's constructor takes them. Raises ArgumentError for
        one that it does not take."""
        layer = getattr(import_module("emberlet.nn"), type(self).__name__.removesuffix("Config"))
        more = {"backend": backend, "dtype": dtype, "initializer": initializer}
        settings: dict[str, Any] = {name: getattr(self, name) for name in type(self).FIELDS}
        taken = inspect.signature(layer.__init__).parameters
        return layer(**settings, **{k: v for k, v in more.items() if v is not None or k in taken})


@cache
def _annotations() -> dict[str, dict[str, Any]]:
    """Class -> parameter -> type, of the constructors in core/nn/__init__.pyi, where the type is a simple one."""
    stub = Path(__file__).resolve().parents[2] / "nn" / "__init__.pyi"
    if not stub.exists():
        return {}
    found: dict[str, dict[str, Any]] = {}
    bases: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            bases[node.name] = [ast.unparse(b) for b in node.bases]
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    found[node.name] = {a.arg: _type(a.annotation) for a in method.args.args if a.annotation}
    for name in bases:
        base = name
        while base not in found and bases.get(base):
            base = bases[base][0]
        found.setdefault(name, found.get(base, {}))
    return found


def _type(annotation: ast.expr | None) -> Any:
    parts = ast.unparse(annotation).split(" | ") if annotation else []
    if not parts or not all(part in _TYPES for part in parts):
        return Any
    kind: Any = _TYPES[parts[0]]
    for part in parts[1:]:
        kind = kind | _TYPES[part]
    return kind


@cache
def config_of(name: str) -> type[LayerConfig] | None:
    """The class called `name` ("LinearConfig"), or None if there is no such layer with settings."""
    nn = import_module("emberlet.nn")
    layer = name.removesuffix("Config")
    if layer == name or layer not in dir(nn):
        return None
    owner = getattr(nn, layer)
    if not inspect.isclass(owner) or not hasattr(owner, "forward"):
        return None
    bare = owner.__init__ is object.__init__
    parameters = [] if bare else list(inspect.signature(owner.__init__).parameters.values())[1:]
    parameters = [p for p in parameters if p.name not in _NOT_SETTINGS and p.kind is p.POSITIONAL_OR_KEYWORD]
    known = _annotations().get(layer, {})
    body: dict[str, Any] = {p.name: p.default for p in parameters if p.default is not p.empty}
    body |= {
        "__module__": "emberlet.nn", "__doc__": f"The settings of `nn.{layer}`.", "__qualname__": name,
        "__annotations__": {p.name: known.get(p.name, Any) for p in parameters},
        "FIELDS": tuple(p.name for p in parameters),
    }  # fmt: skip
    return type(name, (LayerConfig,), body)
