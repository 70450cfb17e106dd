"""Generates, from the declarations of the functional layer (declarations.py), the tables of names, the type stubs and
docs/functions.md. `python3 dev.py check --fix` writes them, and `check` fails where one is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from ... import dtypes
from .declarations import CORE, Declaration, DeclarationError, Parameter, read

HEAD = '"""{} (written by emberlet.host.interface.stubs)."""\n# fmt: off\n# ruff: noqa\n\n'
DOCS = CORE.parent / "docs" / "functions.md"


@cache
def declared() -> tuple[Declaration, ...]:
    """Every declaration, public ones by name, then the operators'."""
    return tuple(sorted(read(), key=lambda d: (d.kind == "operator", d.name)))


def _public() -> list[Declaration]:
    return [d for d in declared() if d.kind != "operator"]


# -- the tables of names ---------------------------------------------------------------------------------------------


def _table(families: list[str]) -> str:
    lines = []
    for family in families:
        here = sorted((d for d in declared() if d.family == family), key=lambda d: d.node.lineno)
        methods = " ".join(d.name for d in here if d.kind == "method")
        functions = " ".join(d.name for d in here if d.kind != "method")
        entry = f'    "{family}": ("{methods}", "{functions}"),'
        if len(entry) > 120:
            entry = f'    "{family}": (\n{_words(methods)},\n{_words(functions)},\n    ),'
        lines.append(entry)
    return "{\n" + "\n".join(lines) + "\n}\n"


def _words(words: str) -> str:
    parts = [f'"{line} "' for line in textwrap.wrap(words, 106)] or ['""']
    parts[-1] = parts[-1].replace(' "', '"')
    return textwrap.indent("\n".join(parts), " " * 8)


def _families(everyday: bool) -> list[str]:
    # Families that devices load are files beside functional/__init__.py; all others are in packages.
    return sorted({d.family for d in declared() if ("." not in d.family and d.family != "display") == everyday})


_NAMES_HEAD = '''"""Which family holds which function, the long table (written by emberlet.host.interface.stubs).

Written from the declarations in core/functional. lookup.py repeats the families that small networks need, so that a
microcontroller loads this table for other functions only.
"""

# fmt: off
# family -> (functions that are also Tensor methods, functions that are not)
FAMILIES = '''


def names() -> str:
    """The text of core/names.py."""
    return (
        _NAMES_HEAD + _table(sorted(_families(everyday=True) + _families(everyday=False))) + "# fmt: on\n" + _NAMES_TAIL
    )


_NAMES_TAIL = '''

def all_names():
    """Every public functional name, sorted."""
    names = []
    for methods, functions in FAMILIES.values():
        names += methods.split() + functions.split()
    return sorted([n for n in names if not n.startswith("_")])


def method_names():
    """Every name that is a Tensor method too, sorted."""
    return sorted([n for methods, _ in FAMILIES.values() for n in methods.split()])
'''


def lookup() -> str:
    """The text of core/lookup.py with the short table of the families that lie beside functional/__init__.py."""
    text = (CORE / "lookup.py").read_text(encoding="utf-8")
    return re.sub(r"(?s)(?<=EVERYDAY = )\{.*?\n\}\n", lambda _: _table(_families(everyday=True)), text, count=1)


# -- the type stubs --------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """A type with builtins spelled out: `bool`, `int` and `float` are functions of this library too."""
    text = re.sub(r"\b(TensorLike|FloatInfo|IntInfo|Unique\w+Result)\b", r"_\1", text)
    return re.sub(r"\b(bool|int|float|str|tuple|list|dict|slice)\b", r"builtins.\1", text)


def _parameter(d: Declaration, p: Parameter) -> str:
    if p.kind == "mark":
        return "*"
    star = p.kind if p.kind in ("*", "**") else ""
    default = ""
    if p.default is not None:
        default = f" = {ast.unparse(p.default)}" if isinstance(p.default, ast.Constant) else " = ..."
    return f"{star}{p.name}: {_plain(d.type_of(p))}{default}"


def _definition(d: Declaration, method: bool) -> str:
    if d.name == "astype":  # a dtype that the type checker knows tells what `item` gives
        head, dtype, tail = _signature(d, method).partition("DType | builtins.str")
        forms = [
            f"{head}_{t.title()} | _{t.title()}Name{tail[: -len('Tensor: ...')]}Tensor[builtins.{t}]: ..."
            for t in _KINDS
        ]
        return "\n".join(f"{' ' * 4 * method}@overload\n{form}" for form in [*forms, head + dtype + tail])
    if method and d.result == "bool | int | float | str":
        return _signature(d, method).partition(" -> ")[0] + " -> _Item: ..."
    return _signature(d, method)


def _signature(d: Declaration, method: bool) -> str:
    keyword = "async def" if isinstance(d.node, ast.AsyncFunctionDef) else "def"
    indent = "    " if method else ""
    parameters = d.parameters()
    parts = ["self"] * method + [_parameter(d, p) for p in parameters[method:]]
    return f"{indent}{keyword} {d.name}({', '.join(parts)}) -> {_plain(d.result)}: ..."


