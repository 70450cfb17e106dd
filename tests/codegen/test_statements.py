"""Statements of generated code: their text, their variables, and lines that fit, compared with Python itself."""

from __future__ import annotations

import ast
import random
from collections import Counter
from typing import Any

import pytest
from emberlet.codegen.emit.expression import WIDTH, Name, Tuple
from emberlet.codegen.emit.handing_on import hand_on
from emberlet.codegen.emit.layout import laid_out, names_of
from emberlet.codegen.emit.statement import (
    Assign,
    Comment,
    Def,
    Do,
    Return,
    Statement,
    fold_return,
    render,
)
from emberlet.codegen.emit.traversal import assigned, reads, renamed
from support.expressions import block as of

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


class Renamed(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> Any:
        return ast.Name({"n": "index", "a": "first", "d": "deep", "h": "c2"}.get(node.id, node.id), node.ctx)


def test_variables_are_renamed_wherever_they_are() -> None:
    names = {"n": "index", "a": "first", "d": "deep", "h": "c2"}
    wanted = ast.unparse(Renamed().visit(ast.parse(EVERYTHING)))
    same(source_of(renamed(of(EVERYTHING), names)), wanted)


def test_an_assignment_to_itself_and_a_comment_that_the_value_says_are_left_out() -> None:
    body = of("b = a\nc = f(a)")
    assert source_of(renamed(body, {"a": "x", "b": "x"})) == "c = f(x)"
    assert len(renamed(body, {"a": "x", "b": "x"})) == 1
    commented = [Assign(("c",), Name("f"), "f"), Assign(("d",), Name("f"), "g")]
    assert render(renamed(commented, {}), 0) == ["c = f", "d = f  # g"]
    assert render([Assign(("a",), Name("a"))], 4) == ["    pass"]
    assert render([Assign(("a",), Name("a")), Do(Name("b"))], 0) == ["b"]


def test_reads_and_assignments_are_counted_in_every_block() -> None:
    found: Counter[str] = Counter()
    reads(of(EVERYTHING), found)
    tree = ast.parse(EVERYTHING)
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    wanted = Counter(n.id for n in loads) - Counter({"table": 1, "n": 1})  # a target's own
    assert found == wanted
    made: Counter[str] = Counter()
    assigned(of(EVERYTHING), made)
    stores = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    assert made == stores + Counter(["inner", "p", "q", "table[n]"])
    every = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {"inner", "p", "q", "table[n]"}
    assert names_of(of(EVERYTHING)) == every - {"table"}


@pytest.mark.parametrize(
    ("source", "folded"),
    [
        ("a = f(x)\nreturn a", "return f(x)"), ("b = g(x)\na = f(b)\nreturn a", "b = g(x)\nreturn f(b)"),
        ("a = f(x)\nreturn b", None), ("a, b = f(x)\nreturn a", None), ("a = f(x)\nreturn a, a", None),
        ("return a", None),
        ("f(x)\nreturn a", None), ("a = f(x)\nf(a)", None),
    ],
)  # fmt: skip
def test_a_value_that_is_only_returned_has_no_variable(source: str, folded: str | None) -> None:
    assert source_of(fold_return(of(source))) == (folded or source)


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


def test_the_layout_of_small_things() -> None:
    assert render([], 4) == ["    pass"]
    assert render([Comment("why"), Do(Name("a"))], 2) == ["  # why", "  a"]
    functions = [Do(Name("a")), Def("f", (), [Return((Name("x"),))]), Do(Name("b"))]
    assert render(functions, 0) == ["a", "", "def f():", "    return x", "", "b"]
    assert render(functions[1:2], 0) == ["def f():", "    return x"]
    assert render([Assign(("a", "b"), Tuple((Name("x"), Name("y"))))], 0) == ["a, b = x, y"]
    assert render([Assign(("a",), Tuple((Name("x"), Name("y"))))], 0) == ["a = (x, y)"]
    assert render([Assign(("a", "b"), Tuple((Name("x"),)))], 0) == ["a, b = (x,)"]
    assert render([Return(())], 0) == ["return ()"]


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


@pytest.mark.parametrize("seed", range(12))
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
