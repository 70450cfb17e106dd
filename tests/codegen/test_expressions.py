"""Expressions in generated code have the intended meaning and no unnecessary parentheses; lists become loops."""

from __future__ import annotations

import ast
import math
import random
import re
from typing import Any

import pytest
from emberlet import dtypes
from emberlet.codegen.emit.expression import (
    Attribute,
    Binary,
    Call,
    Comprehension,
    Conditional,
    Dict,
    Expr,
    Index,
    List,
    Name,
    SliceKey,
    Tuple,
    Unary,
    dotted,
    flat,
    float_literal,
    lift,
    names_in,
    string_literal,
)
from emberlet.codegen.emit.traversal import count, is_layer, mapped, substituted
from emberlet.codegen.hierarchy.lists import listed
from hypothesis import given
from hypothesis import strategies as st
from support.rows import every

OPERATORS = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "@": ast.MatMult,
    "**": ast.Pow, "|": ast.BitOr, "^": ast.BitXor, "&": ast.BitAnd, "<<": ast.LShift, ">>": ast.RShift,
}  # fmt: skip
COMPARISONS = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "is": ast.Is,
    "is not": ast.IsNot, "in": ast.In,
}  # fmt: skip
UNARY = {"-": ast.USub, "~": ast.Invert, "not": ast.Not}


def drawn(rng: random.Random, depth: int) -> tuple[Expr, ast.expr]:
    """A random expression, and the same as Python's own syntax tree."""
    load = ast.Load()
    if depth == 0:
        if rng.random() < 0.5:
            name = rng.choice("abcxyz")
            return Name(name), ast.Name(name, load)
        value = rng.choice([0, 7, 2.5, 1e20, True, None, "text", "it's"])
        return lift(value), ast.Constant(value)

    def inner() -> tuple[Expr, ast.expr]:
        return drawn(rng, depth - rng.randint(1, depth))

    (a, x), (b, y), (c, z) = inner(), inner(), inner()
    kind = rng.randrange(13)
    if kind <= 2:
        op = rng.choice(list(OPERATORS))
        return Binary(op, a, b), ast.BinOp(x, OPERATORS[op](), y)
    if kind == 3:
        op = rng.choice(list(COMPARISONS))
        return Binary(op, a, b), ast.Compare(x, [COMPARISONS[op]()], [y])
    if kind == 4:
        op = rng.choice(["and", "or"])
        if isinstance(x, ast.BoolOp):  # which Python's tree joins
            return a, x
        return Binary(op, a, b), ast.BoolOp(ast.And() if op == "and" else ast.Or(), [x, y])
    if kind == 5:
        op = rng.choice(list(UNARY))
        return Unary(op, a), ast.UnaryOp(UNARY[op](), x)
    if kind == 6:
        return Conditional(a, b, c), ast.IfExp(x, y, z)
    if kind == 7:
        return Attribute(a, "shape"), ast.Attribute(x, "shape", load)
    if kind == 8:
        return Call(a, (b,), (("key", c),)), ast.Call(x, [y], [ast.keyword("key", z)])
    if kind == 9:
        if rng.random() < 0.5:
            return Index(a, b), ast.Subscript(x, y, load)
        low, step = rng.random() < 0.5, rng.random() < 0.5
        key = SliceKey(b if low else None, c, a if step else None)
        part = ast.Slice(y if low else None, z, x if step else None)
        if rng.random() < 0.5:
            return Index(a, Tuple((key, b))), ast.Subscript(x, ast.Tuple([part, y], load), load)
        return Index(a, key), ast.Subscript(x, part, load)
    if kind == 10:
        made = (Tuple((a,)), ast.Tuple([x], load)) if rng.random() < 0.5 else (List((a, b)), ast.List([x, y], load))
        return made
    if kind == 11:
        return Dict(((a, b),)), ast.Dict([x], [y])
    then = rng.random() < 0.5
    loops = [ast.comprehension(ast.Name("n", ast.Store()), y, [], 0)]
    if then:
        loops.append(ast.comprehension(ast.Name("m", ast.Store()), z, [], 0))
    return Comprehension(a, "n", b, ("m", c) if then else None), ast.ListComp(x, loops)


