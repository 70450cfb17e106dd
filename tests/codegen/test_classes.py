"""Several blocks of a model as one class: which of their numbers become arguments, and what these are called."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.codegen.emit.expression import WIDTH, flat, lift
from emberlet.codegen.emit.names import Names
from emberlet.codegen.emit.statement import Assign, render
from emberlet.codegen.emit.variables import Hints
from emberlet.codegen.hierarchy.classes import (
    Class,
    Draft,
    Group,
    _about,
    _arguments,
    _defaults,
    classified,
    head,
    parameters_of,
)
from support.expressions import statements


def draft(n: int, fields: str, body: str, name: str = "Layer", shapes: Any = None, about: str = "") -> Draft:
    held = [Assign((s.targets[0],), s.value) for s in statements(fields) if isinstance(s, Assign)]
    return Draft(("layers", str(n)), name, held, ["p1"], statements(body), Hints(), {}, about, shapes)


def classes(*drafts: Draft) -> list[str]:
    """The lines of each class's constructor and forward, and of the drafts' calls."""
    made = classified(drafts, Names(), {})
    said = []
    for one in made:
        said.append(f"{one.name}({', '.join(parameters_of(one.arguments, one.defaults))}) x{one.count}")
        said += render([*one.fields, *one.body], 2)
    return [*said, *(flat(d.call()) for d in drafts)]


TWO = "self.a = nn.Linear({0}, {1}, backend=backend)\nself.b = nn.Linear({1}, {0}, backend=backend)"
BODY = "v1 = self.a(p1)\nv2 = F.relu(v1)\nself.b(v2)"


def test_equal_blocks_have_no_arguments() -> None:
    assert classes(*(draft(n, TWO.format(4, 8), BODY) for n in range(3))) == [
        "Layer(backend=None) x3", "  self.a = nn.Linear(4, 8, backend=backend)",
        "  self.b = nn.Linear(8, 4, backend=backend)",
        "  v1 = self.a(p1)", "  v2 = F.relu(v1)", "  return self.b(v2)", *["Layer(backend=backend)"] * 3,
    ]  # fmt: skip


def test_numbers_that_always_agree_are_one_argument() -> None:
    sizes = ((4, 8), (4, 16), (6, 8))
    found = classes(*(draft(n, TWO.format(*size), BODY) for n, size in enumerate(sizes)))
    assert found[:3] == [
        "Layer(d_input, hidden, backend=None) x3",
        "  self.a = nn.Linear(d_input, hidden, backend=backend)",
        "  self.b = nn.Linear(hidden, d_input, backend=backend)",
    ]
    assert found[-3:] == [f"Layer({a}, {b}, backend=backend)" for a, b in sizes]


def test_a_number_of_forward_is_kept_in_a_field() -> None:
    body = "v1 = F.pad(p1, {})\nv2 = v1 * {}\nself.a(v2)"
    one = "self.a = nn.Linear(4, 4, backend=backend)"
    found = classes(draft(0, one, body.format("(1, 1)", 2)), draft(1, one, body.format("(3, 1)", 5)))
    assert found[0] == "Layer(size, size_2, backend=None) x2"
    assert "  self.size = size" in found and "  self.size_2 = size_2" in found
    assert "  v1 = F.pad(p1, (self.size, 1))" in found and "  v2 = v1 * self.size_2" in found
    assert found[-2:] == ["Layer(size=1, size_2=2, backend=backend)", "Layer(size=3, size_2=5, backend=backend)"]


def test_a_field_of_that_name_makes_way() -> None:
    fields = "self.size = nn.Linear(4, 4, backend=backend)"
    found = classes(*(draft(n, fields, f"v1 = p1 * {n + 2}\nself.size(v1)") for n in range(2)))
    assert "  self.size_ = size" in found and "  v1 = p1 * self.size_" in found


def test_other_code_is_another_class() -> None:
    found = classes(draft(0, TWO.format(4, 8), BODY), draft(1, TWO.format(4, 8), BODY.replace("relu", "gelu")))
    assert [line for line in found if line.startswith("Layer")] == [
        "Layer(backend=None) x1", "Layer_2(backend=None) x1", "Layer(backend=backend)", "Layer_2(backend=backend)"
    ]  # fmt: skip


CONV = "self.c = nn.Conv2d({}, {}, 3, stride={}, padding={}, backend=backend)"


def test_an_argument_that_is_often_the_layers_default_has_a_default() -> None:
    rows = [(8, 8, 1, 1), (8, 16, 2, 1), (16, 16, 1, 1), (16, 32, 2, 1)]
    found = classes(*(draft(n, CONV.format(*row), "self.c(p1)", "Block") for n, row in enumerate(rows)))
    assert found[0].startswith("Block(") and "stride=1" in found[0]
    assert [line for line in found[-4:] if "stride" in line] == [found[-3], found[-1]]
    assert "stride=2" in found[-1]


@pytest.mark.parametrize(
    ("arguments", "columns", "defaults"),
    [
        (["stride"], [[1, 2]], {"stride": 1}), (["stride"], [[2, 3]], {}), (["size"], [[1, 2]], {}),
        (["padding", "groups"], [[0, 1], [1, 4]], {"padding": 0, "groups": 1}),
        (["bias"], [[True, False]], {"bias": True}),
        (["dilation"], [[1, 1]], {"dilation": 1}),
    ],
)  # fmt: skip
def test_defaults_are_those_of_layers(arguments: list[str], columns: Any, defaults: dict[str, Any]) -> None:
    lifted = [[lift(v) for v in column] for column in columns]
    assert _defaults("Layer", arguments, lifted) == {k: lift(v) for k, v in defaults.items()}


def test_parameters_with_a_default_come_last() -> None:
    defaults = {"stride": lift(1)}
    assert parameters_of(["stride", "size"], defaults) == ["size", "stride=1", "backend=None"]
    assert head(["stride", "size"], defaults) == "    def __init__(self, size, stride=1, backend=None):"


def test_a_call_leaves_out_defaults_and_names_what_is_not_usual() -> None:
    kind = Class("Block", ["in_channels", "size", "out_channels", "stride"], [], ["p1"], [], Hints(), "")
    kind.defaults = {"stride": lift(1)}
    one = draft(0, "", "p1")
    one.kind, one.args = kind, tuple(map(lift, (3, 5, 8, 1)))
    assert flat(one.call()) == "Block(3, size=5, out_channels=8, backend=backend)"
    one.args = tuple(map(lift, (3, 5, 8, 2)))
    assert flat(one.call()) == "Block(3, size=5, out_channels=8, stride=2, backend=backend)"


def group(rows: Any, words: str) -> Group:
    return Group([], [[None if v is None else lift(v) for v in row] for row in rows], words.split(), [], [])


@pytest.mark.parametrize(
    ("rows", "words", "names", "values", "places"),
    [
        ([[1, 2], [1, 2]], "a b", [], [], {}),
        ([[1, 2], [3, 2]], "a b", ["a"], [[1, 3]], {0: 0}),
        ([[1, 1], [3, 3]], "size d_input", ["d_input"], [[1, 3]], {0: 0, 1: 0}),  # the word that says more
        ([[1, 1], [3, 3]], "normalized_shape size", ["normalized_shape"], [[1, 3]], {0: 0, 1: 0}),
        ([[1, 1], [3, 3]], "a b", ["a"], [[1, 3]], {0: 0, 1: 0}),  # the first of two that say as much
        ([[1, 2], [3, 4]], "a a", ["a", "a_2"], [[1, 3], [2, 4]], {0: 0, 1: 1}),
        ([[1, 2], [3, 4]], "size_3 size", ["size", "size_2"], [[1, 3], [2, 4]], {0: 0, 1: 1}),
        ([[1, 4], [3, 6]], "out_channels out_channels", ["hidden", "out_channels"], [[1, 3], [4, 6]], {0: 0, 1: 1}),
        ([[4, 8, 8, 4], [6, 12, 12, 6]], "d_input d_output d_input d_output", ["d_input", "hidden"], None,
         {0: 0, 1: 1, 2: 1, 3: 0}),
        # a number that a block without an optional part does not have
        ([[1, 5], [3, None]], "a b", ["a"], [[1, 3]], {0: 0}),
        ([[1, 1], [3, None]], "a a", ["a"], [[1, 3]], {0: 0, 1: 0}),
        ([[1, 5], [3, 7], [4, None]], "a b", ["a", "b"], None, {0: 0, 1: 1}),
        ([[1, 1], [3, 3], [4, None]], "a b", ["a"], [[1, 3, 4]], {0: 0, 1: 0}),
    ],
)  # fmt: skip
def test_the_numbers_in_which_blocks_differ(rows: Any, words: str, names: list[str], values: Any, places: Any) -> None:
    found, columns, at = _arguments(group(rows, words), Names())
    assert (sorted(found), at) == (sorted(names), places)
    if values is not None:
        assert found == names
        assert [[flat(v) for v in column] for column in columns] == [[str(v) for v in column] for column in values]


@pytest.mark.parametrize(
    ("shapes", "arguments", "columns", "text"),
    [
        ([(("n", 3, 8, 8), ("n", 4, 8, 8))] * 2, [], [], "(n, 3, 8, 8) to (n, 4, 8, 8)."),
        ([(("n", 3, 8, 8), ("n", 4, 8, 8)), (("n", 3, 4, 4), ("n", 4, 4, 4))], [], [],
         "(n, 3, height, width) to (n, 4, height, width)."),
        ([(("n", 3, 8, 8), ("n", 3, 4, 4)), (("n", 3, 4, 4), ("n", 3, 2, 2))], [], [],
         "(n, 3, height, width) to (n, 3, new height, new width)."),
        ([(("n", 3, 8, 8), ("n", 4, 8, 8)), (("n", 5, 8, 8), ("n", 6, 8, 8))], ["a", "b"], [[3, 5], [4, 6]],
         "(n, a, 8, 8) to (n, b, 8, 8)."),
        ([(("n", 3, 8, 8), ("n", 4, 8, 8)), (("n", 5, 8, 8),
        ("n", 6, 8, 8))], ["a"], [[3, 5]], ""),  # channels without a name
        ([(("n", 3, 8), ("n", 3, 8)), (("n", 5, 8), ("n", 5, 8))], [], [], "(n, length, 8) to (n, length, 8)."),
        ([(("n", 3, 8), ("n", 3, 8)), (("n", 3, 8, 8), ("n", 3, 8, 8))], [], [], ""),
        ([(("n", 3, 8), ("n", 3, 8, 1))], [], [], ""), ([(("n", 3), ("n", 3))], [], [], ""), ([None], [], [], ""),
        ([(('"', 3, 8), ("n", 3, 8))], [], [], ""), ([(("n?", 3, 8), ("n", 3, 8))], [], [], ""),
        ([(("n" * 20, "m" * 20, "k" * 20), ("n", 3, 8))], [], [], f"({'n' * 20}, {'m' * 20}, ...) to (n, 3, ...)."),
        ([(("n" * 40, "m" * 40, 8), ("n", 3, 8))], [], [], ""),
    ],
)  # fmt: skip
def test_the_shapes_of_a_class_are_those_of_all_its_blocks(
    shapes: Any, arguments: Any, columns: Any, text: str
) -> None:
    drafts = [draft(n, "", "p1", shapes=s) for n, s in enumerate(shapes)]
    found = _about(Group(drafts, [], [], [], []), arguments, [[lift(v) for v in column] for column in columns])
    assert found == text
    assert len(found) <= WIDTH - 10


def test_comments_that_hold_for_all_blocks_stay() -> None:
    one, two = draft(0, TWO.format(4, 8), BODY), draft(1, TWO.format(4, 8), BODY)
    for block, comment in ((one, "(n, 8)"), (two, "(n, 9)")):
        for i, text in ((0, "same"), (1, comment)):
            s = block.body[i]
            assert isinstance(s, Assign)
            s.comment = text
    (made,) = classified([one, two], Names(), {})
    assert [s.comment for s in made.body[:2] if isinstance(s, Assign)] == ["same", ""]


def test_a_class_is_called_with_the_numbers_of_the_classes_in_it() -> None:
    known: dict[str, Class] = {}
    inner = [draft(n, TWO.format(4, 8 + n), BODY, "Mlp") for n in range(2)]
    classified(inner, Names(), known)
    outer = [draft(n, "", "p1", "Layer") for n in range(2)]
    for block, part in zip(outer, inner, strict=True):
        block.fields = [Assign(("self.mlp",), part.call())]
    (made,) = classified(outer, Names({"Mlp"}), known)
    assert render(list(made.fields), 0) == ["self.mlp = Mlp(d_output, backend=backend)"]
    assert [flat(d.call()) for d in outer] == ["Layer(8, backend=backend)", "Layer(9, backend=backend)"]
