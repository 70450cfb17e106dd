"""Pictures as arrays, and the preparation that most networks for ImageNet were trained with."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..host.extras import require

# Color channels -> Pillow's mode.
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def decode(source: Any, channels: int = 3, where: str = "") -> NDArray[np.uint8]:
    """A picture as (height, width, channels) of uint8.

    source: its path, the bytes of its file, or a dict with "bytes" or "path", as Hugging Face's data sets have it.
    channels: 1 (gray), 3 (RGB) or 4 (RGBA). where: what an error names; the path, if there is one.

    Raises FormatError where Pillow cannot read it, OSError.
    """
    require("reading pictures", "PIL")
    from PIL import Image

    if isinstance(source, Mapping):
        source = source.get("bytes") or source.get("path")
    if isinstance(source, str | os.PathLike):
        where = where or os.fspath(source)
        with open(source, "rb") as file:
            source = file.read()
    try:
        with Image.open(io.BytesIO(source)) as opened:
            found = np.asarray(opened.convert(MODES[channels]))
    except Exception as error:  # Pillow's decoders' own (struct.error, SyntaxError, ...), which have no common base
        # Pillow names an object in memory, whose address changes from run to run.
        said = "it is of no kind that Pillow knows" if "BytesIO" in str(error) else str(error) or type(error).__name__
        raise FormatError(f"{where or 'a picture'} cannot be decoded: {said}") from None
    return found.reshape(*found.shape[:2], channels)


def imagenet(batch: Mapping[str, Any]) -> dict[str, Any]:
    """`preprocess` for networks trained on ImageNet as torchvision does it: of each picture, the shorter side becomes
    256 pixels and the middle 224 x 224 are taken; divided by 255, normalized, channels first: (n, 3, 224, 224).

    The pictures are every column of uint8 arrays with three axes, (height, width, 3), of any sizes.
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