_RESULTS = """
class _FloatInfo:
    bits: builtins.int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    smallest_normal: builtins.float
    dtype: DType

class _IntInfo:
    bits: builtins.int
    max: builtins.int
    min: builtins.int
    dtype: DType

class _UniqueAllResult(builtins.tuple[Tensor, Tensor, Tensor, Tensor]):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor

class _UniqueCountsResult(builtins.tuple[Tensor, Tensor]):
    values: Tensor
    counts: Tensor

class _UniqueInverseResult(builtins.tuple[Tensor, Tensor]):
    values: Tensor
    inverse_indices: Tensor

"""


def functional() -> str:
    """The text of core/functional/__init__.pyi."""
    return (
        HEAD.format("Types of emberlet.functional")
        + "import builtins\nfrom collections.abc import Callable, Mapping, Sequence\n"
        + "from typing import Any, overload\n\n"
        + "from ..backend import Backend\nfrom ..tensor_data import TensorData\nfrom ..dtypes import DType\n"
        + f"from ..tensor import Tensor, _TensorLike, {', '.join(f'_{t.title()}, _{t.title()}Name' for t in _KINDS)}\n"
        + "".join(f"from .{d.family} import {d.name} as {d.name}\n" for d in _public() if d.kind == "class")
        + _RESULTS
        + "\n".join(_definition(d, False) for d in _public() if d.kind != "class")
        + "\n"
    )


def tensor() -> str:
    """The text of core/tensor.pyi."""
    lines = ["    " + _plain(line) if line else "" for line in _TENSOR.splitlines()]
    lines += [_definition(d, True) for d in _public() if d.kind == "method" and d.name not in dir(object)]
    return (
        HEAD.format("Types of Tensor")
        + "import builtins\nfrom collections.abc import Callable, Iterator, Sequence\n"
        + "from typing import Any, Generic, Literal, Protocol, TypeAlias, overload\n\n"
        + "from typing_extensions import TypeVar\n\n"
        + "from .backend import Backend\nfrom .tensor_data import TensorData\nfrom .dtypes import DType\n"
        + "from .functional.quantized.tensors import Quantized, QuantScheme\n"
        + "from .host.tensors.named_axes import NamedTensor\n\n"
        + "class _Array(Protocol):\n    @property\n    def __array__(self) -> Any: ...\n\n"
        + "# What `item` gives: Tensor[float] is a tensor of a float dtype, Tensor one of any dtype.\n"
        + '_Item = TypeVar("_Item", default=Any, covariant=True)\n'
        + "".join(_dtype_types())
        + "# What a function takes where it wants a tensor.\n"
        + "_TensorLike: TypeAlias = Tensor | builtins.complex | Sequence[Any] | _Array\n\n"
        + "class Tensor(Generic[_Item]):\n"
        + "\n".join(lines)
        + "\n"
    )


# What Python's numbers and strings the elements are -> the dtypes of which they are.
_KINDS = {
    "bool": ["bool"],
    "int": [d.name for d in dtypes.ALL if d.is_integer],
    "float": [d.name for d in dtypes.ALL if d.is_float],
    "complex": ["complex64", "complex128"],
    "str": ["string"],
}


def _dtype_types() -> list[str]:
    """Types of the dtypes, and of their names, that tell what `item` gives."""
    names = [f"_{t.title()}Name: TypeAlias = Literal[{', '.join(map(repr, _KINDS[t]))}]\n" for t in _KINDS]
    return [*names, *(f"class _{t.title()}(DType): ...\n" for t in _KINDS), "\n"]


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_TENSOR = "\n".join(
    [
        "def __init__(self, data: Any, dtype: DType, shape: tuple[int, ...], backend: Backend) -> None: ...",
        "@staticmethod",
        "def from_data(data: Any, dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> Tensor: ...",
        *[f"@property\ndef {n}(self) -> {t}: ..." for n, t in
          (("data", "Any"), ("dtype", "DType"), ("shape", "tuple[int, ...]"), ("backend", "Backend"),
           ("ndim", "int"), ("size", "int"), ("nbytes", "int"), ("device", "str"), ("T", "Tensor"), ("mT", "Tensor"))],
        *[f"def __{n}__(self, other: TensorLike) -> Tensor: ...\ndef __r{n}__(self, other: TensorLike) -> Tensor: ..."
          for n in _OPERATORS],
        *[f"def __{n}__(self, other: TensorLike) -> Tensor[bool]: ..." for n in ("lt", "le", "gt", "ge")],
        *[f"def __{n}__(self, other: Any) -> Tensor[bool]: ...  # type: ignore[override]" for n in ("eq", "ne")],
        *[f"def __{n}__(self) -> Tensor: ..." for n in ("neg", "pos", "abs", "invert")],
        "def __getitem__(self, key: Any) -> Tensor: ...",
        "def __setitem__(self, key: Any, value: TensorLike) -> None: ...",
        "def __iter__(self) -> Iterator[Tensor]: ...", "def __len__(self) -> int: ...",
        "def __bool__(self) -> bool: ...",
        "def __int__(self) -> int: ...", "def __float__(self) -> float: ...", "def __index__(self) -> int: ...",
        "def __hash__(self) -> int: ...",
        "def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> Any: ...",
        "def __complex__(self) -> complex: ...", "def named(self, *names: str) -> NamedTensor: ...",
        "def _repr_html_(self) -> str: ...",
        "def __dlpack__(self, **options: Any) -> Any: ...", "def __dlpack_device__(self) -> tuple[int, int]: ...",
        "def __array_namespace__(self, *, api_version: str | None = ...) -> Any: ...",
    ]
)  # fmt: skip


