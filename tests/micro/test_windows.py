"""Windows over images, as loops over every element say."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from emberlet.micro.builder.kernels.pool import window_counts
from emberlet.micro.builder.kernels.window import Window
from support.rows import every


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
