"""docs/reference.md: every function and layer with its signature, made from the type stubs, and an example that is
computed here. `help` shows the examples too, from core/host/interface/examples.py.

`EMBERLET_WRITE_DOCS=1 pytest tests/docs/test_reference.py` writes both anew.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import fft, linalg, nn
from emberlet.host.interface import stubs
from emberlet.host.interface.declarations import Declaration
from emberlet.tensor import Tensor
from support.neighboring_calls import SCOPE
from support.rows import every
from support.tables_in_docs import shows

from tools.paths import ROOT

DOCS = ROOT / "docs" / "reference.md"
BEGIN, END = "<!-- functions: begin (written by tests/docs/test_reference.py) -->", "<!-- functions: end -->"
FUNCTIONS = [d for d in stubs.declared() if d.kind != "operator"]
# Of functions that no call in tests/core/calls shows.
EXAMPLES = {
    "imag": "imag(X(3))", "median_with_indices": "median_with_indices(X(2, 3), 1)", "manual_seed": "manual_seed(42)",
    "setitem": "setitem(X(2, 3), 0, 1.0)", "view_as_complex": "view_as_complex(X(3, 2))",
    "view_as_real": "view_as_real(view_as_complex(X(3, 2)))", "from_dlpack": "from_dlpack(X(2, 3))",
    "grad": "grad(lambda x: sum(x * x))(X(3))", "value_and_grad": "value_and_grad(lambda x: sum(x * x))(X(3))",
    "jvp": "jvp(lambda x: x * x, [X(3)], [P(3)])", "QuantScheme": "QuantScheme('int8')",
    "atleast_1d": "atleast_1d(X())", "column_stack": "column_stack([X(3), X(3)])", "conj": "conj(X(3))",
    "cumprod": "cumprod(X(2, 3), 1)", "dstack": "dstack([X(2, 3), X(2, 3)])", "histogram": "histogram(X(9), 4)",
    "hstack": "hstack([X(2, 3), X(2, 1)])", "into_data": "into_data(X(3))", "into_scalar": "into_scalar(V(2))",
    "real": "real(X(3))", "to": "to(X(3), 'python')", "to_data": "to_data(X(3))",
    "to_device": "to_device(X(3), 'python')", "istft": "istft(stft(X(1, 16), 4, None, 8), 4, None, 8)",
}  # fmt: skip
# These are shown in the guides: they need gradients, a file or an event loop.
IN_GUIDES = set("backward check_grads decode_image from_inner grad_remove inner item_async move set_require_grad "
                "to_data_async vjp Quantized".split())  # fmt: skip


def calls() -> dict[str, str]:
    """The shortest call of each function, of those in tests/core/calls; one within another where there is no better."""
    found: dict[str, str] = {}
    inner: dict[str, str] = {}
    for file in sorted((ROOT / "tests" / "core" / "calls").glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                whole: Any = ast.parse(line, mode="eval").body
                for node in ast.walk(whole):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                        # of a layer, one that calls it
                        outermost = node is (whole.func if isinstance(node.func, ast.Attribute) else whole)
                        name, kept = ast.unparse(node.func), found if outermost else inner
                        kept[name] = min(kept.get(name, line), line, key=len)
    return inner | found | EXAMPLES


MATRIX = "V([[4.0, 2.0], [2.0, 3.0]])"
OF_PACKAGES = {
    **{f"linalg.{name}": f"linalg.{name}({MATRIX})" for name in (
        "cholesky diagonal eigh eigvalsh inv lu matrix_norm matrix_rank norm pinv qr slogdet svd svdvals "
        "trace").split()},
    "linalg.cosine_similarity": "linalg.cosine_similarity(X(3), X(3))", "linalg.lstsq": "linalg.lstsq(X(3, 2), X(3))",
    "linalg.matrix_power": f"linalg.matrix_power({MATRIX}, 3)",
    "linalg.solve": f"linalg.solve({MATRIX}, V([8.0, 8.0]))",
    **{f"fft.{name}": f"fft.{name}(X(4))" for name in "fft ifft rfft irfft hfft ihfft fftshift ifftshift".split()},
    **{f"fft.{name}": f"fft.{name}(X(2, 4))" for name in "fftn ifftn rfftn irfftn".split()},
    "fft.fftfreq": "fft.fftfreq(4)", "fft.rfftfreq": "fft.rfftfreq(4)",
}  # fmt: skip
# Of layers that no call in tests/core/calls shows.
PADDED = {"Circular": "12", "Constant": "123", "Reflection": "12", "Replication": "123", "Zero": "123"}
LAYERS = {
    **{f"nn.{n}": f"nn.{n}()(X(3))" for n in (
        "Celu HardShrink Hardtanh Identity LogSigmoid Mish RRelu Relu6 SoftShrink Softmin Softsign "
        "Tanhshrink").split()},
    **{f"nn.{n}": f"nn.{n}()(P(2, 3), P(2, 3))" for n in (
        "BCELoss BCEWithLogitsLoss KLDivLoss L1Loss MSELoss SmoothL1Loss").split()},
    **{f"nn.{kind}Pad{d}d": f"nn.{kind}Pad{d}d(1{', 0.5' * (kind == 'Constant')})(X(1, 2{', 3' * int(d)}))"
       for kind, axes in PADDED.items() for d in axes},
    "nn.AdaptiveMaxPool3d": "nn.AdaptiveMaxPool3d(1)(X(1, 1, 2, 3, 2))", "nn.Flatten": "nn.Flatten()(X(2, 3, 4))",
    "nn.LPPool2d": "nn.LPPool2d(2, 2)(X(1, 1, 2, 4))", "nn.LPPool3d": "nn.LPPool3d(2, 2)(X(1, 1, 2, 4, 2))",
    "nn.ModuleDict": "nn.ModuleDict({'one': nn.Relu()})['one'](X(3))",
    "nn.NLLLoss": "nn.NLLLoss()(X(2, 3), V([0, 2]))",
    "nn.ModuleList": "len(nn.ModuleList([nn.Linear(3, 2), nn.Relu()]))",
    "nn.Unflatten": "nn.Unflatten(1, (2, 3))(X(2, 6))",
    "nn.Sequential": "nn.Sequential(nn.Linear(3, 2), nn.Relu())(X(1, 3))", "nn.Param": "nn.Param(X(3)).val()",
    "nn.TripletMarginWithDistanceLoss": "nn.TripletMarginWithDistanceLoss()(X(2, 3), P(2, 3), X(2, 3))",
    "nn.Upsample": "nn.Upsample(scale_factor=2)(X(1, 1, 2, 3))", "nn.AttentionCache": "nn.AttentionCache()",
}  # fmt: skip
CALLS = calls() | OF_PACKAGES | LAYERS
PACKAGES = {"linalg": linalg, "fft": fft, "nn": nn}


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    emberlet.set_default_backend("numpy")
    yield
    emberlet.set_default_backend(None)


def result(call: str) -> str:
    """What an example gives, in a few words."""
    with np.errstate(all="ignore"):
        return told(eval(call, {**SCOPE, **PACKAGES}))


def told(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name} {value.shape}"
    if isinstance(value, (tuple, list)):
        shown = ", ".join(told(v) for v in value)
        return f"({shown})" if len(shown) < 100 else f"{len(value)} of {told(value[0])}"
    plain = isinstance(value, (bool, int, type(None))) or (isinstance(value, str) and len(value) < 60)
    return repr(value) if plain else type(value).__name__.lstrip("_")


def signature(d: Declaration) -> str:
    if d.kind == "class":
        return d.name
    general = stubs._definition(d, False).rpartition("@overload\n")[2]  # the last of several is the general one
    text = general.removeprefix("async ").removeprefix("def ").removesuffix(": ...")
    return re.sub(r"builtins\.|\b_(?=[A-Z])", "", text)


def of_package(package: str) -> Iterator[tuple[str, str, str]]:
    """(name, signature, first sentence of the docstring) of what a package has, from its stub."""
    space = PACKAGES[package]
    body = ast.parse((stubs.CORE / package / "__init__.pyi").read_text(encoding="utf-8")).body
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name not in dir(space):
            continue
        if isinstance(node, ast.ClassDef):
            found = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
            if not found or f"{package}.{node.name}" not in CALLS:
                continue
            text = "(" + ast.unparse(found[0].args).removeprefix("self").removeprefix(", ") + ")"
        else:
            text = f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns) if node.returns else ''}"
        said = " ".join((inspect.getdoc(getattr(space, node.name)) or "").split("\n\n")[0].split())
        yield node.name, node.name + text, re.split(r"(?<=[.:])\s(?=[A-Z])|:$", said)[0].rstrip(".:")


@every("call", list((OF_PACKAGES | LAYERS).values()))
def test_every_function_of_linalg_and_fft_and_layer_has_an_example_that_computes(call: str) -> None:
    assert result(call)


def test_every_layer_has_an_example() -> None:
    layers = {name for name in dir(nn) if isinstance(getattr(nn, name), type)}
    # Bases, and what layers return.
    bases = {"AttentionOutput", "Conv", "ConvTranspose", "Group", "Initializer", "Model", "Module", "ParamId"}
    assert {name for name in layers if f"nn.{name}" not in CALLS} <= bases


@every("d", [d for d in FUNCTIONS if d.name not in IN_GUIDES])
def test_every_function_has_an_example_that_computes(d: Declaration) -> None:
    assert result(CALLS[d.name])


@every("d", [d for d in FUNCTIONS if d.result.startswith("Tensor[")])
def test_a_result_has_the_dtype_that_is_declared(d: Declaration) -> None:
    kind = {"bool": bool, "int": int, "float": float}[d.result[7:-1]]
    found = eval(CALLS[d.name], dict(SCOPE))
    assert type(found.flatten()[0].item()) is kind


def page() -> str:
    lines = []
    for family in sorted({d.family.split(".")[0] for d in FUNCTIONS}):
        lines += ["", f"## {family.replace('_', ' ')}", ""]
        for d in FUNCTIONS:
            if d.family.split(".")[0] == family:
                call = CALLS.get(d.name)
                example = "" if call is None or d.name in IN_GUIDES else f" `{call}` gives {result(call)}."
                lines.append(f"- `{signature(d)}`  \n  {d.summary.rstrip('.')}.{example}")
    for package in PACKAGES:
        lines += ["", f"## {'layers' if package == 'nn' else 'emberlet.' + package}", ""]
        for name, text, said in of_package(package):
            call = CALLS.get(f"{package}.{name}")
            example = "" if call is None else f" `{call}` gives {result(call)}."
            lines.append(f"- `{text}`  \n  {said}.{example}")
    return "\n".join(lines) + "\n\n"


def as_code(call: str) -> str:
    """An example as someone would type it: X, P and V are shorthands of these pages."""

    class Plain(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            kind = node.func.id if isinstance(node.func, ast.Name) else ""
            if kind in ("X", "P"):
                drawn = ast.Name({"X": "normal", "P": "uniform"}[kind], ast.Load())
                made = ast.Call(drawn, [ast.Tuple(node.args, ast.Load())], [])
                dtype = [k.value for k in node.keywords]
                return ast.Call(ast.Name("astype", ast.Load()), [made, *dtype], []) if dtype else made
            if kind == "V":
                return ast.Call(ast.Name("asarray", ast.Load()), node.args, node.keywords)
            return node

    return ast.unparse(Plain().visit(ast.parse(call, mode="eval")))


def examples() -> str:
    """The text of core/host/interface/examples.py."""
    shown = sorted(name for name in CALLS if name not in IN_GUIDES and "S(" not in CALLS[name])
    known = {d.name for d in FUNCTIONS} | set(OF_PACKAGES) | {f"nn.{name}" for name in dir(nn)}
    lines = [f"{name}: {as_code(CALLS[name])}" for name in shown if name in known]
    return EXAMPLES_HEAD + "\n".join(line.replace("\\", "\\\\") for line in lines) + '\n"""\n'


