"""The names of a function's variables, which follow from the operations that compute and use them; and values without a
variable."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.codegen.emit.polish import polished
from emberlet.codegen.emit.statement import render
from emberlet.codegen.emit.variables import Hints
from support.expressions import block

# A program in which a variable that an inner function reads would be called what that function calls something else.
INNER = [
    ("a parameter", """
        def step(x):
            return F.add(x, p1)
        return F.add(step(self.a(p1)), p1)
     """),
    ("a variable", """
        v1 = self.q_proj(p1)
        def step(y):
            query = F.tanh(y)
            return F.add(query, query, v1)
        return F.add(step(p1), v1, v1)
     """),
    ("its name", """
        v1 = self.k_proj(p1)
        def key(y):
            return F.add(y, v1)
        return F.add(key(p1), key(v1), v1)
     """),
]  # fmt: skip


@pytest.mark.parametrize(("about", "source"), INNER, ids=[about for about, _ in INNER])
def test_an_inner_function_reads_the_variables_that_it_read(about: str, source: str) -> None:
    layer = SimpleNamespace(a=lambda x: 3 * x, q_proj=lambda x: 5 * x, k_proj=lambda x: 7 * x)
    functions = SimpleNamespace(add=lambda *xs: sum(xs), tanh=lambda x: 11 * x)
    program = block(textwrap.dedent(source))

    def result(parameters: Any, body: Any) -> Any:
        scope: dict[str, Any] = {"F": functions}
        exec(f"def run(self, {', '.join(parameters)}):\n" + "\n".join(render(body, 4)), scope)
        return scope["run"](layer, 1)

    assert result(*polished(["p1"], program, Hints())) == result(["p1"], program)
