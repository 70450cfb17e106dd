"""Type stubs for editors and type checkers: what `emberlet`, `emberlet.functional` and `Tensor` find by name at run
time, written out. `python -m emberlet.host.stubs` rewrites core/__init__.pyi, core/functional/__init__.pyi and
core/tensor.pyi; a test compares them with what it would write.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import dtypes
from ..names import all_families

CORE = Path(__file__).resolve().parents[1]
HEAD = '"""{} (written by emberlet.host.stubs)."""\n# fmt: off\n# ruff: noqa\n\n'

# Parameters and results whose name says their type; everything else is Any.
_TYPES = {
    "axis": "int | tuple[int, ...] | None", "keepdims": "bool", "dtype": "DType | str | None",
    "device": "Backend | str | None", "backend": "Backend | str | None", "copy": "bool | None",
    "epsilon": "float", "bias": "Any", "seed": "int | None",
}  # fmt: skip
# Functions that do not return one tensor.
_RESULTS = {
    "item": "Any", "into_scalar": "Any", "tolist": "Any", "to_data": "TensorData", "into_data": "TensorData",
    "is_require_grad": "bool", "broadcast_shapes": "tuple[int, ...]", "can_cast": "bool", "isdtype": "bool",
    "result_type": "DType", "finfo": "Any", "iinfo": "Any", "manual_seed": "None", "setitem": "None",
    "item_async": "Any", "to_data_async": "TensorData", "format_tensor": "str", "describe_tensor": "str",
    "format_with": "str",
}  # fmt: skip
_SEQUENCES = ("unstack", "split", "chunk", "meshgrid", "broadcast_arrays", "nonzero", "var_mean", "lstm", "gru", "rnn")
_SEQUENCE_ENDS = ("_with_indices",)


def _result(name: str) -> str:
    if name in _RESULTS:
        return _RESULTS[name]
    if name in _SEQUENCES or name.endswith(_SEQUENCE_ENDS):
        return "Sequence[Tensor]"
    home = _home(name)
    annotated = inspect.signature(home).return_annotation if callable(home) else inspect.Signature.empty
    if isinstance(annotated, str):
        return annotated
    return "Tensor" if _returns_one_tensor(home) else "Any"


def _returns_one_tensor(function: Any) -> bool:
    """Whether the docstring's family is one of plain tensor functions."""
    module = getattr(function, "__module__", "")
    return module.rsplit(".", 1)[-1] in _PLAIN


_PLAIN = {
    "activations", "arithmetic", "arrays", "comparison", "convolution", "convolution_by_rank", "fills",
    "dense", "encoding", "selection", "index_tuples", "interpolation", "joining", "products", "rearranging",
    "normalization", "pooling", "max_pooling", "rectifiers", "over_axes", "reshaping", "rounding", "sorting",
    "transcendental", "transfer", "transposed_convolution", "conversion", "einsum", "draws",
}  # fmt: skip


def _home(name: str) -> Any:
    for family, groups in all_families().items():
        if name in " ".join(groups).split():
            module = "emberlet.display" if family == "display" else f"emberlet.functional.{family}"
            return getattr(import_module(module), name)
    raise KeyError(name)


def _plain(text: str) -> str:
    """A type with builtins spelled out: `bool`, `int` and `float` are functions of this library too."""
    return re.sub(r"\b(bool|int|float|str|tuple)\b", r"builtins.\1", text)


def _parameter(p: inspect.Parameter) -> str:
    star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    text = f"{star}{p.name}: {_plain(_TYPES.get(p.name, 'Any'))}"
    return text + (" = ..." if p.default is not p.empty else "")


