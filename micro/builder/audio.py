"""The features of `emberlet.micro.audio` and `emberlet.micro.mfcc` in NumPy, to train models with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from emberlet.micro.audio import band_edges
from emberlet.micro.mfcc import bands_of_bins

Array = npt.NDArray[np.float64]


def filters(rate: int, size: int, count: int, low: float, high: float) -> Array:
    """The weights of each band: (bands, bins)."""
    edges = band_edges(rate, size, count, low, high)
    bins = np.arange(size // 2)
    rows = []
    for a, b, c in zip(edges, edges[1:], edges[2:], strict=False):
        rows.append(np.clip(np.minimum((bins - a) / (b - a), (c - bins) / (c - b)), 0, None))
    return np.array(rows)


def log_mel(
    samples: npt.ArrayLike,
    rate: int = 16000,
    size: int = 512,
    hop: int = 256,
    count: int = 32,
    low: float = 60,
    high: float = 7600,
) -> npt.NDArray[np.float32]:
    """Features of 16-bit samples: (frames, bands), the base-2 logarithm of each band's power, at least 0.

    The options are those of `LogMel`, which computes the same features in integers on the device.
    """
    x = np.asarray(samples, np.float64)
    frames = 1 + (len(x) - size) // hop if len(x) >= size else 0
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    weights = filters(rate, size, count, low, high)
    rows = np.empty((frames, count), np.float32)
    for k in range(frames):
        spectrum = np.fft.rfft(x[k * hop : k * hop + size] * window)[: size // 2] / size
        power = weights @ (np.abs(spectrum) ** 2)
        rows[k] = np.log2(np.maximum(power, 1))
    return rows


def mfcc(
    samples: npt.ArrayLike,
    rate: int = 16000,
    size: int = 640,
    hop: int = 320,
    count: int = 40,
    coefficients: int = 10,
    low: float = 20,
    high: float = 4000,
) -> npt.NDArray[np.float32]:
    """MFCC of 16-bit samples: (frames, coefficients), those of TensorFlow's `Mfcc` of its `AudioSpectrogram` (squared)
    of samples / 32768.

    The options are those of `Mfcc`, which computes the same in integers on the device. Raises ValueError for
    frequencies that it refuses. Sources:
    tensorflow/lite/kernels/internal/{spectrogram,mfcc,mfcc_dct,mfcc_mel_filterbank}.cc.
    """
    x = np.asarray(samples, np.float64) / 32768
    frames = 1 + (len(x) - size) // hop if len(x) >= size else 0
    length = 1 << max(3, (size - 1).bit_length())
    first, bands, shares = bands_of_bins(rate, length, count, low, high)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    weights = np.zeros((count + 2, len(bands)))
    weights[np.array(bands) + 1, range(len(bands))] = np.array(shares) / 2**28
    weights[np.array(bands) + 2, range(len(bands))] = 1 - np.array(shares) / 2**28
    angles = np.outer(np.arange(coefficients), (np.arange(count) + 0.5) * np.pi / count)
    rows = np.empty((frames, coefficients), np.float32)
    for k in range(frames):
        spectrum = np.abs(np.fft.rfft(x[k * hop : k * hop + size] * window, length))
        energies = (weights @ spectrum[first : first + len(bands)])[1:-1]
        rows[k] = np.sqrt(2 / count) * np.cos(angles) @ np.log(np.maximum(energies, 1e-12))
    return rows
