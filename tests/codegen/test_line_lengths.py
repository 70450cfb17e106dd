"""Long statements of every form are laid out in lines within the width, and keep their names."""

from __future__ import annotations

import ast
import re
from textwrap import dedent, indent

import pytest
from emberlet.codegen.emit.expression import WIDTH
from emberlet.codegen.emit.layout import laid_out
from emberlet.codegen.emit.module import defined, docstring
from emberlet.codegen.emit.statement import render
from support.expressions import block

FORMS = """
x = f(A, BB)
x = f(key=A, other=B)
x = f(g(A, B), key=B)
x = f.a.b(A).c(B)
x = f(A)[0].c(B, 1)
x = A[B]
x = A[B, :, 1]
x = f(A)[B, 0]
x = A[f(B, A), g(B, key=A)]
x = A[f(B, A):, 1]
x = A[f(B):]
x = A[:f(B)]
x = A[f(B):g(A):2]
x = A + B
x = f(A) + g(B)
x = f(A, B) @ g(B)
x = f(A) * (g(B) + A)
x = -f(A, B)
x = -(A + f(B))
x = A if f(B) else f(A)
x = f(A, B) if A else B
self.a = f(A, B) if p else None
self.a = f(A, B)
x = (f(A), B)
x = [f(A), B]
x = [f(A), B] + [f(B)]
x = [f(A, B)] + [f(A) for n in range(B)]
x = [f(n, A) for n in g(B)]
x = tuple(f(n, A) for n in g(B))
x, y = f(A), B
x, y = f(A, B)
x += f(A, B)
x = f(A).shape[0]
x = f(A < B, g(A)).attribute
x = {1: f(A), 2: B}
self.a = {1: f(A), 2: g(A, B)}
x = "A"
f(A, B)
f(A).append(g(B))
return f(A, B)
return f(A), B
return f(A), g(B), A
return A + f(B)
return [f(A, B)] + [f(B)]
f([g(A)] + [f(B), A])
x = [f(A)] + [B, A] + [f(B)]
if f(A, B): y = 1
if A < f(B): y = f(B)
while A: x = f(A, B)
for n in f(A, B): x = n
for n, m in zip(f(A), B): x = g(n, A, B)
def g(p): return f(A, B)
del a
""".strip().splitlines()
BLOCKS = {  # a form in a block
    "plain": "{}", "then": "if p:\n    {}\n    y = p", "otherwise": "if p:\n    y = p\nelse:\n    {}",
    "loop": "for q in p:\n    {}", "while": "while p:\n    {}", "inner": "def h(q):\n    {}",
    "deep": "for q in p:\n    if q:\n        {}",
}  # fmt: skip


def lines(form: str, length: int, around: str = "plain", margin: int = 8) -> list[str]:
    """The lines of a form whose names are so long that it would take a line of this length."""
    room = length - margin - len(form) + form.count("A") + form.count("B")
    for long in range(1, WIDTH):
        text = form.replace("A", "a" * long).replace("B", "b" * max(1, long // 2))
        if len(text) - len(form) + form.count("A") + form.count("B") >= room:
            break
    source = BLOCKS[around].replace("{}", text)
    return render(laid_out(block(source), margin), margin)


@pytest.mark.parametrize("around", BLOCKS)
def test_statements_are_laid_out_within_the_width(around: str) -> None:
    for form in FORMS:
        if around != "plain" and form.startswith("def"):
            continue
        shortest = lines(form, 0, around)
        for n in (*range(WIDTH - 14, WIDTH + 6), *range(WIDTH + 6, 240, 30)):
            made = lines(form, n, around)
            assert names(made) >= names(shortest), (form, n)
            short = [line for line in made if not re.search(r"a{36}|b{36}", line)]
            assert "(A" not in form or all(len(line) <= WIDTH for line in short), (form, n)


def names(made: list[str]) -> set[str]:
    """The names that the lines use, with long ones shortened; a part may have got a name of its own."""
    text = dedent("\n".join(re.sub(r"\b(?:a+|b+)\b", lambda m: m[0][0], line) for line in made))
    parsed = ast.walk(ast.parse("async def method():\n" + indent(text, " ")))
    return {n.id if isinstance(n, ast.Name) else n.attr for n in parsed if isinstance(n, ast.Name | ast.Attribute)}


@pytest.mark.parametrize("count", [2, 7])
def test_heads_of_methods_are_laid_out_within_the_width(count: int) -> None:
    for n in range(60, 100):
        given = ["self", *(f"{'x' * ((n - 20) // count)}{i}" for i in range(count))]
        made = defined("forward", given)
        (function,) = ast.parse(dedent("\n".join([*made, " " * 8 + "pass"]))).body
        assert isinstance(function, ast.FunctionDef)
        assert [a.arg for a in function.args.args] == given and all(len(line) <= WIDTH for line in made)


@pytest.mark.parametrize("text", [["a"], ['"a"'], ["a", "b"], ['"a', 'b"'], ["", "a"], ["a", "", "b"]])
def test_docstrings_have_their_text(text: list[str]) -> None:
    found = ast.literal_eval(dedent("\n".join(docstring(text, 4))).strip())
    assert [line.strip() for line in found.strip().splitlines()] == "\n".join(text).strip().splitlines()