def package() -> str:
    """The text of core/__init__.pyi."""
    names = [d.name for d in _public() if d.name not in dtypes.BY_NAME and d.name not in ("float", "int")]
    return (
        HEAD.format("Types of emberlet")
        + "from typing import Any\n\n"
        + "from . import errors as errors, fft as fft, functional as functional, linalg as linalg, nn as nn\n"
        + "from .backend import Backend as Backend, get_backend as get_backend, register as register\n"
        + "from .backend import set_default_backend as set_default_backend\n"
        + "from .config import Config as Config\nfrom .tensor_data import TensorData as TensorData\n"
        + "from .display import check_closeness as check_closeness, print_options as print_options\n"
        + "from .display import set_print_options as set_print_options\nfrom .dtypes import DType as DType\n"
        + "from .errors import *\n"
        + "".join(f"from .functional import {n} as {n}\n" for n in names)
        + "from .host.tensors.showing import show as show\n"
        + "from .module import Module as Module\nfrom .param import Param as Param\n"
        + "from .param.identity import ParamId as ParamId\n"
        + f"from .tensor import Tensor as Tensor, {', '.join(f'_{t.title()}' for t in _KINDS)}\n\n"
        + "__version__: str\n__array_api_version__: str\n"
        + "".join(f"{n}: float\n" for n in ("e", "inf", "nan", "pi"))
        + "newaxis: None\n"
        + "".join(f"{n}: _{t.title()}\n" for t in _KINDS for n in _KINDS[t])
        + "\ndef __array_namespace_info__() -> Any: ...\n"
    )


_BACKEND = """class Backend:
    name: str
    index: int
    OVERRIDES: tuple[str, ...]
    def __init__(self, index: int = ...) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

def register(name: str, factory: Callable[[int], Backend]) -> None: ...
def extend(backend_class: Any, name: str | None = ...) -> Callable[[Any], Any]: ...
def operation(backend: Backend, name: str) -> Any: ...
def names() -> list[str]: ...
def available() -> list[str]: ...
def get_backend(backend: Backend | str | None = ...) -> Backend: ...
def set_default_backend(backend: Backend | str | None) -> None: ...
"""


def backend() -> str:
    """The text of core/backend/__init__.pyi: a backend's primitives, overrides and added operations."""
    return (
        HEAD.format("Types of emberlet.backend")
        + "from collections.abc import Callable\nfrom typing import Any\n\n_factories: dict[str, Any]\n\n"
        + _BACKEND
    )


# -- the document ----------------------------------------------------------------------------------------------------

_DOCS = """# Functions

Every function of `emberlet.functional`; each is also in `emberlet` itself. *Method*: `x.name(…)` is the same function.
*Overridable*: if a backend has a method of that name and signature, the backend computes it
([protocol](../core/backend/protocol.py)); the other functions call a backend's primitives. `python3 dev.py check --fix`
writes this page.

| function | method | follows | overridable | what it gives |
|---|---|---|---|---|
"""


def document() -> str:
    """The text of docs/functions.md."""
    rows = []
    for d in _public():
        said = d.summary.replace("|", "\\|")
        marks = ["✓" if d.kind == "method" else "", "✓" if d.overridable else ""]
        rows.append(f"| `{d.name}` | {marks[0]} | {'; '.join(d.standards)} | {marks[1]} | {said} |")
    return _DOCS + "\n".join(rows) + "\n"


# -- writing them ----------------------------------------------------------------------------------------------------

FILES: dict[Path, Callable[[], str]] = {
    CORE / "names.py": names,
    CORE / "lookup.py": lookup,
    CORE / "__init__.pyi": package,
    CORE / "backend" / "__init__.pyi": backend,
    CORE / "functional" / "__init__.pyi": functional,
    CORE / "tensor.pyi": tensor,
    DOCS: document,
}


def outdated(*, fix: bool = False) -> list[Path]:
    """The generated files that are out of date; `fix` writes them."""
    declared.cache_clear()
    found = []
    for file, text in FILES.items():
        wanted = text()
        if not file.exists() or file.read_text(encoding="utf-8") != wanted:
            found.append(file)
            if fix:
                file.write_text(wanted, encoding="utf-8")
    return found


def main(args: Sequence[str] = ()) -> int:
    """Write the files that are out of date; with `--check`, only list them (exit status 1)."""
    check = "--check" in args
    try:
        found = outdated(fix=not check)
    except DeclarationError as error:
        print(error)
        return 1
    for file in found:
        print(f"{file.relative_to(CORE.parent)} {'is out of date' if check else 'is written anew'}")
    return int(check and bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
