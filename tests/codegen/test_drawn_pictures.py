"""Pictures of drawn boxes, and the boxes of drawn networks, are as recorded.

`UPDATE_SNAPSHOTS=1 pytest FILE` records them again after a deliberate change: look at a picture of before and after.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest
from emberlet.codegen.picture.page import as_html
from emberlet.codegen.picture.svg import as_svg
from emberlet.codegen.picture.text import as_text
from emberlet.codegen.picture.tree import PLAIN, TOP, Box, Edge, tree
from support.drawn_modules import Drawn
from support.drawn_networks import DrawnNetwork
from support.nameless import stripped
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "snapshots" / "drawn_pictures.txt"
NAMES = ["conv1", "a", "Million_wide", "layers.0 … 11", "f(x)", "<&>", "größe", "encoder.layer", "il"]
SHAPES = ["(batch, 3)", "(batch, 12, length, 64)", "()", "", "(1,), (2,)"]


def drawn(draw: random.Random, depth: int) -> Box:
    """A box with boxes, some of them alike, and arrows between them."""
    if depth == 0 or draw.random() < 0.3:
        weights = draw.choice([0, 0, 7, 999, 1000, 45_678, 10**6, 1_234_567_890, 5 * 10**12])
        detail = draw.choice(["", "fc.weight"]) if weights else ""
        return Box(draw.choice(["Conv", "MatMul", "Add"]), PLAIN, weights, draw.choice([0, 12, 10**9, 999_999]),
                   draw.choice(SHAPES), draw.choice(SHAPES), draw.choice([1, 1, 3]), detail)  # fmt: skip
    boxes: list[Box] = []
    for _ in range(draw.randint(1, 4)):
        boxes.append(drawn(draw, depth - 1) if not boxes or draw.random() < 0.7 else boxes[-1])
    edges = [Edge(i - 1, i, draw.choice(SHAPES)) for i in range(len(boxes) + 1) if draw.random() < 0.8]
    for _ in range(draw.randint(0, 3)):  # arrows that skip boxes
        start = draw.randint(TOP, len(boxes) - 1)
        edges.append(Edge(start, draw.randint(start + 1, len(boxes)), draw.choice(SHAPES)))
    name, kind = draw.choice(NAMES), draw.choice(["Block", "Layer", "Model"])
    given = draw.choice(SHAPES), draw.choice(SHAPES)
    return Box(name, kind, sum(b.weights for b in boxes), sum(b.flops for b in boxes), *given,
               draw.choice([1, 1, 1, 4]), "", boxes, sorted(set(edges), key=repr))  # fmt: skip


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_drawn_boxes_look_as_recorded(first: int) -> None:
    lines = []
    for seed in range(first, first + 10):
        draw = random.Random(seed)
        box = drawn(draw, draw.randint(1, 4))
        made = [as_svg(box), as_html(box), as_text(box)]
        for depth in (0, 1, 2):
            made += [as_svg(box, depth, "a <note>"), as_html(box, depth, "a <note>"), as_text(box, depth, depth > 1)]
        lines.append(f"{seed}: {' '.join(map(digest, made))}")
    assert_recorded(RECORDED, f"boxes from {first} on", "\n".join(lines))


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_the_boxes_of_drawn_networks_are_as_recorded(first: int) -> None:
    lines = []
    for seed in range(first, first + 4):
        for label, model in (("modules", Drawn(seed).model()), ("network", DrawnNetwork(seed).model())):
            found = tree(model, sizes={"batch": 3})
            edges = [e for box in (found, *found.boxes) for e in box.edges]
            lines.append(f"{seed}, {label}: {found.weights} {found.flops} {digest(as_text(found) + repr(edges))}")
            lines.append(f"{seed}, {label} without names: {digest(as_text(tree(stripped(model, seed))))}")
    assert_recorded(RECORDED, f"networks from {first} on", "\n".join(lines))
