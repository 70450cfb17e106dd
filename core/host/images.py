"""Decodes image files with Pillow."""

from __future__ import annotations

import io
import warnings

from PIL import Image, UnidentifiedImageError

from ..errors import FormatError
from .memory import error_text

FORMATS = tuple("PNG JPEG BMP GIF WEBP TIFF PPM AVIF JPEG2000 TGA PCX ICO SGI DDS".split())  # none runs a program
PIXELS = 1 << 24  # a picture may have this many, or EACH for every byte of its file
EACH = 64
SCANS = 128  # of a progressive JPEG, each of which visits every pixel

# One for each wrong tag: a file of 600 KB has 50,000.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")


def opened(data: bytes) -> Image.Image:
    """An image whose pixels are decoded when they are needed: of one of FORMATS, and with no more of them than a file
    of this size may have. Raises FormatError for one that is too large, and whatever Pillow raises."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:  # its words hold the address of an object
        raise FormatError("it is of no kind that Pillow knows") from None
    width, height = image.size
    if width * height > max(PIXELS, EACH * len(data)):
        raise FormatError(
            f"{width} x {height} pixels in {len(data)} bytes; a picture may have {PIXELS >> 20} million, "
            f"or {EACH} for every byte of its file: make it smaller"
        )
    if image.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > SCANS:
        raise FormatError(f"a JPEG of more than {SCANS} scans; save it again")
    return image


def decode(data: bytes, pixel_format: str) -> tuple[bytes, tuple[int, int, int]]:
    """(bytes, (height, width, channels)) of an image file in "RGB", "BGR" or "Grayscale".

    Raises FormatError if Pillow cannot read it, or if it is too large (`opened`).
    """
    try:
        image = opened(data).convert("L" if pixel_format == "Grayscale" else "RGB")
    except Exception as error:  # its decoders' own (struct.error, IndexError, SyntaxError…), which have no common base
        raise FormatError(f"Pillow cannot read the picture: {error_text(error)}") from error
    width, height = image.size
    if pixel_format == "Grayscale":
        return image.tobytes(), (height, width, 1)
    raw = bytearray(image.tobytes())
    if pixel_format == "BGR":
        raw[0::3], raw[2::3] = raw[2::3], raw[0::3]
    return bytes(raw), (height, width, 3)
