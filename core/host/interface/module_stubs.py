"""Type stubs of `Module`, `Param`, `Model`, `Session` and the layers, read from their source.

Names, defaults, bases and docstrings come from the code; the types come from the tables of module_types.py, by the name
of a parameter or attribute, or from its default. A public method whose result is in no table is an error, so that none
is left without types. `python3 dev.py check --fix` writes the files.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ... import model, module, param, session
from ...module import methods as module_methods
from ...param import identity
from ...param import methods as param_methods
from . import layers
from .declarations import CORE
from .module_types import ATTRIBUTES, OWN_TYPES, PARAMETERS, RESULTS

HEAD = '"""{} (written by emberlet.host.interface.module_stubs)."""\n# fmt: off\n# ruff: noqa\n\n'

_SPECIAL = ("__init__", "__len__", "__eq__", "__hash__", "__call__")
# Calling a module takes the arguments of its `forward` and returns its result. Compiled, it returns the same, and takes
# arrays as well.
_CALL = """
_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _HasForward(Protocol[_P, _R]):
    def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class _Compiled(Protocol[_R]):
    def __call__(self, *args: Any, **kwargs: Any) -> _R: ...
    def __getattr__(self, name: str) -> Any: ...

"""
_FACTORIES = ("weight", "constant")  # of core/nn/params.py


def _result(owner: str, name: str) -> str:
    found = RESULTS.get(f"{owner}.{name}") or RESULTS.get(name)
    if found is None:
        raise KeyError(f"module_types.py does not say what {owner}.{name} returns; add it to RESULTS")
    return found


def _type(owner: str, name: str, default: ast.expr | None) -> str:
    """The type of a parameter, by its name or its default."""
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        return "bool"
    found = OWN_TYPES.get(f"{owner}.{name}")
    if found is None:
        found = PARAMETERS.get(name)
    if found is None and default is not None and not _is_none(default):
        value = ast.literal_eval(default)
        found = type(value).__name__ if isinstance(value, (bool, int, float, str)) else None
    if found is None and name.startswith(("d_", "n_", "num_", "max_")):
        found = "int"
    if found is None:
        raise KeyError(f"module_types.py does not say the type of {owner}'s {name!r}; add it to PARAMETERS")
    return found + " | None" if _is_none(default) and "None" not in found else found


def _is_none(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Constant) and default.value is None


def _parameters(owner: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    parts: list[str] = []
    given = [*function.args.posonlyargs, *function.args.args]
    defaults = [None] * (len(given) - len(function.args.defaults)) + list(function.args.defaults)
    for argument, default in zip(given, defaults, strict=True):
        if argument.arg in ("self", "cls") and not parts:
            parts.append(argument.arg)
        else:
            parts.append(f"{argument.arg}: {_type(owner, argument.arg, default)}" + (" = ..." if default else ""))
    if function.args.vararg:
        parts.append(f"*{function.args.vararg.arg}: Any")
    elif function.args.kwonlyargs:
        parts.append("*")
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        parts.append(f"{argument.arg}: {_type(owner, argument.arg, default)}" + (" = ..." if default else ""))
    if function.args.kwarg:
        parts.append(f"**{function.args.kwarg.arg}: Any")
    return ", ".join(parts)


def _function(
    owner: str, function: ast.FunctionDef | ast.AsyncFunctionDef, indent: str, note: str = ""
) -> Iterator[str]:
    for decorator in function.decorator_list:
        yield f"{indent}@{ast.unparse(decorator)}"
    word = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    given, result = _parameters(owner, function), _result(owner, function.name)
    if "_R" in result:  # the result of the module's `forward`
        given = given.replace("self", "self: _HasForward[_P, _R]", 1)
    head = f"{indent}{word} {function.name}({given}) -> {result}:"
    doc = ast.get_docstring(function)
    if doc is None:
        yield head + " ..." + note
    else:
        yield head + note
        yield textwrap.indent(f'"""{doc}"""', indent + "    ").replace("\\", "\\\\")


def _attributes(owner: str, body: ast.ClassDef) -> Iterator[str]:
    """A line for each public attribute that `__init__` sets, typed by what it is set to."""
    seen = set()
    for init in body.body:
        if not isinstance(init, ast.FunctionDef) or not (init.name == "__init__" or init.name == "_windows"):
            continue
        given = init.args.args
        defaults = [None] * (len(given) - len(init.args.defaults)) + list(init.args.defaults)
        of = {a.arg: _type(owner, a.arg, d) for a, d in zip(given, defaults, strict=True) if a.arg != "self"}
        for node in ast.walk(init):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                name = target.attr if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" else "_"
                if not name.startswith("_") and name not in seen:
                    seen.add(name)
                    yield f"    {name}: {_value(owner, name, node.value, of)}"


def _value(owner: str, name: str, value: ast.expr, of: dict[str, str]) -> str:
    if isinstance(value, ast.Name) and value.id in of:
        return of[value.id]
    if isinstance(value, ast.IfExp):
        both = {_value(owner, name, value.body, of), _value(owner, name, value.orelse, of)}
        if "Any" not in both:
            return " | ".join(sorted(both, key=lambda t: (t == "None", t)))
    if isinstance(value, ast.Constant):
        if value.value is None:
            return OWN_TYPES.get(f"{owner}.{name}", "None")
        return type(value.value).__name__
    if isinstance(value, ast.ListComp):
        return f"list[{_value(owner, name, value.elt, of)}]"
    if f"{owner}.{name}" in OWN_TYPES:
        return OWN_TYPES[f"{owner}.{name}"]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        called = value.func.id
        if called in _FACTORIES:
            return "Param"
        if called in layers.homes():
            return called
        if called == "per_axis":
            return "tuple[int, ...]"
    return ATTRIBUTES.get(name, "Any")


def _class_name(owner: type) -> str:
    """The class's name, with a leading underscore if `emberlet.nn` does not export it."""
    hidden = owner.__module__.startswith("emberlet.nn.") and owner.__name__ not in layers.homes()
    return "_" + owner.__name__.lstrip("_") if hidden else owner.__name__


