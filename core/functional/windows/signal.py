"""Signal processing: window functions, discrete Fourier transforms, mel filters (ONNX DFT, STFT, HannWindow,
MelWeightMatrix, …).

Complex numbers are a last axis of length 2 (real, imaginary), as in ONNX.
"""

import math

from ... import dtypes
from ...backend import get_backend, operation
from ...errors import ShapeError
from ...shapes import axis_of
from ..operands import floating, like
from ..overriding import composite

_DIRECT = 64  # transforms up to this length are one matrix product; longer even ones are halved first


def _cosine_window(length, coefficients, periodic, dtype, backend):
    length = int(length)
    if length < 0 or length > 1 << 28:
        raise ShapeError("a window of {} samples cannot be made".format(length))
    steps = length if periodic else length - 1
    values = []
    for i in range(length):
        angle = 2 * math.pi * i / steps if steps else 0.0
        values.append(sum([c * math.cos(angle * j) for j, c in enumerate(coefficients)]))
    if length == 1 and not periodic:
        values = [1.0]  # the formula is 0 / 0; NumPy and SciPy return 1, the middle of a longer window
    return get_backend(backend).from_list(values, dtypes.dtype(dtype or dtypes.float32), (length,))


#: function; ONNX HannWindow
def hann_window(length, periodic=True, *, dtype=None, backend=None):
    """Hann window of `length` samples: 0.5 - 0.5 cos; periodic for spectra, symmetric for filters."""
    return _cosine_window(length, (0.5, -0.5), periodic, dtype, backend)


#: function; ONNX HammingWindow
def hamming_window(length, periodic=True, *, dtype=None, backend=None):
    """Hamming window with ONNX's coefficients, 25/46 and 21/46."""
    return _cosine_window(length, (25 / 46, -21 / 46), periodic, dtype, backend)


#: function; ONNX BlackmanWindow
def blackman_window(length, periodic=True, *, dtype=None, backend=None):
    """Blackman window: 0.42 - 0.5 cos + 0.08 cos 2."""
    return _cosine_window(length, (0.42, -0.5, 0.08), periodic, dtype, backend)


def _twiddles(count, length, x):
    """cos and sin of 2π j k / length for j, k below `count` and `length`: matrices (length, count) like x."""
    cos, sin = [], []
    circle = [2 * math.pi * i / length for i in range(length)]
    for j in range(length):
        for k in range(count):
            angle = circle[j * k % length]
            cos.append(math.cos(angle))
            sin.append(math.sin(angle))
    shape = (length, count)
    return x.backend.from_list(cos, x.dtype, shape), x.backend.from_list(sin, x.dtype, shape)


def _transform(real, imag):
    """Forward transform along the last axis of (real, imag); imag may be None (all zero)."""
    n = real.shape[-1]
    if n % 2 == 0 and n > _DIRECT:
        return _halved(real, imag, n)
    cos, sin = _twiddles(n, n, real)
    if real.ndim == 1:
        real, imag = real.reshape((1, n)), None if imag is None else imag.reshape((1, n))
        out = _product(real, imag, cos, sin)
        return out[0].reshape((n,)), out[1].reshape((n,))
    return _product(real, imag, cos, sin)


def _product(real, imag, cos, sin):
    if imag is None:
        return real @ cos, -(real @ sin)
    return real @ cos + imag @ sin, imag @ cos - real @ sin


def _halved(real, imag, n):
    # Cooley-Tukey: the transforms of the even and the odd samples, the latter times their twiddle factors.
    from ..movement.joining import concat

    half = n // 2

    def part(x, which):
        return (
            None
            if x is None
            else x.reshape(x.shape[:-1] + (half, 2)).narrow(-1, which, 1).reshape(x.shape[:-1] + (half,))
        )

    even_real, even_imag = _transform(part(real, 0), part(imag, 0))
    odd_real, odd_imag = _transform(part(real, 1), part(imag, 1))
    angles = [2 * math.pi * i / n for i in range(half)]
    cos = real.backend.from_list([math.cos(a) for a in angles], real.dtype, (half,))
    sin = real.backend.from_list([math.sin(a) for a in angles], real.dtype, (half,))
    turned_real, turned_imag = odd_real * cos + odd_imag * sin, odd_imag * cos - odd_real * sin
    return (
        concat((even_real + turned_real, even_real - turned_real), axis=-1),
        concat((even_imag + turned_imag, even_imag - turned_imag), axis=-1),
    )


