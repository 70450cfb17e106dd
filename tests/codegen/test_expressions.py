"""Expressions in generated code have the intended meaning and no unnecessary parentheses; lists become loops."""

from __future__ import annotations

import ast
import random
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
    flat,
    lift,
    string_literal,
)
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


@every("seed", range(12), share=3)
def test_the_text_of_an_expression_is_parsed_as_that_expression(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        made, tree = drawn(rng, rng.randint(1, 4))
        text = flat(made)
        assert ast.dump(ast.parse(text, mode="eval").body) == ast.dump(tree), text
        # Python's own text has the same parentheses, and more around a power's operand and tuples.
        assert text.count("(") <= ast.unparse(tree).count("(") + text.count("**") + text.count(".shape"), text


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


@given(st.text())
def test_any_text_is_a_literal(text: str) -> None:
    assert ast.literal_eval(string_literal(text)) == text


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


@every("seed", range(150), share=4)
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
