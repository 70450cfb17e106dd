"""The discrete Fourier transform by numpy.fft."""

from __future__ import annotations

import numpy as np

from .storage import Array


def dft(x: Array, length: int, axis: int, inverse: bool, onesided: bool) -> Array:
    """`emberlet.functional.dft` on an array (…, n, …, 1 or 2); axis is non-negative."""
    signal = (
        x[..., 0] if x.shape[-1] == 1 else x[..., 0] + np.array(1j, np.result_type(x.dtype, np.complex64)) * x[..., 1]
    )
    if inverse and onesided:
        if not x.shape[axis]:  # NumPy would read memory that nobody wrote
            signal = np.zeros((*signal.shape[:axis], 1, *signal.shape[axis + 1 :]), signal.dtype)
        return np.fft.irfft(signal, length, axis)[..., np.newaxis].astype(x.dtype)
    if inverse:
        spectrum = np.fft.ifft(signal, length, axis)
    elif onesided and x.shape[-1] == 1:
        spectrum = np.fft.rfft(signal, length, axis)
    else:
        spectrum = np.fft.fft(signal, length, axis)
        if onesided:
            spectrum = np.take(spectrum, range(length // 2 + 1), axis)
    return np.stack((spectrum.real, spectrum.imag), axis=-1).astype(x.dtype)
