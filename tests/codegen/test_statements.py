"""Statements of generated code: their text, their variables, and lines that fit, compared with Python itself."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest
from emberlet.codegen.emit.expression import WIDTH, Name
from emberlet.codegen.emit.handing_on import hand_on
from emberlet.codegen.emit.layout import laid_out
from emberlet.codegen.emit.statement import (
    Assign,
    Statement,
    render,
)
from support.expressions import block as of
from support.rows import every

EVERYTHING = """
a = f(x)
b, c = g(a, x)
a += f(b)
if a == c:
    d = f(a)
else:
    d = f(b)
    e = [d, a]
if b < a:
    c = f(c)
for n, k in zip(a, b):
    d = f(n, k, d)
    if n < d:
        break
while c:
    c = f(c)
    del a
def inner(p, q):
    r = f(p, q)
    return r
h = inner(d, b)
f(h)
table[n] = f(h, b)
return h, c
"""


def source_of(statements: list[Statement]) -> str:
    return "\n".join(render(statements, 0))


def same(found: str, wanted: str) -> None:
    """Equal as Python, which may write a tuple with or without parentheses."""
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(wanted))


def test_statements_are_written_as_python_reads_them() -> None:
    same(source_of(of(EVERYTHING)), EVERYTHING)


@pytest.mark.parametrize(
    ("source", "handed"),
    [
        ("a = self.w.val()", "a = self.w.val().detach()"), ("a = f(self.w.val())", "a = f(self.w.val())"),
        ("return self.w.val(), x", "return self.w.val().detach(), x"), ("a = self.w.val(1)", "a = self.w.val(1)"),
        ("a = [self.w.val(), x]", "a = [self.w.val().detach(), x]"),
        ("a = (self.w.val(), x)", "a = (self.w.val().detach(), x)"),
        ("a = self.w.val() if t else x", "a = self.w.val().detach() if t else x"),
        ("a = x if t else self.w.val()", "a = x if t else self.w.val().detach()"),
        ("a = self.w.val() + self.w.val()", "a = self.w.val() + self.w.val()"),
        ("a = [self.w.val()] + [x]", "a = [self.w.val().detach()] + [x]"),
        ("a = [x] + [self.w.val()]", "a = [x] + [self.w.val().detach()]"),
        ("a = [x] - [self.w.val()]", "a = [x] - [self.w.val()]"),
        ("b.append(self.w.val())", "b.append(self.w.val().detach())"), ("b.take(self.w.val())", "b.take(self.w.val())"),
        ("a = F.sequence_insert(s, self.w.val())", "a = F.sequence_insert(s, self.w.val().detach())"),
        ("for n in zip(self.w.val(), x):\n    a = self.w.val()",
         "for n in zip(self.w.val().detach(), x):\n    a = self.w.val().detach()"),
        ("if self.w.val():\n    a = self.w.val()\nelse:\n    b = self.w.val()",
         "if self.w.val():\n    a = self.w.val().detach()\nelse:\n    b = self.w.val().detach()"),
        ("while self.w.val():\n    a = self.w.val()", "while self.w.val():\n    a = self.w.val().detach()"),
        ("def g(x):\n    return self.w.val()", "def g(x):\n    return self.w.val().detach()"),
        ("del a", "del a"),
    ],
)  # fmt: skip
def test_a_weight_that_leaves_the_module_is_a_tensor_of_its_own(source: str, handed: str) -> None:
    same(source_of(hand_on(of(source))), handed)


@pytest.mark.parametrize("indent", [0, 8])
def test_a_choice_is_on_one_line_exactly_if_it_fits(indent: int) -> None:
    """A line may end in the last column; a longer one becomes a statement with branches."""
    for target in ("chosen", "self.shortcut"):
        for length in range(WIDTH - indent - 30, WIDTH - indent + 30):
            value = "x" * (length - len(f"{target} =  if p else None"))
            lines = render(laid_out(of(f"{target} = {value} if p else None"), indent), indent)
            assert (len(lines) == 1) is (length + indent <= WIDTH)
            if target == "self.shortcut" and len(lines) > 1:
                assert [line.strip() for line in lines] == ["self.shortcut = None", "if p:", f"self.shortcut = {value}"]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_a_comment_stands_where_it_fits_the_line(extra: int) -> None:
    comment = "c" * (WIDTH - len("a = f") - 4 + extra)
    (line,) = render([Assign(("a",), Name("f" + ""), comment)], 0)
    assert (line == "a = f  # " + comment[:]) is (len("a = f  # " + comment) <= WIDTH)
    many = tuple(f"name{'n' * 8}{i}" for i in range(8))
    lines = render([Assign(many, Name("f"))], 4)
    assert lines[0] == "    (" and lines[-1] == "    ) = f"
    assert lines[1:-1] == [f"        {name}," for name in many]


LONG = [f"{'a' * n}_{n}" for n in (3, 9, 13, 17, 19)]


def drawn(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice([*LONG, "1", "22"])
    a, b, c = (drawn(rng, depth - 1) for _ in range(3))
    return rng.choice(
        [f"({a}) + ({b})", f"-({a})", f"f({a}, {b}, key={c})", f"f({a}).take({b})", f"g[{a}]", f"(({a}), ({b}))[0]"]
    )


class Held:
    """A value that says how it was computed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Any) -> Held:
        return Held(f"({self} + {other})")

    __radd__ = __add__

    def __neg__(self) -> Held:
        return Held(f"-{self}")

    def __getitem__(self, key: Any) -> Held:
        return Held(f"{self}[{key}]")

    def __call__(self, *args: Any, **kwargs: Any) -> Held:
        return Held(f"{self}({', '.join(map(str, args))} {kwargs.get('key')})")

    def take(self, n: Any) -> Held:
        return Held(f"{self}.take({n})")

    def __lt__(self, other: Any) -> bool:
        return len(self.text) < len(str(other))

    def __gt__(self, other: Any) -> bool:
        return len(str(other)) < len(self.text)

    def __bool__(self) -> bool:
        return len(self.text) % 2 == 0

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.text)


def run(lines: list[str]) -> Any:
    held: dict[str, Any] = {name: Held(name) for name in (*LONG, "f", "g")}
    body = "\n".join("    " + line for line in lines)
    exec(f"def function({', '.join(held)}):\n{body}", scope := {})
    return [str(v) for v in scope["function"](**held)]


@every("seed", range(12), share=3)
def test_long_statements_compute_the_same_in_lines_that_fit(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        e = lambda: drawn(rng, rng.randint(1, 3))  # noqa: E731
        source = [
            f"r = {e()}",
            f"if {e()} < {e()}:", f"    r = {e()}", f"    f({e()})", "else:", f"    r, q = {e()}, {e()}",
            f"for n in [{e()}, {e()}]:", f"    r = f(n, r, {e()})", f"    if {e()} < r:", f"        r = {e()}",
            f"s = {e()} if {e()} < {e()} else {e()}",
            f"t = [{e()}, {e()}] + [{e()}]",
            "def inner(p):", f"    u = {e()}", f"    return f(p, {e()})",
            f"return {e()}, r, s, t[0], t[1], inner({e()})",
        ]  # fmt: skip
        body = laid_out(of("\n".join(source)), 4)
        lines = [line.removeprefix("    ") for line in render(body, 4)]
        assert all(len(line) + 4 <= WIDTH for line in lines), lines
        assert run(lines) == run(source)
