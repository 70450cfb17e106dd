"""Windows over images, and shapes as images, as loops over every element say."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from emberlet.micro.builder.kernels.layer import as_image, dense_view
from emberlet.micro.builder.kernels.pool import window_counts
from emberlet.micro.builder.kernels.slide import Slide
from emberlet.micro.builder.kernels.window import Window, best_unroll, offsets, window_loops
from emberlet.micro.builder.program import Program, Step
from support.microcontrollers.in_python import run_in_python
from support.rows import every

SHAPES = {
    (): (1, 1, 1),
    (5,): (1, 1, 5),
    (4, 5): (1, 4, 5),
    (3, 4, 5): (3, 4, 5),
    (2, 3, 4, 5): (6, 4, 5),
    (2, 2, 3, 4, 5): (12, 4, 5),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_is_an_image(shape: tuple[int, ...]) -> None:
    h, w, c = SHAPES[shape]
    assert as_image(shape) == (h, w, c)
    view = dense_view(shape)
    assert (view.shape, view.pitch, view.origin, view.row) == ((h, w, c), w * c, 0, w * c)


def windows() -> list[Window]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(60):
        kernel, strides, dilations = ((int(a), int(b)) for a, b in rng.integers(1, 4, (3, 2)))
        top, left, bottom, right = (int(v) for v in rng.integers(0, 3, 4))
        made.append(Window(kernel, strides, dilations, (top, left, bottom, right)))
    return made


def covered(window: Window, h: int, w: int) -> list[list[tuple[int, int]]]:
    """For each position the places that it covers, those in the padding included."""
    top, left, bottom, right = window.pads
    (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.strides, window.dilations
    rows = [y for y in range(-top, h + bottom, sy) if y + (kh - 1) * dy < h + bottom]
    columns = [x for x in range(-left, w + right, sx) if x + (kw - 1) * dx < w + right]
    return [[(y + i * dy, x + j * dx) for i in range(kh) for j in range(kw)] for y, x in product(rows, columns)]


@every("window", windows())
def test_a_window_covers_what_loops_say(window: Window) -> None:
    for h, w in ((1, 1), (4, 3), (5, 7)):
        places = covered(window, h, w)
        if prod(window.output(h, w)) == 0:
            assert places == []
            continue
        assert prod(window.output(h, w)) == len(places)
        x = np.arange(1, h * w * 2 + 1).reshape(h, w, 2)
        patches = window.patches(x, -5).reshape(len(places), -1, 2)
        inside = [[0 <= i < h and 0 <= j < w for i, j in one] for one in places]
        for patch, one, ins in zip(patches, places, inside, strict=True):
            due = [x[at].tolist() if is_in else [-5, -5] for at, is_in in zip(one, ins, strict=True)]
            assert patch.tolist() == due
        counts = [sum(ins) for ins in inside]
        assert window_counts(window, h, w) == (tuple(counts) if len(set(counts)) > 1 else (counts[0],))
        whole = len(places[0])
        assert window_counts(window, h, w, window.pads) == (whole,)


@every("window", windows()[:20])
@pytest.mark.parametrize(("channels", "run"), [(1, 1), (4, 4), (6, 3)])
def test_loops_over_a_window_reach_each_of_its_elements(window: Window, channels: int, run: int) -> None:
    (kh, kw), (dy, dx), pitch = window.kernel, window.dilations, 9 * channels
    loops, length = window_loops(window, pitch, channels, run)
    due = [i * dy * pitch + j * dx * channels + k for i in range(kh) for j in range(kw) for k in range(run)]
    assert offsets(loops, length) == due
    assert all(n > 1 for n, _ in loops)


def test_loops_are_merged_where_runs_adjoin() -> None:
    assert window_loops(Window((3, 3)), 12, 4, 4) == ((), 36)
    assert window_loops(Window((3, 3)), 16, 4, 4) == (((3, 16),), 12)
    assert window_loops(Window((3, 3)), 12, 4, 2) == (((9, 4),), 2)
    assert window_loops(Window((3, 1)), 12, 4, 4) == (((3, 12),), 4)
    assert window_loops(Window((1, 3), dilations=(1, 2)), 12, 4, 4) == (((3, 8),), 4)


@pytest.mark.parametrize(("run", "unroll"), [(64, 32), (33, 32), (51, 17), (48, 24), (62, 31), (97, 32), (1000, 25)])
def test_a_loop_takes_as_many_steps_at_once_as_leave_the_smallest_remainder(run: int, unroll: int) -> None:
    assert best_unroll(run) == unroll
    assert run % unroll == min(run % u for u in range(16, 33))


@pytest.mark.parametrize(("shape", "axis", "new"), [((5, 3), 0, 1), ((5, 3), 0, 4), ((2, 4, 3), 1, 2), ((4, 9), 1, 5)])
def test_a_window_over_time_slides_in_place(shape: tuple[int, ...], axis: int, new: int) -> None:
    size, given = prod(shape), (*shape[:axis], new, *shape[axis + 1 :])
    layer = Slide("slide", ("s", "x"), "s", shape, axis, new)
    before, added = np.arange(size).reshape(shape), 100 + np.arange(prod(given)).reshape(given)
    views = (dense_view(shape), dense_view(given))
    step = Step(layer, views, views[0], {"i0": 0, "o": 0, "i1": size, "wo": 0, "to": 0})
    arena = np.concatenate([before.reshape(-1), added.reshape(-1)]).astype(np.uint8)
    program = Program("m", False, (step,), (), (), arena.size, np.empty(0, np.uint8), ())
    out = run_in_python(program, arena.tobytes())[:size].reshape(shape)
    due = np.concatenate([np.split(before, [new], axis)[1], added], axis)
    assert (out == due).all() and (layer.reference(before, added) == due).all()
