"""Frame buffers are reduced to a model's input by the mean of each box, with the same bytes on every port."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from emberlet.micro.image import Shrink, levels

from tools.micropython import Port

Array = np.ndarray[Any, Any]
IDENTITY = levels(1 / 255, 0)


def boxes(x: Array, width: int, height: int) -> Array:
    """The mean of each box: (height, width, channels), not rounded."""
    h, w = x.shape[:2]
    out = np.empty((height, width, x.shape[2]))
    for r in range(height):
        for c in range(width):
            box = x[r * h // height : (r + 1) * h // height, c * w // width : (c + 1) * w // width]
            out[r, c] = box.reshape(-1, x.shape[2]).mean(0)
    return out


def rgb565(rgb: Array, swapped: bool) -> bytes:
    r, g, b = (rgb[..., k].astype(int) for k in range(3))
    word = (r >> 3) << 11 | (g >> 2) << 5 | b >> 3
    return (bool(swapped) and word.astype(">u2").tobytes()) or word.astype("<u2").tobytes()


def pictures(seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (23, 31, 3)).astype(np.uint8)


def test_gray_is_averaged() -> None:
    x = pictures()[..., :1]
    out = bytearray(7 * 5)
    Shrink((31, 23), (7, 5), IDENTITY, "gray")(x.tobytes(), out)
    assert np.abs(np.frombuffer(out, np.uint8).reshape(5, 7, 1) - boxes(x, 7, 5)).max() <= 0.51


def test_rgb_is_averaged() -> None:
    out = bytearray(7 * 5 * 3)
    Shrink((31, 23), (7, 5), IDENTITY, "rgb", channels=3)(pictures().tobytes(), out)
    assert np.abs(np.frombuffer(out, np.uint8).reshape(5, 7, 3) - boxes(pictures(), 7, 5)).max() <= 0.51


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_rgb565_is_averaged(swapped: bool, channels: int) -> None:
    x = pictures()
    source = "rgb565_swapped" if swapped else "rgb565"
    out = bytearray(7 * 5 * channels)
    Shrink((31, 23), (7, 5), IDENTITY, source, channels)(rgb565(x, swapped), out)
    five, six = (x >> 3) * (255 / 31), (x >> 2) * (255 / 63)
    exact = boxes(np.stack([five[..., 0], six[..., 1], five[..., 2]], -1), 7, 5)
    if channels == 1:
        exact = exact @ np.array([[0.299], [0.587], [0.114]])
    assert np.abs(np.frombuffer(out, np.uint8).reshape(5, 7, channels) - exact).max() <= 1.6


def test_levels_are_what_the_model_takes() -> None:
    table = levels(0.05, 100, mean=127, deviation=32)
    for v in (0, 1, 100, 127, 254, 255):
        assert table[v] == min(255, max(0, round((v - 127) / 32 / 0.05) + 100))


@pytest.mark.parametrize("port_name", ["unix_port", "armhf_port", "wasm_port"])
def test_every_port_gives_the_same_bytes(port_name: str, request: pytest.FixtureRequest) -> None:
    port: Port = request.getfixturevalue(port_name)
    frame, table = rgb565(pictures(), False), levels(0.02, 7, 30, 90)
    expected = []
    for channels in (1, 3):
        out = bytearray(9 * 4 * channels)
        Shrink((31, 23), (9, 4), table, "rgb565", channels)(frame, out)
        expected.append(list(out))
    script = f"""
import json
from emberlet.micro.image import Shrink, levels

found = []
for channels in (1, 3):
    out = bytearray(9 * 4 * channels)
    Shrink((31, 23), (9, 4), levels(0.02, 7, 30, 90), "rgb565", channels)({frame!r}, out)
    found.append(list(out))
print(json.dumps(found))
"""
    assert json.loads(port.run(script).check().stdout) == expected


@pytest.mark.parametrize(
    ("size", "to", "source", "channels", "says"),
    [
        (
            (8, 8),
            (4, 4),
            "rgb565",
            2,
            "source rgb565 with 2 channels is unknown; sources: gray, rgb, rgb565",
        ),
        ((8, 8), (4, 4), "yuv", 3, "source yuv with 3 channels is unknown"),
        ((8, 8), (4, 4), "gray", 3, "a gray frame buffer needs channels=1"),
        ((8, 8), (4, 4), "rgb", 1, "a rgb frame buffer needs channels=3"),
        ((8, 9), (9, 4), "gray", 1, r"\(8, 9\) cannot be shrunk to \(9, 4\)"),
        ((9, 8), (4, 9), "gray", 1, r"\(9, 8\) cannot be shrunk to \(4, 9\)"),
        ((512, 256), (2, 1), "gray", 1, "averages more than 65536 pixels at a time"),
    ],
)
def test_each_refusal_says_why(
    size: tuple[int, int], to: tuple[int, int], source: str, channels: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        Shrink(size, to, IDENTITY, source, channels)


def test_a_picture_may_keep_its_size_and_boxes_may_hold_65536_pixels() -> None:
    x = pictures()[..., :1]
    out = bytearray(x.size)
    Shrink((31, 23), (31, 23), IDENTITY, "gray")(x.tobytes(), out)
    assert bytes(out) == x.tobytes()
    Shrink((255 * 2, 255), (2, 1), IDENTITY, "gray")  # boxes of at most 256 x 256
    with pytest.raises(ValueError, match=r"expected 713.*713.*found 713.*712"):
        Shrink((31, 23), (31, 23), IDENTITY, "gray")(x.tobytes(), bytearray(712))


def test_brightness_is_a_share_unless_said_otherwise() -> None:
    assert bytes(levels(1 / 255, 0)) == bytes(range(256))
    assert levels(1 / 100, 3)[255] == 103 and levels(1 / 510, 0)[128] == 255 and levels(1, -1)[0] == 0
