"""Blocks of which some lack a part: what counts as an optional part, and the code of both from one class."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.codegen.emit.expression import Expr, flat
from emberlet.codegen.emit.statement import Assign, render
from emberlet.codegen.emit.variables import Hints
from emberlet.codegen.hierarchy.classes import Draft
from emberlet.codegen.hierarchy.options import Option, option, pieces
from emberlet.codegen.hierarchy.templates import Holes, constant, field_value, key_of, statement
from support.expressions import statements


def draft(fields: str, body: str, *parameters: str) -> Draft:
    held = [Assign((s.targets[0],), s.value) for s in statements(fields) if isinstance(s, Assign)]
    return Draft(("layers", "0"), "Layer", held, list(parameters or ("p1",)), statements(body), Hints(), {}, "")


FIELDS = """
self.fc1 = nn.Linear(4, 8, backend=backend)
self.fc2 = nn.Linear(8, 4, backend=backend)
self.norm = nn.LayerNorm(4, backend=backend)
"""
SHORTCUT = FIELDS + "self.side = nn.Linear(4, 4, backend=backend)\n"
BODY = "v1 = self.fc1(p1)\nv2 = F.relu(v1)\nv3 = self.fc2(v2)\n"


def found(large: Draft, small: Draft) -> Option | None:
    return option(large, small, pieces(large, {}), pieces(small, {}))


@pytest.mark.parametrize(
    ("large", "small", "wanted"),
    [
        # a layer in the way of the shortcut
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.norm(v5)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), ("side", 3, (3,), "v4", "p1")),
        # a sum
        ((FIELDS, BODY + "v4 = v3 + p1\nself.norm(v4)"), (FIELDS, BODY + "self.norm(v3)"),
        ("residual", None, (3,), "v4", "v3")),
        # two steps
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.relu(v4)\nv6 = F.add(v3, v5)\nself.norm(v6)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), ("side", 3, (3, 4), "v5", "p1")),
        # numbers differ: they become arguments
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.norm(v5)"),
         (FIELDS.replace("8", "16"), BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), ("side", 3, (3,), "v4", "p1")),
        # one of which reads two values
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.mul(v4, p1)\nv6 = F.add(v3, v5)\nself.norm(v6)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), ("side", 3, (3, 4), "v5", "p1")),
        # nothing more, or something else
        ((FIELDS, BODY + "self.norm(v3)"), (FIELDS, BODY + "self.norm(v3)"), None),
        ((FIELDS, BODY + "v4 = v3 * p1\nself.norm(v4)"), (FIELDS, BODY + "self.norm(v3)"), None),
        ((FIELDS, BODY + "v4 = self.norm(v3) + p1\nself.norm(v4)"), (FIELDS, BODY + "self.norm(v3)"), None),
        ((SHORTCUT, BODY + "v4 = F.relu(p1)\nv5 = F.add(v3, v4)\nself.norm(v5)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),  # a field that no optional step uses
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.mul(v3, v4)\nself.norm(v5)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
        ((SHORTCUT.replace("self.norm", "self.ln"), BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.ln(v5)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
        ((SHORTCUT + "self.more = nn.Linear(4, 4, backend=backend)",
          BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.norm(v5)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = v4 + v4\nv6 = F.add(v3, v5)\nself.norm(v6)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),  # read twice: no expression
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.silu(v4)\nv6 = v4 * v5\nv7 = F.add(v3, v6)\nself.norm(v7)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
        ((SHORTCUT, BODY + "v4, v5 = self.side(p1)\nv6 = F.add(v3, v4)\nself.norm(v6)"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
        ((SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.norm(v5), v4"),
         (FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"), None),
    ],
)  # fmt: skip
def test_a_part_that_one_block_has_and_another_lacks(large: Any, small: Any, wanted: Any) -> None:
    made = found(draft(*large), draft(*small))
    if wanted is None:
        assert made is None
    else:
        assert made is not None
        assert (made.name, made.field, made.steps, made.result, made.instead) == wanted


def test_few_lines_and_other_parameters_share_no_class() -> None:
    one = "self.fc = nn.Linear(4, 4, backend=backend)\n"
    assert (
        found(draft(one, "v1 = self.fc(p1)\nv2 = v1 + p1\nF.relu(v2)"), draft(one, "v1 = self.fc(p1)\nF.relu(v1)"))
        is None
    )
    body = "v1 = self.fc(p1)\nv2 = F.tanh(v1)\n"
    large, small = body + "v3 = v2 + p1\nF.relu(v3)", body + "F.relu(v2)"
    assert found(draft(one, large), draft(one, small)) is not None
    assert found(draft(one, large, "p1", "p2"), draft(one, small)) is None


def test_a_value_that_must_stay_where_it_is_or_is_long_is_no_option() -> None:
    large, small = draft(FIELDS, BODY + "v4 = v3 + p1\nself.norm(v4)"), draft(FIELDS, BODY + "self.norm(v3)")
    assert found(large, small) is not None
    large.hints.fixed.add("v4")
    assert found(large, small) is None
    for many, fits in ((5, True), (7, False)):
        call = "self.side(p1, " + ", ".join(["1000000"] * many) + ")"
        made = found(
            draft(SHORTCUT, BODY + f"v4 = {call}\nv5 = F.add(v3, v4)\nself.norm(v5)"),
            draft(FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)"),
        )
        assert (made is not None) is fits


def test_a_field_called_residual_is_no_flag() -> None:
    fields = FIELDS.replace("self.norm", "self.residual")
    large, small = BODY + "v4 = v3 + p1\nself.residual(v4)", BODY + "self.residual(v3)"
    assert found(draft(fields, large), draft(fields, small)) is None


@pytest.mark.parametrize("has_layer", [True, False])
def test_the_code_of_both_is_one_class_with_a_flag(has_layer: bool) -> None:
    if has_layer:
        large = draft(SHORTCUT, BODY + "v4 = self.side(p1)\nv5 = F.add(v3, v4)\nself.norm(v5)")
        small = draft(FIELDS, BODY + "v4 = F.add(v3, p1)\nself.norm(v4)")
    else:
        large = draft(FIELDS, BODY + "v4 = v3 + p1\nself.norm(v4)")
        small = draft(FIELDS, BODY + "self.norm(v3)")
    made = found(large, small)
    assert made is not None
    fields, body = made.applied("flag", large.fields, large.body)
    lines = render([*fields, *body], 0)
    if has_layer:
        assert "self.side = nn.Linear(4, 4, backend=backend) if flag else None" in lines
        assert "v4 = p1 if self.side is None else self.side(p1)" in lines
    else:
        assert lines[0] == "self.residual = flag"
        assert "v4 = v3 + p1 if self.residual else v3" in lines
    # The statements and numbers of the shorter one have the places of the longer one's.
    widened = made.widened(small.body, large.body)
    assert len(widened) == len(large.body)
    assert [s for i, s in enumerate(widened) if i not in made.steps] == small.body
    longer, shorter = pieces(large, {}), pieces(small, {})
    row = [v for piece in shorter.every() for v in piece.values]
    padded = made.padded(row, longer)
    assert len(padded) == sum(len(piece.values) for piece in longer.every())
    assert [v for v in padded if v is not None] == row
    assert padded.count(None) == (len(longer.fields[3].values) if has_layer else 0)


def call(name: str, *args: str) -> Expr:
    return statements(f"{name}({', '.join(args)})")[0].values[0]  # type: ignore[union-attr]


# -- numbers taken out


@pytest.mark.parametrize(
    ("source", "is_constant"),
    [("1", True), ("-2.5", True), ("True", True), ("None", True), ("'a'", False), ("(1, -2)", True), ("(1, x)", False),
     ("float('inf')", True), ("f(1)", False), ("x", False), ("()", True)],
)  # fmt: skip
def test_numbers_and_tuples_of_them_are_constants(source: str, is_constant: bool) -> None:
    (made,) = statements(f"a = {source}")
    assert isinstance(made, Assign)
    assert constant(made.value) is is_constant


@pytest.mark.parametrize(
    ("source", "numbers", "words"),
    [
        ("nn.Linear(4, 8, backend=backend)", "4 8 True", "d_input d_output bias"),
        ("nn.Linear(4, 8, bias=False, backend=backend)", "4 8 False", "d_input d_output bias"),
        ("nn.Group(a=nn.Linear(4, 8, backend=backend))", "4 8 True", "d_input d_output bias"),
        ("nn.Param.zeros((4, 8), backend=backend)", "4 8", "size size"),
        ("[nn.Relu() for _ in range(3)]", "3", "depth"),
    ],
)
def test_the_numbers_of_a_field_have_the_words_of_its_layer(source: str, numbers: str, words: str) -> None:
    from emberlet.codegen.emit.expression import Comprehension

    if source.startswith("[nn"):
        made: Any = Comprehension(call("nn.Relu"), "_", call("range", "3"))
    else:
        (assigned,) = statements(f"a = {source}")
        assert isinstance(assigned, Assign)
        made = assigned.value
    holes = Holes()
    template = field_value(made, holes)
    assert (" ".join(map(flat, holes.values)), " ".join(holes.words)) == (numbers, words)
    # Filling the holes with the numbers gives the field again.
    assert flat(field_value(made, Holes(fills=holes.values))) == flat(made)
    assert flat(template) != flat(made)


def test_the_numbers_of_a_statement_are_taken_out_except_axes_in_tuples() -> None:
    holes = Holes()
    (s,) = statements("a = F.pad(x + 3, (1, 2), value=-1, mode='edge')[0:7]")
    made = statement(s, holes)
    assert [flat(v) for v in holes.values] == ["3", "1", "2", "-1", "0", "7"]
    assert holes.words == ["size", "size", "size", "value", "size", "size"]
    assert isinstance(made, Assign)
    assert "3" not in flat(made.value)


def test_the_key_of_two_drafts_is_equal_where_only_numbers_differ() -> None:
    def key(fields: str, body: str, *parameters: str) -> str:
        made = draft(fields, body, *parameters)
        holes = Holes()
        held = [Assign(f.targets, field_value(f.value, holes)) for f in made.fields]
        return key_of(held, made.parameters, [statement(s, holes) for s in made.body])

    first = key(FIELDS, BODY + "v3")
    assert first == key(FIELDS.replace("8", "16"), BODY + "v3")
    for other in (
        key(FIELDS.replace("LayerNorm", "RmsNorm"), BODY + "v3"), key(FIELDS, BODY + "v2"),
        key(FIELDS, BODY + "v3, v3"),
        key(FIELDS, BODY.replace("relu", "gelu") + "v3"), key(FIELDS, BODY + "v3", "p1", "p2"),
        key(FIELDS.replace("fc1", "fc3"), BODY + "v3"),
    ):  # fmt: skip
        assert other != first