@pytest.mark.parametrize("seed", range(12))
def test_the_text_of_an_expression_is_parsed_as_that_expression(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        made, tree = drawn(rng, rng.randint(1, 4))
        text = flat(made)
        assert ast.dump(ast.parse(text, mode="eval").body) == ast.dump(tree), text
        # Python's own text has the same parentheses, and more around a power's operand and tuples.
        assert text.count("(") <= ast.unparse(tree).count("(") + text.count("**") + text.count(".shape"), text


@pytest.mark.parametrize(
    "text",
    ["x**2", "x.a**2", "x.a.b**y", "2**-1", "2.5**x", "f(x) ** 2", "x[0] ** 2", "f(x).a ** 2", "x ** f(y)",
     "x.a ** y[0]", "(x + y) ** 2", "x ** (y + 2)", "(-x) ** 2"],
)  # fmt: skip
def test_powers_of_names_and_numbers_have_no_spaces(text: str) -> None:
    """As ruff's formatter writes them."""
    assert flat(of(text)) == text


def test_operators_within_operators_have_pythons_parentheses() -> None:
    """Every pair, on each side."""
    x, y, z = map(Name, "xyz")
    every = [*OPERATORS, *COMPARISONS, "and", "or"]
    made: list[tuple[Expr, str, str, str]] = []
    for op in every:
        for inner in every:
            made.append((Binary(op, Binary(inner, x, y), z), f"(x {inner} y)", op, "z"))
            made.append((Binary(op, x, Binary(inner, y, z)), "x", op, f"(y {inner} z)"))
        for unary in ("-", "~", "not "):
            made.append((Binary(op, Unary(unary.strip(), x), z), f"({unary}x)", op, "z"))
            made.append((Binary(op, x, Unary(unary.strip(), z)), "x", op, f"({unary}z)"))
            made.append((Unary(unary.strip(), Binary(op, x, y)), "", unary, f"(x {op} y)"))
        made.append((Binary(op, Conditional(x, y, z), x), "(y if x else z)", op, "x"))
        made.append((Binary(op, x, Conditional(x, y, z)), "x", op, "(y if x else z)"))
        made.append((Conditional(Binary(op, x, y), z, Binary(op, y, x)), f"z if x {op} y", "else", f"(y {op} x)"))
    for e, left, op, right in made:
        text = flat(e)
        whole = ast.dump(ast.parse(f"{left} {op} {right}".strip(), mode="eval"))
        joined = op in ("and", "or") and (f" {op} " in left or f" {op} " in right)  # Python's tree has one list of both
        assert joined or ast.dump(ast.parse(text, mode="eval")) == whole, text
        try:
            needed = ast.dump(ast.parse(re.sub(r"[()]", "", text), mode="eval")) != whole
        except SyntaxError:
            needed = True
        power = op == "**" and right in ("(-z)", "(~z)")  # which are easier to read in parentheses
        assert joined or ("(" in text) is (needed or power), text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (-3, "-3"), (0, "0"), (2.5, "2.5"), (-2.5, "-2.5"), (1e20, "1e20"), (1e-7, "1e-07"), (True, "True"),
        (None, "None"), (float("inf"), 'float("inf")'), (float("-inf"), 'float("-inf")'), ((), "()"), ((1,), "(1,)"),
        ((1, -2), "(1, -2)"), ([1, (2,)], "[1, (2,)]"), ([], "[]"), (dtypes.float16, "emberlet.float16"), ("a", '"a"'),
        (Name("x"), "x"), ([Name("x"), -0.0], "[x, -0.0]"),
    ],
)  # fmt: skip
def test_data_are_literals(value: Any, text: str) -> None:
    assert flat(lift(value)) == text


def test_a_float_that_is_no_number_is_called_by_name() -> None:
    found = eval(flat(float_literal(float("nan"))))
    assert math.isnan(found)


@given(st.text())
def test_any_text_is_a_literal(text: str) -> None:
    assert ast.literal_eval(string_literal(text)) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", '""'), ("a", '"a"'), ("it's", '"it\'s"'), ('say "x"', "'say \"x\"'"), ("'\"", '"\'\\""'),
        ("''\"", '"\'\'\\""'),
        ("'\"\"", "'\\'\"\"'"), ("a\nb", '"a\\nb"'), ("\\", '"\\\\"'), ('\\"', "'\\\\\"'"),
    ],
)  # fmt: skip
def test_texts_have_double_quotes_unless_single_ones_need_fewer_escapes(text: str, literal: str) -> None:
    assert string_literal(text) == literal
    assert ast.literal_eval(literal) == text


