"""docs/reference.md: every function with its signature, made from the type stubs, and an example that is computed here.

`EMBERLET_WRITE_DOCS=1 pytest tests/docs/test_reference.py` writes the page anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import emberlet
import numpy as np
import pytest
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
                whole = ast.parse(line, mode="eval").body
                for node in ast.walk(whole):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                        name, kept = node.func.id, found if node is whole else inner
                        kept[name] = min(kept.get(name, line), line, key=len)
    return inner | found | EXAMPLES


CALLS = calls()


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    emberlet.set_default_backend("numpy")
    yield
    emberlet.set_default_backend(None)


def result(call: str) -> str:
    """What an example gives, in a few words."""
    with np.errstate(all="ignore"):
        return told(eval(call, dict(SCOPE)))


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
    text = stubs._definition(d, False).removeprefix("async ").removeprefix("def ").removesuffix(": ...")
    return re.sub(r"builtins\.|\b_(?=[A-Z])", "", text)


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
    return "\n".join(lines) + "\n\n"


def test_the_page_shows_these_signatures_and_examples() -> None:
    shows(DOCS, BEGIN, page(), END)
