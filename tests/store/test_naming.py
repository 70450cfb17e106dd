"""Renumbering list indices in names to match the wanted names."""

from __future__ import annotations

import pytest
from emberlet.store.naming import KeyRemapper, aligned, contiguous, without_variants
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (["fc.0.w", "fc.2.w", "fc.4.w"], ["fc.0.w", "fc.1.w", "fc.2.w"], ["fc.0.w", "fc.1.w", "fc.2.w"]),
        (["fc.0.w", "fc.1.w", "fc.2.w"], ["fc.0.w", "fc.2.w", "fc.4.w"], ["fc.0.w", "fc.2.w", "fc.4.w"]),
        (["fc.0.w", "fc.4.w"], ["fc.0.w", "fc.2.w", "fc.4.w"], ["fc.0.w", "fc.4.w"]),  # one is missing: not moved
        (["fc.0.w", "fc.1.w", "fc.2.w"], ["fc.0.w", "fc.2.w"], ["fc.0.w", "fc.1.w", "fc.2.w"]),  # one is too many
        (["fc.1.w", "fc.3.w", "fc.5.w"], ["fc.0.w", "fc.1.w"], ["fc.0.w", "fc.1.w", "fc.5+.w"]),
        (["fc.9.w", "fc.10.w"], ["fc.0.w", "fc.1.w"], ["fc.0.w", "fc.1.w"]),  # by number, not by letter
        (["fc.02.w", "fc.1.w"], ["fc.3.w", "fc.4.w"], ["fc.4.w", "fc.3.w"]),
        (["a.1.b.3.w", "a.1.b.5.w"], ["a.0.b.0.w", "a.0.b.1.w"], ["a.0.b.0.w", "a.0.b.1.w"]),
        (["a.1", "a.1.w"], ["a.0", "a.0.w"], ["a.0", "a.0.w"]),
        (["x.w", "y.0.w"], ["z.w"], ["x.w", "y.0.w"]),
        (["fc.٣.w"], ["fc.0.w"], ["fc.٣.w"]),  # digits of other scripts are letters of a name
    ],
)
def test_numbers_of_lists_are_those_that_are_wanted(names, wanted, found):
    assert aligned(names, wanted) == dict(zip(names, found, strict=True))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True), st.data())
def test_the_nth_layer_here_is_the_nth_there(ours, data):
    theirs = data.draw(st.lists(st.integers(0, 30), min_size=len(ours), max_size=len(ours), unique=True))
    names = {f"m.{n}.w": f"m.{k}.w" for n, k in zip(sorted(ours), sorted(theirs), strict=True)}
    assert aligned(names, names.values()) == names
    counted = contiguous(f"m.{n}.w" for n in ours)
    assert [counted[f"m.{n}.w"] for n in sorted(ours)] == [f"m.{i}.w" for i in range(len(ours))]


@pytest.mark.parametrize(
    ("name", "found"),
    [("layer.Some.w", "layer.w"), ("Conv2d.w", "w"), ("a.Linear", "a.Linear"), ("a.LN.w", "a.LN.w"), ("A.w", "A.w")],
)
def test_variants_of_enums_are_left_out(name, found):
    assert without_variants(name) == found


def test_a_replacement_may_name_groups_as_burn_does() -> None:
    assert KeyRemapper([(r"norm(\d+)", "norm_$1")])("norm3.weight") == "norm_3.weight"
    assert KeyRemapper([(r"(?P<n>\d+)", "${n}_$n")])("a7") == "a7_7"
    assert KeyRemapper([(r"norm(\d+)", r"norm_\1")])("norm3") == "norm_3"
