"""Decoding images to arrays, and the preprocessing with which most ImageNet networks were trained."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..host.extras import require
from ..host.files import read_regular

# Color channels -> Pillow's mode.
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def decode(source: Any, channels: int = 3, where: str = "") -> NDArray[np.uint8]:
    """An image as uint8 (height, width, channels).

    source: its path, the bytes of its file, or a dict with "bytes" or "path", as in Hugging Face's data sets. channels:
    1 (gray), 3 (RGB) or 4 (RGBA). where: its name in errors, by default its path.

    Raises FormatError if Pillow cannot read it or it has more pixels than host/images.py allows, OSError.
    """
    require("reading pictures", "PIL")
    from ..host.images import opened

    if isinstance(source, Mapping):
        source = source.get("bytes") or source.get("path")
    if isinstance(source, str | os.PathLike):
        where = where or os.fspath(source)
        source = read_regular(source)
    try:
        with opened(source) as image:
            found = np.asarray(image.convert(MODES[channels]))
    except Exception as error:  # exceptions of Pillow's decoders (struct.error, ...), which have no common base
        said = str(error) or type(error).__name__
        raise FormatError(f"{where or 'a picture'} cannot be decoded: {said}") from None
    return found.reshape(*found.shape[:2], channels)


def imagenet(batch: Mapping[str, Any]) -> dict[str, Any]:
    """`preprocess` for networks trained on ImageNet, as in torchvision: resizes the shorter side of each image to 256
    pixels, crops the middle 224 x 224, divides by 255 and normalizes; returns channels first, (n, 3, 224, 224). Applies
    to every column of uint8 arrays (height, width, 3), of any size.
    """
    return {name: _prepared(column) if _pictures(column) else column for name, column in batch.items()}


def _pictures(column: Any) -> bool:
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.dtype == np.uint8 and column.ndim == 4
    return len(column) > 0 and all(getattr(x, "ndim", 0) == 3 and x.dtype == np.uint8 for x in column)


def _prepared(column: Any) -> NDArray[np.float32]:
    from PIL import Image

    out = np.empty((len(column), 3, 224, 224), np.float32)
    for i, pixels in enumerate(column):
        height, width = pixels.shape[:2]
        scale = 256 / min(height, width)
        size = max(224, round(width * scale)), max(224, round(height * scale))
        resized = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
        top, left = (size[1] - 224) // 2, (size[0] - 224) // 2
        middle = resized[top : top + 224, left : left + 224].astype(np.float32) / 255
        out[i] = ((middle - MEAN) / DEVIATION).transpose(2, 0, 1)
    return out
