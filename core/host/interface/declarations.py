"""The declarations of the functional layer: the comment `#: …` above each function, its decorators and its signature.

    #: method; array API; ONNX ReduceSum; Burn sum, sum_dim; axis: int | None -> Tensor
    @composite
    def sum(x, axis=None, *, keepdims=False): …

The comment's first word is the kind: a `method` (also of Tensor), a `function`, an `operator` (only of Tensor) or a
`class`. Then come the standards it follows, the types of parameters that neither name nor default reveals (TYPES), and
the type of its result, by default a Tensor. A function without such a comment is not public.
Tables, stubs and docs/functions.md are generated from the declarations: `python3 dev.py check --fix`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

CORE = Path(__file__).resolve().parents[2]
FUNCTIONAL = CORE / "functional"
KINDS = ("method", "function", "operator", "class")
STANDARDS = ("array API", "ONNX", "com.microsoft", "ai.onnx.ml", "PyTorch", "Burn", "JAX", "NumPy", "Python")

ARRAY_LIKE = "TensorLike"
SIZES = "int | Sequence[int]"
PADDING = "int | str | Sequence[int | tuple[int, int]]"
# Parameters that mean the same wherever they stand. `| None` is added where the default is None; a default tells
# the type of the rest.
TYPES = {
    **dict.fromkeys(
        "x x1 x2 a b c weight bias mask indices values value condition prepend append q k v w r initial_h initial_c "
        "peepholes sequence_lens past past_key past_value kv_lengths score_bias scale zero_point a_zero_point "
        "b_zero_point a_scale b_scale x_scale w_scale y_scale x_zero_point w_zero_point y_zero_point r_scale "
        "r_zero_point scales zero_points group_indices table updates update write_indices target gate boxes scores "
        "mean var h g t cos sin position_ids state decay rois batch_indices grid theta offset signal vectors decisions "
        "total past total_length last_key sink q_norm k_norm sorter rows lengths".split(),
        ARRAY_LIKE,
    ),
    **dict.fromkeys("kernel_size stride dilation output_size output_padding repetitions axes".split(), SIZES),
    "padding": PADDING,
    "shape": SIZES,
    "axis": "int",
    "dtype": "DType | str",
    "softmax_dtype": "DType | str",
    "device": "Backend | str",
    "backend": "Backend | str",
    "copy": "bool",
    "keepdims": "bool",
    "epsilon": "float",
    "seed": "int",
    "key": "Any",
    "arrays": "Sequence[TensorLike]",
    "alphas": "Sequence[float]",
    "betas": "Sequence[float]",
    "activations": "Sequence[str | Callable[[Tensor], Tensor]]",
    "num_heads": "int",
    "kv_num_heads": "int",
    "window": "int",
    "block_size": "int",
    "bits": "int",
    "columns": "int",
    "size": SIZES,
    "length": "int",
    "periodic": "bool",
    "p": "float",
    "alpha": "float",
    "beta": "float",
    "classes": "int",
}
_AXES = "int | Sequence[int]"
_LITERALS = {bool: "bool", int: "int", float: "float", str: "str", tuple: "Sequence[int]"}


def _is_none(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Constant) and default.value is None


def _literal_type(default: ast.expr) -> str | None:
    """The type of a default: of a literal, a tuple, or a sum of numbers such as -1 and 1 / 6."""
    try:
        return _LITERALS.get(type(ast.literal_eval(default)))
    except ValueError:
        return "float"


class DeclarationError(Exception):
    """A declaration that cannot be read, with its file and line."""


@dataclass(frozen=True)
class Declaration:
    """The declaration of one public function."""

    name: str
    family: str  # the module below emberlet.functional, "display" for emberlet.display
    kind: str
    standards: tuple[str, ...]
    types: dict[str, str]
    result: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign = field(repr=False)
    where: str

    @property
    def decorators(self) -> set[str]:
        return {ast.unparse(d) for d in getattr(self.node, "decorator_list", ())}

    @cached_property
    def asks_itself(self) -> bool:
        """Whether the function looks up its own name in the backend, after its checks."""
        return any(
            isinstance(n, ast.Call)
            and ast.unparse(n.func) == "operation"
            and isinstance(n.args[1], ast.Constant)
            and n.args[1].value == self.name
            for n in ast.walk(self.node)
        )

    @property
    def overridable(self) -> bool:
        """Whether a backend's method of the same name overrides the function."""
        return "composite" in self.decorators or self.asks_itself

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        if isinstance(self.node, ast.Assign):
            return ""
        doc = " ".join((ast.get_docstring(self.node) or "").split("\n\n")[0].split())
        return re.split(r"(?<=[.:])\s(?=[A-Z])|:$", doc)[0].rstrip(".:")

    def parameters(self) -> list[Parameter]:
        if isinstance(self.node, ast.Assign | ast.ClassDef):
            return []
        a = self.node.args
        positional = [*a.posonlyargs, *a.args]
        defaults = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)
        out = [Parameter(p.arg, d, "") for p, d in zip(positional, defaults, strict=True)]
        if a.vararg:
            out.append(Parameter(a.vararg.arg, None, "*"))
        elif a.kwonlyargs:
            out.append(Parameter("*", None, "mark"))
        out += [Parameter(p.arg, d, "keyword") for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        if a.kwarg:
            out.append(Parameter(a.kwarg.arg, None, "**"))
        return out

    def type_of(self, parameter: Parameter) -> str:
        """The type of a parameter. Raises DeclarationError if it is undeclared."""
        default = parameter.default
        known = TYPES.get(parameter.name)
        found = self.types.get(parameter.name)
        if found is None and known is not None and ARRAY_LIKE not in known:
            found = _AXES if parameter.name == "axis" and _is_none(default) else known
        if found is None and default is not None and not _is_none(default):
            found = _literal_type(default)
        found = found or known
        if found is None:
            raise DeclarationError(f"{self.where}: {self.name} does not declare the type of {parameter.name!r}")
        return f"{found} | None" if _is_none(default) and "None" not in found and found != "Any" else found

    def tensors(self) -> list[str]:
        """The parameters that take tensors."""
        return [p.name for p in self.parameters() if p.kind != "mark" and "Tensor" in self.type_of(p)]


@dataclass(frozen=True)
class Parameter:
    name: str
    default: ast.expr | None
    kind: str  # "" positional, "keyword", "*", "**", "mark" (the bare * of a signature)


def families() -> Iterator[tuple[str, Path]]:
    """(family, file) of every file of the functional layer, and of the display."""
    yield "display", CORE / "display.py"
    for file in sorted(FUNCTIONAL.rglob("*.py")):
        yield ".".join(file.relative_to(FUNCTIONAL).with_suffix("").parts), file


def read() -> list[Declaration]:
    """Every declaration, family by family in the order of the files."""
    return [d for family, file in families() for d in read_file(family, file)]


def read_file(family: str, file: Path) -> list[Declaration]:
    source = file.read_text(encoding="utf-8")
    lines = source.split("\n")
    out = []
    for node in ast.parse(source).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        comment: list[str] = []
        while first >= 2 and lines[first - 2].startswith("#:"):
            comment.insert(0, lines[first - 2][2:].strip())
            first -= 1
        if comment:
            where = f"{file.relative_to(CORE.parent)}:{first}"
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign):
                raise DeclarationError(f"{where}: a declaration stands above a function or class")
            out.append(_declaration(family, node, " ".join(comment), where))
    return out


def _declaration(
    family: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign, text: str, where: str
) -> Declaration:
    said, arrow, result = text.partition(" -> ")
    kind, *clauses = [c.strip() for c in said.split(";") if c.strip()]
    if kind not in KINDS:
        raise DeclarationError(f"{where}: a declaration begins with one of {', '.join(KINDS)}, found {kind!r}")
    standards, types = [], {}
    for clause in clauses:
        name, colon, told = clause.partition(": ")
        if colon and name.isidentifier():
            types[name] = told.strip()
        elif clause.startswith(STANDARDS):
            standards.append(clause)
        else:
            raise DeclarationError(f"{where}: {clause!r} is neither a standard ({', '.join(STANDARDS)}) nor a type")
    name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name
    return Declaration(name, family, kind, tuple(standards), types, result.strip() if arrow else "Tensor", node, where)