def _override(owner: type, name: str) -> str:
    """A comment that allows a layer's `forward` to take more than its base's."""
    theirs = next((base.__dict__[name] for base in owner.__mro__[1:] if name in base.__dict__), None)
    if name != "forward" or theirs in (None, module.Module.forward):
        return ""
    same = inspect.signature(owner.__dict__[name]) == inspect.signature(theirs)
    return "" if same else "  # type: ignore[override]"


def _class(owner: type, known: dict[str, Any]) -> Iterator[str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    bases = ", ".join(_class_name(base) for base in owner.__bases__ if base is not object)
    yield f"class {_class_name(owner)}{f'({bases})' if bases else ''}:"
    if doc := ast.get_docstring(body):
        yield textwrap.indent(f'"""{doc}"""', "    ").replace("\\", "\\\\")
    lines = list(_attributes(body.name, body))
    for node in body.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name == "__call__" and body.name == "Module":
            lines += ["    @property", "    def __call__(self: _HasForward[_P, _R]) -> Callable[_P, _R]: ..."]
        elif not node.name.startswith("_") or node.name in _SPECIAL:
            lines += _function(body.name, node, "    ", _override(owner, node.name))
    lines += known.get(body.name, [])
    yield from lines or ["    pass"]
    yield ""


def _attached(owner: str, methods: dict[str, Any]) -> Iterator[str]:
    """The methods that a class gets from its file of rarely used methods."""
    for name, value in methods.items():
        function: Any = value.fget if isinstance(value, property) else value
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        assert isinstance(body, ast.FunctionDef)
        body.name = name
        if isinstance(value, property):
            yield "    @property"
        yield from _function(owner, body, "    ")


def nn() -> str:
    """The text of core/nn/__init__.pyi."""
    lines: list[str] = []
    bases: dict[str, type] = {}
    for value in layers.homes().values():
        for base in reversed(inspect.getmro(value)) if inspect.isclass(value) else ():
            if base.__module__.startswith("emberlet.nn."):
                bases.setdefault(base.__name__, base)
    for owner in bases.values():
        lines += _class(owner, {})
    for name, value in layers.homes().items():
        if inspect.isfunction(value):
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
            assert isinstance(body, ast.FunctionDef)
            lines += [*_function("", body, ""), ""]
        elif value.__name__ != name:
            lines += [f"{name} = {value.__name__}", ""]
    return (
        HEAD.format("Types of emberlet.nn")
        + "from collections.abc import Callable, Mapping, Sequence\nfrom typing import Any\n\n"
        + "from ..backend import Backend\nfrom ..dtypes import DType\nfrom ..model import Model as Model\n"
        + "from ..module import Module as Module\nfrom ..param import Param as Param\n"
        + "from ..param.identity import ParamId as ParamId\nfrom ..tensor import Tensor\n\n"
        + "\n".join(lines)
    )


def module_stub() -> str:
    """The text of core/module/__init__.pyi."""
    return (
        HEAD.format("Types of emberlet.module")
        + "from collections.abc import Callable, Iterator, Mapping, Sequence\nfrom os import PathLike\n"
        + "from typing import IO, Any, ParamSpec, Protocol, Self, TypeVar\n\n"
        + "from ..backend import Backend\nfrom ..burnpack import Burnpack\nfrom ..param import Param\n"
        + "from ..session import Session\nfrom ..store import LoadResult\n"
        + "from ..store.filters import Filtering\nfrom ..store.naming import Renaming\n"
        + "from ..dtypes import DType\nfrom ..tensor import Tensor\nfrom .display import Content, DisplaySettings\n"
        + "from .record import Record\n"
        + _CALL
        + "\n".join(_class(module.Module, {"Module": list(_attached("Module", module_methods.METHODS))}))
        + "\ndef items(value: Any) -> list[tuple[Any, Any]]: ...\n"
        + "def leaves(\n    value: Any, kind: Any, prefix: str = ..., path: tuple[int, ...] = ...\n"
        + ") -> Iterator[tuple[str, Any, Any, Any]]: ...\n"
    )


def model_stub() -> str:
    """The text of core/model/__init__.pyi."""
    entries = "tuple[tuple[str, str, tuple[int | str | None, ...] | None], ...] | None"
    weights = ["    WEIGHTS: str | None", "    EMBEDDED: bytes | None"]
    weights += [f"    INPUTS: {entries}", f"    OUTPUTS: {entries}"]
    return (
        HEAD.format("Types of emberlet.model")
        + "from os import PathLike\nfrom typing import Any, Self\n\n"
        + "from ..backend import Backend\nfrom ..module import Module\n\n"
        + "\n".join(_class(model.Model, {"Model": weights}))
    )


def session_stub() -> str:
    """The text of core/session/__init__.pyi."""
    return (
        HEAD.format("Types of emberlet.session")
        + "from collections.abc import Mapping, Sequence\nfrom typing import Any, Self\n\n"
        + "from ..module import Module\nfrom ..tensor import Tensor\n\n"
        + "\n".join(_class(session.Session, {}))
        + "\ndef __getattr__(name: str) -> Any: ...\n"  # what the backends use
    )


def param_stub() -> str:
    """The text of core/param/__init__.pyi."""
    lines = list(_attached("Param", param_methods.METHODS))
    return (
        HEAD.format("Types of emberlet.param")
        + "from collections.abc import Callable, Sequence\nfrom typing import Any, Self\n\n"
        + "from ..backend import Backend\nfrom ..dtypes import DType\nfrom ..tensor import Tensor\n"
        + "from .identity import ParamId\n\n"
        + "\n".join(_class(param.Param, {"Param": lines}))
    )


def identity_stub() -> str:
    """The text of core/param/identity.pyi."""
    return HEAD.format("Types of emberlet.param.identity") + "\n".join(_class(identity.ParamId, {}))


FILES = {
    "nn/__init__.pyi": nn,
    "module/__init__.pyi": module_stub,
    "model/__init__.pyi": model_stub,
    "param/__init__.pyi": param_stub,
    "param/identity.pyi": identity_stub,
    "session/__init__.pyi": session_stub,
}


def outdated() -> dict[Path, str]:
    """{file: the text that it should have} of every stub that is out of date."""
    wanted = {CORE / name: text() for name, text in FILES.items()}
    return {
        file: text for file, text in wanted.items() if not file.exists() or file.read_text(encoding="utf-8") != text
    }


def main(arguments: list[str]) -> int:
    """List the stubs that are out of date or, with `--fix`, write them; returns 1 if any stays out of date."""
    found = outdated()
    for file, text in found.items():
        if "--fix" in arguments:
            file.write_text(text, encoding="utf-8")
        else:
            print(f"{file} is out of date; run `python3 dev.py check --fix`")
    return int(bool(found) and "--fix" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
