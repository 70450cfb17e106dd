"""F.masked_mean, the mean of the elements that a mask selects from a sequence, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet import asarray
from emberlet import functional as F
from emberlet.errors import ShapeError
from support.rows import every


@every("kind", [np.bool_, np.int64, np.float32])
@pytest.mark.parametrize("rest", [(), (4,), (2, 3)])
def test_a_masked_mean_is_that_of_the_selected_elements(backend, kind, rest):
    x = np.random.default_rng(0).standard_normal((3, 5, *rest)).astype(np.float32)
    mask = np.array([[1, 1, 0, 0, 1], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    got = F.masked_mean(asarray(x, backend=backend), asarray(mask.astype(kind), backend=backend))
    want = np.stack([row[chosen == 1].mean(axis=0) for row, chosen in zip(x, mask, strict=True)])
    assert got.shape == (3, *rest)
    np.testing.assert_allclose(np.array(got.tolist(), np.float32), want, rtol=0, atol=1e-6)


def test_nothing_selected_gives_zero_and_numbers_are_weights(backend):
    x = asarray([[[2.0], [4.0]], [[6.0], [8.0]]], backend=backend)
    mask = asarray([[0.0, 0.0], [1.0, 3.0]], backend=backend)
    assert F.masked_mean(x, mask).tolist() == [[0.0], [7.5]]
    assert F.masked_mean(x, mask, least=8.0).tolist() == [[0.0], [3.75]]


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 5, 1)])
def test_a_mask_of_another_shape_is_refused(backend, shape):
    with pytest.raises(ShapeError, match=r"masked_mean needs x \(batch, length, \.\.\.\) and mask \(batch, length\)"):
        F.masked_mean(asarray(np.zeros((3, 5, 2), np.float32), backend=backend), F.zeros(shape, backend=backend))