EXAMPLES_HEAD = '''"""Examples of functions and layers, which `help` shows (written by tests/docs/test_reference.py)."""

# ruff: noqa: E501
TEXT = """
'''
EXAMPLES_FILE = stubs.CORE / "host" / "interface" / "examples.py"


def test_help_shows_an_example_of_each() -> None:
    if os.environ.get("EMBERLET_WRITE_DOCS"):
        EXAMPLES_FILE.write_text(examples(), encoding="utf-8")
    assert EXAMPLES_FILE.read_text(encoding="utf-8") == examples()
    for found in (emberlet.sum, emberlet.ones((2,)).argmax, nn.Linear, linalg.solve, fft.rfft):
        assert re.search(r"Example: .*\w\(", inspect.getdoc(found) or "")


@every("call", [as_code(CALLS[d.name]) for d in FUNCTIONS if d.name in CALLS and d.name not in IN_GUIDES])
def test_an_example_runs_as_it_is_typed(call: str) -> None:
    names = {name: getattr(emberlet.functional, name) for name in dir(emberlet.functional)}
    with np.errstate(all="ignore"):
        eval(call, {**names, "F": emberlet.functional, "nn": nn, "S": slice, "nan": np.nan, "inf": np.inf,
                    "emberlet": emberlet, **PACKAGES})  # fmt: skip


def test_the_page_shows_these_signatures_and_examples() -> None:
    shows(DOCS, BEGIN, page(), END)
