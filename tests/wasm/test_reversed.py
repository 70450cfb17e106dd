"""Products and convolutions of operands that run backward in memory, against NumPy."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F

AXES = [(), (0,), (1,), (0, 1)]


def both(function, *shapes):
    """The results of WebAssembly and of NumPy for random inputs."""
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    found = [np.asarray(function(*[emberlet.asarray(x, backend=b) for x in inputs])) for b in ("wasm", "numpy")]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 16), (1, 64, 64), (5, 8, 16), (4, 9, 33), (16, 36, 48)])
@pytest.mark.parametrize("left", AXES)
@pytest.mark.parametrize("right", AXES)
def test_products_of_reversed_matrices(shape, left, right):
    m, k, n = shape
    both(lambda x, y: F.flip(x, axis=left) @ F.flip(y, axis=right), (m, k), (k, n))


@pytest.mark.parametrize("kernel", [(3, 3), (2, 2), (1, 4)])
@pytest.mark.parametrize("channels", [(1, 2), (4, 2), (1, 4), (2, 3)])
def test_transposed_convolutions_with_few_channels(channels, kernel):
    both(F.conv_transpose, (1, channels[0], 6, 11), (*channels, *kernel))


@pytest.mark.parametrize("image, weight, groups", [((1, 8, 9, 8), (16, 2, 3, 3), 4), ((2, 3, 17, 8), (4, 3, 1, 3), 1)])
@pytest.mark.parametrize("axes", [(1,), (3,), (1, 3), (2, 3)])
def test_convolutions_of_reversed_images(image, weight, groups, axes):
    # The first and the last of eight pixels may be as far apart as neighbors are, with others between them.
    both(lambda x, w: F.conv(F.flip(x, axis=axes), w, groups=groups), image, weight)