#: function; ONNX DFT
def dft(x, length=None, axis=-2, inverse=False, onesided=False):
    """Discrete Fourier transform of x (…, n, …, 1 or 2) along `axis`, truncated or zero-padded to `length`.

    Returns (…, length, …, 2). onesided: forward, only the first length // 2 + 1 frequencies; inverse, x holds those and
    the result is real, (…, length, …, 1). The inverse divides by length. Raises ShapeError unless the last axis has
    length 1 or 2.
    """
    from ..movement.joining import concat, stack

    x = floating(x)
    axis = axis_of(axis, x.ndim)
    if x.ndim < 2 or x.shape[-1] not in (1, 2) or axis == x.ndim - 1:
        raise ShapeError("dft: the last axis must have length 1 (real) or 2 (complex), found shape {}".format(x.shape))
    if length is None:
        length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    length = int(length)
    if length < 1:
        raise ShapeError("dft: a length of 1 or more is needed, found {} for shape {}".format(length, x.shape))
    native = operation(x.backend, "dft")
    if native:
        return native(x, length, axis, inverse, onesided)
    wanted = length // 2 + 1 if inverse and onesided else length
    if x.shape[axis] > wanted:
        x = x.narrow(axis, 0, wanted)
    elif x.shape[axis] < wanted:
        x = x.backend.pad(x, tuple([(0, wanted - x.shape[axis] if i == axis else 0) for i in range(x.ndim)]), 0)
    parts = [x.narrow(x.ndim - 1, i, 1).reshape(x.shape[:-1]).moveaxis(axis, -1) for i in range(x.shape[-1])]
    real, imag = parts[0], parts[1] if len(parts) == 2 else None
    if inverse:
        if imag is None:
            imag = real * 0
        if onesided:
            mirrored = (length - 1) // 2
            real = concat((real, real.narrow(-1, 1, mirrored).flip(-1)), axis=-1)
            # In the spectrum of a real signal the imaginary parts at both ends are 0, so they are ignored.
            middle = imag.narrow(-1, 1, mirrored)
            ends = [middle.backend.full(imag.shape[:-1] + (1,), 0, imag.dtype)]
            nyquist = ends if length % 2 == 0 else []
            imag = concat(ends + [middle] + nyquist + [-middle.flip(-1)], axis=-1)
        real, imag = _transform(real, -imag)
        real, imag = real / length, -imag / length
        if onesided:
            return real.moveaxis(-1, axis).expand_dims(-1)
    else:
        real, imag = _transform(real, imag)
        if onesided:
            real, imag = real.narrow(-1, 0, length // 2 + 1), imag.narrow(-1, 0, length // 2 + 1)
    return stack((real.moveaxis(-1, axis), imag.moveaxis(-1, axis)), axis=-1)


def _centered(window, length, what):
    """window with zeros around it, `length` samples. Raises ShapeError for a window of more."""
    n = window.shape[0]
    if n > length:
        raise ShapeError("{}: a window of {} samples does not fit into frames of {}".format(what, n, length))
    low = (length - n) // 2
    return window if n == length else window.backend.pad(window, ((low, length - n - low),), 0)


#: function; ONNX STFT; frame_step: int; frame_length: int; window: TensorLike
@composite
def stft(signal, frame_step, window=None, frame_length=None, onesided=True):
    """Short-time Fourier transform: signal (batch, n) or (batch, n, 1 or 2) -> (batch, frames, bins, 2).

    frames = 1 + (n - frame_length) // frame_step; no padding. A window shorter than frame_length is centered (PyTorch);
    without frame_length, the window's length is used. Raises ShapeError for a frame of no samples, of more than the
    signal has, or of fewer than the window.
    """
    signal = floating(signal)
    if signal.ndim == 2:
        signal = signal.expand_dims(-1)
    if signal.ndim != 3 or (window is not None and len(window.shape) != 1) or frame_step < 1:
        raise ShapeError(
            "stft needs a signal (batch, n) or (batch, n, 1 or 2), a window of one axis and a step of 1 or more, found "
            "{}, {} and {}".format(signal.shape, None if window is None else window.shape, frame_step)
        )
    if frame_length is None:
        if window is None:
            raise ShapeError("stft needs frame_length, window or both")
        frame_length = window.shape[0]
    frame_length, frame_step = int(frame_length), int(frame_step)
    batch, n, parts = signal.shape
    if frame_length < 1:
        raise ShapeError("stft: a frame has 1 sample or more, found frame_length {}".format(frame_length))
    if n < frame_length:
        raise ShapeError("stft: the signal has {} samples, one frame needs {}".format(n, frame_length))
    frames = 1 + (n - frame_length) // frame_step
    backend = signal.backend
    index = [f * frame_step + i for f in range(frames) for i in range(frame_length)]
    framed = backend.reshape(
        backend.take(signal, backend.from_list(index, dtypes.int32, (len(index),)), 1),
        (batch, frames, frame_length, parts),
    )
    if window is not None:
        framed = framed * _centered(like(window, signal), frame_length, "stft").reshape((frame_length, 1))
    return dft(framed, frame_length, 2, False, onesided and parts == 1)


#: function; Burn istft; spectrum: TensorLike; frame_step: int; frame_length: int; window: TensorLike
@composite
def istft(spectrum, frame_step, window=None, frame_length=None, onesided=True, length=None):
    """The inverse of `stft` of a real signal: spectrum (batch, frames, bins, 2) -> (batch, n).

    Frames overlap and are added, each sample divided by the sum of the squared windows over it; where that is 0, the
    sample is 0. frame_length: by default the window's, or what the bins tell; length: cuts the result or fills it with
    zeros. Raises ShapeError for frames of fewer samples than the window or of other bins.
    """
    from ..elementwise.comparison import where
    from .patches import col2im

    spectrum = floating(spectrum)
    if spectrum.ndim != 4 or spectrum.shape[-1] != 2 or frame_step < 1:
        raise ShapeError("istft needs (batch, frames, bins, 2) and a step of 1 or more, found shape {} and {}".format(
            spectrum.shape, frame_step))  # fmt: skip
    batch, frames, bins, _ = spectrum.shape
    if frame_length is None:
        frame_length = window.shape[0] if window is not None else 2 * (bins - 1) if onesided else bins
    n = (frames - 1) * frame_step + frame_length
    if bins != (frame_length // 2 + 1 if onesided else frame_length) or frames < 1:
        raise ShapeError("istft: {} frames of {} bins are not those of frames of {} samples".format(
            frames, bins, frame_length))  # fmt: skip
    samples = dft(spectrum, frame_length, 2, True, onesided)[..., 0]
    backend = spectrum.backend
    if window is None:
        weights = backend.full((frame_length,), 1, samples.dtype)
    else:
        weights = _centered(like(window, samples), frame_length, "istft")
    columns = (samples * weights).permute(0, 2, 1)
    squares = (weights * weights).reshape((1, frame_length, 1)) * backend.full((1, 1, frames), 1, samples.dtype)
    total = col2im(columns, (n,), (frame_length,), (frame_step,)).reshape((batch, n))
    share = col2im(squares, (n,), (frame_length,), (frame_step,)).reshape((1, n))
    known = share > 1e-11
    out = where(known, total / where(known, share, 1.0), 0.0)
    if length is not None and length < n:
        return out[:, :length]
    return out if length is None else backend.pad(out, ((0, 0), (0, length - n)), 0)


#: function; ONNX MelWeightMatrix; num_mel_bins: int; dft_length: int; sample_rate: int; lower_edge_hertz: float;
#:   upper_edge_hertz: float
def mel_weight_matrix(
    num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz, *, dtype=None, backend=None
):
    """Triangular mel filters (dft_length // 2 + 1, num_mel_bins), as ONNX defines them (HTK mel scale)."""
    mels, rows = int(num_mel_bins), int(dft_length) // 2 + 1
    if mels < 1 or rows < 1 or mels * rows > 1 << 28 or sample_rate < 1 or min(lower_edge_hertz, upper_edge_hertz) < 0:
        raise ShapeError(
            "a matrix of {} frequencies by {} mel bins from {} to {} Hz cannot be made at a rate of {}".format(
                rows, mels, lower_edge_hertz, upper_edge_hertz, sample_rate
            )
        )

    def mel(hertz):
        return 2595 * math.log10(1 + hertz / 700)

    low = mel(float(lower_edge_hertz))
    step = (mel(float(upper_edge_hertz)) - low) / (mels + 2)
    edges = []
    for i in range(mels + 2):
        hertz = 700 * (10 ** ((i * step + low) / 2595) - 1)
        edges.append(int((int(dft_length) + 1) * hertz // int(sample_rate)))
    matrix = [0.0] * (rows * mels)
    for m in range(mels):
        left, center, right = edges[m : m + 3]
        if left == center:
            matrix[center * mels + m] = 1.0
        for j in range(left, center + 1):
            if left != center:
                matrix[j * mels + m] = (j - left) / (center - left)
        for j in range(center, right):
            matrix[j * mels + m] = (right - j) / (right - center)
    return get_backend(backend).from_list(matrix, dtypes.dtype(dtype or dtypes.float32), (rows, mels))
