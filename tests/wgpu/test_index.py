"""Simplified index expressions have the same value."""

from __future__ import annotations

from emberlet.wgpu_backend.lower import index as ix


def test_splitting_and_merging_an_axis_cancels_out() -> None:
    g = ix.counter("g", 96)
    assert ix.flatten(ix.unflatten(g, (4, 6, 4)), (4, 6, 4)).key == g.key
    assert ix.flatten(ix.unflatten(ix.flatten(ix.unflatten(g, (8, 12)), (8, 12)), (2, 48)), (2, 48)).key == g.key


def test_negative_positions_are_rendered_as_wrapping_unsigned_arithmetic() -> None:
    at = ix.add(ix.counter("g", 8), ix.const(-1))
    assert ix.render(at, lambda a: "g") == "(g - 1u)"