def of(source: str) -> Expr:
    from support.expressions import expression

    return expression(ast.parse(source, mode="eval").body)


@pytest.mark.parametrize(
    ("source", "is_dotted"), [("x", True), ("self.a.b", True), ("f(x)", False), ("f(x).a", False), ("x[0].a", False)]
)
def test_a_path_of_attributes_is_dotted(source: str, is_dotted: bool) -> None:
    assert dotted(of(source)) is is_dotted


@pytest.mark.parametrize(
    ("source", "calls_a_module"),
    [
        ("self.conv(x)", True), ("self.layers[0](x)", True), ("self.a.b[1].c(x)", True), ("self.weight.val()", False),
        ("F.relu(x)", False), ("self.conv", False), ("layer(x)", False), ("x.self(y)", False), ("self(x)", True),
    ],
)  # fmt: skip
def test_a_call_below_self_is_that_of_a_module(source: str, calls_a_module: bool) -> None:
    assert is_layer(of(source)) is calls_a_module


def test_variables_of_a_loop_are_its_own() -> None:
    loop = Comprehension(Binary("+", Name("n"), Name("a")), "n", Name("b"), ("m", Binary("*", Name("n"), Name("c"))))
    assert names_in(loop) == {"a", "b", "c"}
    assert names_in(Comprehension(Name("m"), "n", Name("n"))) == {"m", "n"}
    assert names_in(Comprehension(Name("m"), "n", Name("a"), ("m", Name("m")))) == {"a", "m"}
    assert names_in(of("f(a.b, c=d[e:g])")) == {"f", "a", "d", "e", "g"}


@pytest.mark.parametrize("seed", range(6))
def test_variables_are_counted_and_replaced_wherever_they_are(seed: int) -> None:
    from collections import Counter

    rng = random.Random(seed)
    for _ in range(60):
        made, tree = drawn(rng, 3)
        if any(isinstance(node, ast.ListComp) for node in ast.walk(tree)):
            continue
        found: Counter[str] = Counter()
        count(made, found)
        assert found == Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        changed = substituted(made, {"a": Name("q"), "x": Binary("+", Name("a"), Name("x"))})
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = {"a": "q", "x": "__x"}.get(node.id, node.id)
        text = ast.unparse(tree)
        assert ast.dump(ast.parse(flat(changed))) == ast.dump(ast.parse(text.replace("__x", "(a + x)")))
        assert mapped(made, lambda e: None) is made
        assert substituted(made, {"unknown": Name("q")}) is made


def test_what_a_comprehension_computes_again_counts_twice() -> None:
    from collections import Counter

    found: Counter[str] = Counter()
    count(Comprehension(Name("a"), "n", Name("b")), found)
    assert found == {"a": 2, "b": 1}


# -- lists of constructors


def block(*numbers: int, **named: int) -> Expr:
    return Call(Name("Block"), tuple(map(lift, numbers)), tuple((k, lift(v)) for k, v in named.items()))


def values(e: Expr) -> Any:
    """The items, each as its arguments."""
    return eval(flat(e), {"Block": lambda *a, **k: (a, tuple(k.items())), "nn": Groups})


class Groups:
    @staticmethod
    def Group(**fields: Any) -> Any:
        return fields


@every("seed", range(150))
def test_a_list_has_the_same_items_as_loops(seed: int) -> None:
    rng = random.Random(seed)
    items: list[Expr] = []
    for _ in range(rng.randint(0, 5)):
        start, step, many = rng.randint(0, 9), rng.choice([0, 0, 1, 1, 2, 8, -1]), rng.randint(1, 5)
        other = rng.randint(0, 2)
        for n in range(many):
            number = max(0, start + step * n)
            items.append(rng.choice([block(number, other), block(number, other, b=number)]) if rng.random() < 0.1 else
                         block(number, other))  # fmt: skip
    made = listed(items)
    assert values(made) == [values(item) for item in items]
