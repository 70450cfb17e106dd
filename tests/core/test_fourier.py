"""Fourier transforms of any length, including lengths that are halved on the way, against NumPy's."""

from __future__ import annotations

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

LENGTHS = [1, 2, 3, 7, 30, 64, 65, 66, 96, 100, 128, 130, 192, 256, 270, 520]


@pytest.mark.parametrize("name", ["python", "numpy"])
@every("n", LENGTHS)
def test_a_transform_of_any_length_is_numpys(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n, 2)).astype(np.float32)
    signal = x[..., 0] + 1j * x[..., 1]
    given, real = (emberlet.asarray(a, backend=name) for a in (x, np.ascontiguousarray(x[..., :1])))

    def close(found: emberlet.Tensor, wanted: np.ndarray) -> None:
        pairs = np.stack([wanted.real, wanted.imag], -1)
        np.testing.assert_allclose(np.array(found.tolist()), pairs, 1e-4, 2e-5 * np.abs(pairs).max())

    close(F.dft(given, axis=1), np.fft.fft(signal))
    close(F.dft(given, axis=1, inverse=True), np.fft.ifft(signal))
    close(F.dft(real, axis=1), np.fft.fft(x[..., 0]))
    close(F.dft(real, axis=1, onesided=True), np.fft.rfft(x[..., 0]))
