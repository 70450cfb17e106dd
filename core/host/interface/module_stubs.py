"""Type stubs of `Module`, `Param`, `Model`, `Session` and the layers, read from their source.

Names, defaults, bases and docstrings come from the code; the types come from the tables below, by the name of a
parameter or attribute, or from its default. A public method whose result is in no table is an error, so that none is
left without types. `python3 dev.py check --fix` writes the files.
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
from .declarations import ARRAY_LIKE, CORE, SIZES, TYPES

HEAD = '"""{} (written by emberlet.host.interface.module_stubs)."""\n# fmt: off\n# ruff: noqa\n\n'

_RECORD = "Record | Burnpack | Mapping[str, Tensor]"
_DEVICE = "Backend | str | None"
# Parameters and attributes by name: as functions have them, except that layers take tensors only. `| None` is added
# where the default is None.
_TYPES = {
    **{name: type for name, type in TYPES.items() if type != ARRAY_LIKE},
    **dict.fromkeys(
        "cell context hidden key lengths mask mask_attn mask_pad memory memory_mask_attn memory_mask_pad offset "
        "query target targets tensor value weight weights x x1 x2 var anchor positive negative "
        "log_probs logits".split(),
        "Tensor",
    ),
    "activation": "Callable[[Tensor], Tensor]", "clip": "float", "content": "Content", "data": "Any", "dims": "Any",
    "examples": "Any", "fan_in": "int", "fan_out": "int", "fans": "tuple[int, int]", "flag": "bool",
    "function": "Callable[[Tensor], Tensor]", "groups": "int", "id": "ParamId", "in_channels": "int",
    "init": "Callable[[tuple[int, ...], DType, Backend], Tensor]", "initializer": "Initializer", "layer": "Linear",
    "layout": "str", "mapper": "Any", "metadata": "Mapping[str, str]", "name": "str", "names": "str",
    "normalized_shape": SIZES, "out_channels": "int", "outer": "DisplaySettings", "pad_tokens": "Sequence[int]",
    "path": "str | PathLike[str]", "precision": "str", "record": _RECORD, "require_grad": "bool",
    "scale_factor": "float | Sequence[float]", "scaling": "Any", "scheme": "Any", "seq": "int", "seq_k": "int",
    "seq_q": "int", "shape": "Sequence[int]", "smoothing": "float", "spaces": "int", "state": "Any", "std": "float",
    "visitor": "Any", "modules": "Any", "unflattened_size": "Sequence[int]", "dim": "int", "upscale_factor": "int",
    "downscale_factor": "int", "k": "float", "p": "float", "norm_type": "float", "threshold": "float",
    "lower": "float", "upper": "float", "distance_function": "Callable[[Tensor, Tensor], Tensor]", "margin": "float",
    **dict.fromkeys("input_lengths target_lengths logit_lengths".split(), "Tensor | Sequence[int]"),
}  # fmt: skip
_OWN_TYPES = {
    "AttentionOutput.weights": "Tensor | None", "Constant.value": "float", "Content.value": "Any",
    "CrossEntropyLoss.weights": "Sequence[float]", "Gru.state": "Tensor", "BiGru.state": "Tensor",
    "Rnn.state": "RnnState", "BiRnn.state": "RnnState", "Lstm.state": "LstmState", "BiLstm.state": "LstmState",
    "GateController.bias": "bool", "_Numbered.layer": "Module", "ModuleDict.layer": "Module",
    "_Numbered.key": "Any", "Sequential.key": "Any", "_Pad.padding": SIZES, "_ConstantPad.padding": SIZES,
    "_ConstantPad.value": "float", "Upsample.size": SIZES, "LocalResponseNorm.size": "int",

    "Threshold.value": "float", "AdaptiveAvgPool.output_size": "int | Sequence[int | None]",
    "Upsample.align_corners": "bool",
    "TransformerEncoder.cache": "list[AttentionCache]", "TransformerEncoderLayer.cache": "AttentionCache | None",
    "TransformerDecoder.cache": "list[tuple[AttentionCache, AttentionCache]]",
    "TransformerDecoderLayer.cache": "tuple[AttentionCache, AttentionCache] | None",
    "MultiHeadAttention.cache": "AttentionCache", "Conv.bias": "Tensor | None",
    "ConvTranspose.bias": "Tensor | None", "ParamId.value": "int", "ParamId.other": "object", "Param.memo": "Any",
    "AttentionCache.key": "Tensor | None", "AttentionCache.value": "Tensor | None",
    "TransformerDecoderLayer.mask_pad": "Tensor | None", "TransformerDecoderLayer.mask_attn": "Tensor | None",
    "TransformerDecoderLayer.memory_mask_pad": "Tensor | None",
    "TransformerDecoderLayer.memory_mask_attn": "Tensor | None",
    "Module.loss": "Callable[..., Any]", "Module.optimizer": "Any",
    "Module.source": "Any", "Module.level": "str | int", "Module.capacity": "int | None",
    "Module.initial": "Mapping[str, Any] | None", "Module.dims": "Mapping[str, int] | None",
    "Module.state": "Sequence[Sequence[Any]] | None", "Session.model": "Module", "Session.capacity": "int | None",
    "Session.initial": "Mapping[str, Any] | None", "Session.dims": "Mapping[str, int] | None",
    "Session.state": "Sequence[Sequence[Any]] | None", "Session.n": "int", "Session.new": "int",
    "Module.target": "str | PathLike[str] | IO[bytes]", "Module.filter": "Filtering",
    "Module.rename": "Renaming | None", "Module.contiguous": "bool | None", "Module.format": "str | None",
    "Module.skip_enum_variants": "bool | None", "Module.shard": "int | None", "Module.layout": "str | None",
}  # fmt: skip
# Results by class and method, or by method.
_RESULTS = {
    "append": "Any", "extend": "Any", "_Numbered.__iter__": "Iterator[Any]", "ModuleDict.__iter__": "Iterator[str]",
    "__getitem__": "Any", "__setitem__": "None", "__contains__": "bool", "ModuleDict.update": "None",
    "ModuleDict.keys": "Any", "ModuleDict.values": "Any", "ModuleDict.items": "Any",
    "AttentionCache.add": "tuple[Tensor, Tensor]", "MultiHeadAttention.forward": "AttentionOutput",
    "Gru.forward": "tuple[Tensor, Tensor]", "BiGru.forward": "tuple[Tensor, Tensor]",
    "Lstm.forward": "tuple[Tensor, LstmState]", "BiLstm.forward": "tuple[Tensor, LstmState]",
    "Rnn.forward": "tuple[Tensor, RnnState]", "BiRnn.forward": "tuple[Tensor, RnnState]",
    "Gru.gates": "tuple[GateController, ...]", "Lstm.gates": "tuple[GateController, ...]",
    "Rnn.gates": "tuple[GateController, ...]",
    "TransformerEncoder.new_cache": "list[AttentionCache]",
    "TransformerDecoder.new_cache": "list[tuple[AttentionCache, AttentionCache]]",
    "Module.forward": "Any", "forward": "Tensor", "make": "Tensor", "convolve": "Tensor",
    "weight_shape": "tuple[int, ...]", "causal_mask": "Tensor", "pad_mask": "Tensor", "fans_of": "tuple[int, int]",
    "Initializer.__call__": "Tensor", "__len__": "int", "__init__": "None", "__repr__": "str", "__str__": "str",
    "__eq__": "bool", "__hash__": "int", "named_params": "Iterator[tuple[str, Param]]", "params": "list[Param]",
    "num_params": "int", "visit": "None", "Module.map": "Self", "no_grad": "Self", "train": "Self", "valid": "Self",
    "backends": "list[Backend]", "Module.to": "Self", "Param.to": "Self", "Module.clone": "Self", "fork": "Self",
    "compile": "_Compiled[_R]", "compile_step": "Any", "session": "Session", "to_record": "Record",
    "load_record": "Self", "save_file": "int", "load_file": "Self",
    "load_from": "LoadResult", "quantize_weights": "list[str]", "from_linear": "QuantizedLinear",
     "save_into": "int",
    "custom_settings": "DisplaySettings | None", "custom_content": "Content | None",
    "from_file": "Self", "from_bytes": "Self", "from_embedded": "Self", "default": "Self",
    "uninitialized": "Param", "zeros": "Param", "val": "Tensor", "set": "Self", "Param.shape": "tuple[int, ...]",
    "Param.dtype": "DType", "Param.backend": "Backend", "loaded": "Tensor", "is_initialized": "bool",
    "Param.id": "ParamId", "size": "int", "Param.clone": "Param", "__copy__": "Param", "__deepcopy__": "Param",
    "Param.map": "Self", "init_mapper": "Self", "load_mapper": "Self", "save_mapper": "Self",
    "set_require_grad": "Self", "saved": "Tensor", "__reduce__": "Any",
    "Session.step": "Any", "Session.step_async": "Any", "Session.state": "Tensor", "Session.reset": "Self",
    "Session.snapshot": "int", "Session.rewind": "Self", "Session.positions": "Tensor",
    "Session.attention_mask": "Tensor",
}  # fmt: skip
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
# Attributes whose type cannot be read from their value in `__init__`.
_ATTRIBUTES = {
    "activation": "Callable[[Tensor], Tensor]", "d_head": "int", "normalized_shape": "tuple[int, ...]",
    "pad_tokens": "list[int]", "padding": "str | tuple[tuple[int, int], ...]", "require_grad": "bool",
    "capacity": "int | None", "stride": "tuple[int, ...]", "value": "int", "weights": "Any",
    "output_size": "tuple[int | None, ...]",
}  # fmt: skip


def _result(owner: str, name: str) -> str:
    found = _RESULTS.get(f"{owner}.{name}") or _RESULTS.get(name)
    if found is None:
        raise KeyError(f"module_stubs.py does not say what {owner}.{name} returns; add it to _RESULTS")
    return found


def _type(owner: str, name: str, default: ast.expr | None) -> str:
    """The type of a parameter, by its name or its default."""
    if isinstance(default, ast.Constant) and isinstance(default.value, bool):
        return "bool"
    found = _OWN_TYPES.get(f"{owner}.{name}")
    if found is None:
        found = _TYPES.get(name)
    if found is None and default is not None and not _is_none(default):
        value = ast.literal_eval(default)
        found = type(value).__name__ if isinstance(value, (bool, int, float, str)) else None
    if found is None and name.startswith(("d_", "n_", "num_", "max_")):
        found = "int"
    if found is None:
        raise KeyError(f"module_stubs.py does not say the type of {owner}'s {name!r}; add it to _TYPES")
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
            return _OWN_TYPES.get(f"{owner}.{name}", "None")
        return type(value.value).__name__
    if isinstance(value, ast.ListComp):
        return f"list[{_value(owner, name, value.elt, of)}]"
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        called = value.func.id
        if called in _FACTORIES:
            return "Param"
        if called in layers.homes():
            return called
        if called == "per_axis":
            return "tuple[int, ...]"
    return _ATTRIBUTES.get(name, "Any")


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
        + "from ..tensor import Tensor\nfrom .display import Content, DisplaySettings\n"
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