def _signature(function: Any, method: bool) -> str:
    parts: list[str] = []
    keyword_only = False
    for n, p in enumerate(inspect.signature(function).parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(part.startswith("*") for part in parts):
                parts.append("*")
        parts.append("self" if method and n == 0 else _parameter(p))
        keyword_only = keyword_only or p.kind is p.VAR_POSITIONAL
    return "(" + ", ".join(parts) + ")"


def _definition(name: str, method: bool) -> str:
    function = _home(name)
    keyword = "async def" if inspect.iscoroutinefunction(function) else "def"
    indent = "    " if method else ""
    if inspect.isclass(function):
        return f"{indent}{name}: Any"
    return f"{indent}{keyword} {name}{_signature(function, method)} -> {_plain(_result(name))}: ..."


# Classes among the functions, and where they are
_CLASSES = {"QuantScheme": ".quantized.tensors", "Quantized": ".quantized.tensors"}


def _functions() -> list[str]:
    found = [n for methods, functions in all_families().values() for n in (methods + " " + functions).split()]
    return sorted(n for n in found if not n.startswith("_") and n not in _CLASSES)


def functional() -> str:
    """The text of core/functional/__init__.pyi."""
    lines = [_definition(n, False) for n in _functions()]
    return (
        HEAD.format("Types of emberlet.functional")
        + "import builtins\nfrom collections.abc import Sequence\nfrom typing import Any\n\n"
        + "from ..backend import Backend\nfrom ..data import TensorData\nfrom ..dtypes import DType\n"
        + "from ..tensor import Tensor\n"
        + "".join(f"from {home} import {n} as {n}\n" for n, home in _CLASSES.items())
        + "\n"
        + "\n".join(lines)
        + "\n"
    )


def tensor() -> str:
    """The text of core/tensor.pyi."""
    methods = sorted(n for group, _ in all_families().values() for n in group.split() if n not in dir(object))
    lines = ["    " + _plain(line) for line in _TENSOR.splitlines()]
    lines += [_definition(n, True) for n in methods]
    return (
        HEAD.format("Types of Tensor")
        + "import builtins\nfrom collections.abc import Iterator, Sequence\nfrom typing import Any\n\n"
        + "from .backend import Backend\nfrom .data import TensorData\nfrom .dtypes import DType\n\n"
        + "class Tensor:\n"
        + "\n".join(lines)
        + "\n"
    )


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
_TENSOR = "\n".join(
    [
        "data: Any", "dtype: DType", "shape: tuple[int, ...]", "backend: Backend",
        "def __init__(self, data: Any, dtype: DType, shape: tuple[int, ...], backend: Backend) -> None: ...",
        "@staticmethod",
        "def from_data(data: Any, dtype: DType | str | None = ..., backend: Backend | str | None = ...) -> Tensor: ...",
        *[f"@property\ndef {n}(self) -> {t}: ..." for n, t in
          (("ndim", "int"), ("size", "int"), ("nbytes", "int"), ("device", "str"), ("T", "Tensor"), ("mT", "Tensor"))],
        *[f"def __{n}__(self, other: Any) -> Tensor: ...\ndef __r{n}__(self, other: Any) -> Tensor: ..."
          for n in _OPERATORS],
        *[f"def __{n}__(self, other: Any) -> Tensor: ..." for n in ("lt", "le", "gt", "ge")],
        *[f"def __{n}__(self, other: Any) -> Tensor: ...  # type: ignore[override]" for n in ("eq", "ne")],
        *[f"def __{n}__(self) -> Tensor: ..." for n in ("neg", "pos", "abs", "invert")],
        "def __getitem__(self, key: Any) -> Tensor: ...", "def __setitem__(self, key: Any, value: Any) -> None: ...",
        "def __iter__(self) -> Iterator[Tensor]: ...", "def __len__(self) -> int: ...",
        "def __bool__(self) -> bool: ...",
        "def __int__(self) -> int: ...", "def __float__(self) -> float: ...", "def __index__(self) -> int: ...",
        "def __hash__(self) -> int: ...",
        "def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> Any: ...",
        "def __dlpack__(self, **options: Any) -> Any: ...", "def __dlpack_device__(self) -> tuple[int, int]: ...",
        "def __array_namespace__(self, *, api_version: str | None = ...) -> Any: ...",
    ]
)  # fmt: skip


def package() -> str:
    """The text of core/__init__.pyi."""
    names = [n for n in _functions() if n not in dtypes.BY_NAME and n not in ("float", "int")]
    types = [d.name for d in dtypes.ALL]
    return (
        HEAD.format("Types of emberlet")
        + "from typing import Any\n\n"
        + "from . import errors as errors, functional as functional, nn as nn\n"
        + "from .backend import Backend as Backend, get_backend as get_backend, register as register\n"
        + "from .backend import set_default_backend as set_default_backend\n"
        + "from .config import Config as Config\nfrom .data import TensorData as TensorData\n"
        + "from .display import check_closeness as check_closeness, print_options as print_options\n"
        + "from .display import set_print_options as set_print_options\nfrom .dtypes import DType as DType\n"
        + "from .errors import *\n"
        + "".join(f"from .functional import {n} as {n}\n" for n in (*_CLASSES, *names))
        + "from .module import Module as Module\nfrom .param import Param as Param\n"
        + "from .param.identity import ParamId as ParamId\nfrom .tensor import Tensor as Tensor\n\n"
        + "__version__: str\n__array_api_version__: str\n"
        + "".join(f"{n}: float\n" for n in ("e", "inf", "nan", "pi"))
        + "newaxis: None\n"
        + "".join(f"{n}: DType\n" for n in types)
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
    """The text of core/backend/__init__.pyi: a backend has its primitives, and what it overrides or was given."""
    return (
        HEAD.format("Types of emberlet.backend")
        + "from collections.abc import Callable\nfrom typing import Any\n\n_factories: dict[str, Any]\n\n"
        + _BACKEND
    )


FILES = {
    "backend/__init__.pyi": backend,
    "__init__.pyi": package,
    "functional/__init__.pyi": functional,
    "tensor.pyi": tensor,
}


def main() -> int:
    """Write the three files."""
    for name, text in FILES.items():
        (CORE / name).write_text(text(), encoding="utf-8")
        print(CORE / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
