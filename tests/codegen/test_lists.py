"""Lists of constructors, and which of them become comprehensions."""

from __future__ import annotations

import ast

import pytest
from emberlet.codegen.emit.expression import flat
from emberlet.codegen.hierarchy.lists import held, listed
from support.expressions import expression


def of(text: str) -> list[object]:
    return [expression(ast.parse(part.strip(), mode="eval").body) for part in text.split(";") if part.strip()]


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ("", "[]"),
        ("A()", "[A()]"),
        ("A(); A()", "[A() for _ in range(2)]"),
        ("A(); A(); A()", "[A() for _ in range(3)]"),
        ("A(); B()", "[A(), B()]"),
        ("A(); B(); B(); C()", "[A()] + [B() for _ in range(2)] + [C()]"),
        ("A(5); B(); B(); B(); A(7); A(8)", "[A(5)] + [B() for _ in range(3)] + [A(7), A(8)]"),
        ("A(); A(); B(); B()", "[A() for _ in range(2)] + [B() for _ in range(2)]"),
        # numbers that grow by a step
        ("A(1, 8); A(2, 8); A(3, 8)", "[A(n, 8) for n in range(1, 4)]"),
        ("A(1, 8); A(3, 8); A(5, 8)", "[A(n, 8) for n in range(1, 7, 2)]"),
        ("A(8, k=1); A(8, k=2); A(8, k=3)", "[A(8, k=n) for n in range(1, 4)]"),
        ("A(1, 1); A(2, 2); A(3, 3)", "[A(n, n) for n in range(1, 4)]"),
        ("A(0); A(1); A(2); B()", "[A(n) for n in range(0, 3)] + [B()]"),
        # not these
        ("A(1); A(2)", "[A(1), A(2)]"),
        ("A(3); A(2); A(1)", "[A(3), A(2), A(1)]"),
        ("A(1); A(2); A(4)", "[A(1), A(2), A(4)]"),
        ("A(1, 1); A(2, 3); A(3, 5)", "[A(1, 1), A(2, 3), A(3, 5)]"),
        ("A(1.0); A(2.0); A(3.0)", "[A(1.0), A(2.0), A(3.0)]"),
        ("A(x); A(y); A(z)", "[A(x), A(y), A(z)]"),
        ("A(1); B(2); A(3)", "[A(1), B(2), A(3)]"),
        ("A(1); A(2, 1); A(3)", "[A(1), A(2, 1), A(3)]"),
        ("A(k=1); A(j=2); A(k=3)", "[A(k=1), A(j=2), A(k=3)]"),
        ("A(1); A(2); a", "[A(1), A(2), a]"),
        ("a; b; c", "[a, b, c]"),
        ("a; A(1); A(2)", "[a, A(1), A(2)]"),
    ],
)
def test_constructors_that_are_equal_or_count_are_a_comprehension(items: str, text: str) -> None:
    assert flat(listed(of(items))) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("0 1", "[a0, a1]"),
        ("1 0", "[a0, a1]"),
        ("0 2", "{0: a0, 2: a2}"),
        ("2 1", "{1: a1, 2: a2}"),
        ("x y", "nn.Group(x=ax, y=ay)"),
    ],
)
def test_numbered_fields_are_a_list_only_from_0_on(keys: str, text: str) -> None:
    (names,) = [dict(zip(keys.split(), of(";".join(f"a{k}" for k in keys.split())), strict=True))]
    assert flat(held(names)) == text
    assert flat(held({"fc": dict(names)})) == f"nn.Group(fc={text})"
