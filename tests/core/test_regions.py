"""Regions of images, cropped convolutions and transforms of other lengths than the signal's, against onnxruntime and
NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import ShapeError
from support.backends import array, same, tensor
from support.onnxruntime_node import run_node
from support.rows import every


@pytest.mark.parametrize("half_pixel", [True, False])
@every("ratio", [0, 1, 3])
@every("seed", range(3))
def test_roi_align_is_onnxruntimes(backend: Any, seed: int, ratio: int, half_pixel: bool) -> None:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(2, 2, 6, 8)).astype(np.float32)
    corner = draw.uniform(-2, 9, (3, 2))
    rois = np.concatenate([corner, corner + draw.uniform(0.1, 12, (3, 2))], 1).astype(np.float32)
    batch = np.array([1, 0, 1], np.int64)
    size = tuple(int(n) for n in draw.integers(1, 4, 2))
    scale = [1.0, 0.5, 0.7][seed]
    attributes = {
        "output_height": size[0], "output_width": size[1], "spatial_scale": scale, "sampling_ratio": ratio,
        "coordinate_transformation_mode": "half_pixel" if half_pixel else "output_half_pixel",
    }  # fmt: skip
    expected = run_node("RoiAlign", [x, rois, batch], **attributes)[0]
    found = F.roi_align(tensor(x), tensor(rois), tensor(batch), size, scale, ratio, half_pixel=half_pixel)
    same(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_max_roi_pool_is_onnxruntimes(backend: Any, seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(2, 2, 6, 8)).astype(np.float32)
    corner = draw.integers(-3, 12, (4, 2))
    rois = np.concatenate([draw.integers(0, 2, (4, 1)), corner, corner + draw.integers(-1, 9, (4, 2))], 1)
    size = [int(n) for n in draw.integers(1, 5, 2)]
    scale = [1.0, 0.5, 1.5, 0.7][seed]
    given = rois.astype(np.float32)
    expected = run_node("MaxRoiPool", [x, given], pooled_shape=size, spatial_scale=scale)[0]
    same(F.max_roi_pool(tensor(x), tensor(given), tuple(size), scale), expected)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_an_image_of_one_pixel_reflects_into_itself(backend: Any, mode: str, corners: bool) -> None:
    x = np.float32([[[[3.0, 4.0, 5.0]]]])
    grid = np.random.default_rng(1).uniform(-2, 2, (1, 2, 3, 2)).astype(np.float32)
    found = F.grid_sample(tensor(x), tensor(grid), mode, "reflection", corners)
    expected = run_node(
        "GridSample", [x, grid], opset=20, mode=mode, padding_mode="reflection", align_corners=int(corners)
    )
    same(found, expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", [((-1, 0), (0, -2)), ((-1, 2), (1, -1)), ((-2, -1), (3, 0))])
def test_negative_padding_of_a_convolution_crops(backend: Any, padding: Any) -> None:
    draw = np.random.default_rng(2)
    x, w = draw.normal(size=(1, 2, 6, 7)).astype(np.float32), draw.normal(size=(3, 2, 2, 3)).astype(np.float32)
    (top, bottom), (left, right) = padding
    cut = x[:, :, max(0, -top) : 6 - max(0, -bottom), max(0, -left) : 7 - max(0, -right)]
    pads = [max(0, top), max(0, left), max(0, bottom), max(0, right)]
    same(F.conv(tensor(x), tensor(w), padding=padding), run_node("Conv", [cut, w], pads=pads)[0], 1e-4, 1e-5)


@every("pads", ["valid", "same", "same_upper", "same_lower"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_by_name(backend: Any, pads: str, stride: int) -> None:
    if pads == "same" and stride > 1:
        return
    draw = np.random.default_rng(3)
    for kernel, dilation in (((2, 3), (1, 2)), ((4, 1), (1, 1))):
        x = draw.normal(size=(1, 2, 9, 8)).astype(np.float32)
        w = draw.normal(size=(3, 2, *kernel)).astype(np.float32)
        spread = np.zeros((3, 2, *[(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]), np.float32)
        spread[:, :, :: dilation[0], :: dilation[1]] = w  # onnxruntime has no dilation with named padding
        named = {"same": "SAME_UPPER"}.get(pads, pads.upper())
        expected = run_node("Conv", [x, spread], auto_pad=named, strides=[stride] * 2)
        found = F.conv(tensor(x), tensor(w), stride=stride, padding=pads, dilation=dilation)
        same(found, expected[0], 1e-4, 1e-5)


@pytest.mark.parametrize("onesided", [False, True])
@pytest.mark.parametrize("inverse", [False, True])
@every("length", [None, 3, 4, 5, 6, 7, 9])
@pytest.mark.parametrize("parts", [1, 2])
def test_a_transform_cuts_or_fills_its_signal(
    backend: Any, parts: int, length: Any, inverse: bool, onesided: bool
) -> None:
    x = np.random.default_rng(parts).normal(size=(2, 5, 3, parts)).astype(np.float32)
    signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    found = array(F.dft(tensor(x), length, 1, inverse, onesided))
    if inverse and onesided:
        wanted = np.fft.irfft(signal, 8 if length is None else length, axis=1)[..., None]
    elif inverse:
        wanted = np.fft.ifft(signal, length, axis=1)
    else:
        wanted = np.fft.fft(signal, length, axis=1)
        wanted = wanted[:, : wanted.shape[1] // 2 + 1] if onesided else wanted
    if np.iscomplexobj(wanted):
        wanted = np.stack([wanted.real, wanted.imag], -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("width", "length"), [(4, 4), (4, 6), (3, 8), (None, 5), (5, None)])
def test_frames_of_a_signal_are_transformed_one_by_one(backend: Any, width: Any, length: Any) -> None:
    draw = np.random.default_rng(4)
    x = draw.normal(size=(2, 19)).astype(np.float32)
    window = None if width is None else draw.normal(size=width).astype(np.float32)
    n = length or width
    factors = np.ones(n) if window is None else np.zeros(n)
    if window is not None:
        factors[(n - width) // 2 : (n - width) // 2 + width] = window
    frames = np.stack([x[:, i : i + n] * factors for i in range(0, 19 - n + 1, 3)], 1)
    given = None if window is None else tensor(window)
    for onesided, wanted in ((True, np.fft.rfft(frames)), (False, np.fft.fft(frames))):
        found = array(F.stft(tensor(x), 3, given, length, onesided))
        np.testing.assert_allclose(found, np.stack([wanted.real, wanted.imag], -1), rtol=1e-4, atol=2e-5)
    with pytest.raises(ShapeError, match="needs 20"):
        F.stft(tensor(x), 3, frame_length=20)
    with pytest.raises(ShapeError, match="frame_length"):
        F.stft(tensor(x), 3)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman"])
@every("length", [0, 1, 2, 5, 8])
def test_window_functions_are_scipys(backend: Any, name: str, length: int) -> None:
    from scipy.signal import windows

    for periodic in (True, False):
        if name == "hamming":  # ONNX's coefficients are 25/46 and 21/46 in place of 0.54 and 0.46
            expected = windows.general_cosine(length, [25 / 46, 21 / 46], sym=not periodic)
        else:
            expected = getattr(windows, name)(length, sym=not periodic)
        found = getattr(F, f"{name}_window")(length, periodic, dtype="float64")
        np.testing.assert_allclose(array(found), expected if length != 1 or not periodic else found, atol=1e-12)
    with pytest.raises(ShapeError, match="-1 samples"):
        getattr(F, f"{name}_window")(-1)


@pytest.mark.parametrize(
    ("mels", "length", "rate", "low", "high"), [(8, 16, 8192, 0, 4096), (5, 33, 16000, 100.5, 7000)]
)
def test_mel_filters_are_onnxruntimes(backend: Any, mels: int, length: int, rate: int, low: float, high: float) -> None:
    scalars = [np.array(v, np.int64) for v in (mels, length, rate)] + [np.array(v, np.float32) for v in (low, high)]
    expected = run_node("MelWeightMatrix", scalars, opset=17)[0]
    same(F.mel_weight_matrix(mels, length, rate, low, high), expected, rtol=1e-5, atol=1e-6)
    for wrong in ((0, 16), (1 << 20, 1 << 12), (4, -4)):
        with pytest.raises(ShapeError, match="cannot be made"):
            F.mel_weight_matrix(*wrong, rate, low, high)
