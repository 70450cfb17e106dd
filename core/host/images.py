"""Decodes image files with Pillow."""

from __future__ import annotations

import io

from PIL import Image

from ..errors import FormatError


def decode(data: bytes, pixel_format: str) -> tuple[bytes, tuple[int, int, int]]:
    """(bytes, (height, width, channels)) of an image file in "RGB", "BGR" or "Grayscale".

    Raises FormatError if Pillow cannot read it.
    """
    try:
        image = Image.open(io.BytesIO(data)).convert("L" if pixel_format == "Grayscale" else "RGB")
    except Exception as error:  # its decoders' own (struct.error, IndexError, SyntaxError…), which have no common base
        raise FormatError(f"Pillow cannot read the picture: {str(error) or type(error).__name__}") from error
    width, height = image.size
    if pixel_format == "Grayscale":
        return image.tobytes(), (height, width, 1)
    raw = bytearray(image.tobytes())
    if pixel_format == "BGR":
        raw[0::3], raw[2::3] = raw[2::3], raw[0::3]
    return bytes(raw), (height, width, 3)
