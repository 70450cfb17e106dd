"""Coverage-guided fuzzing of reading pictures: python tests/fuzz/fuzz_pictures.py [-max_total_time=60].

Needs atheris and Pillow, whose Python is traced too. Any file becomes pixels, or FormatError is raised.
"""

import io
import pathlib
import struct
import sys
import warnings
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.host.images", "emberlet.batch.pictures", "PIL")

from emberlet.batch import pictures  # noqa: E402
from emberlet.errors import FormatError  # noqa: E402
from emberlet.host import images  # noqa: E402
from PIL import Image  # noqa: E402

KINDS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM", "TGA", "PCX", "ICO", "SGI", "DDS", "JPEG2000")


def read(data: bytes) -> None:
    try:
        found = pictures.decode(data)
    except FormatError:
        return
    raw, shape = images.decode(data, "BGR")
    assert found.shape == shape and len(raw) == found.size


def build(n: multiplied.Numbers) -> bytes:
    """A PNG of any size, chunks that repeat, or a JPEG of many scans."""
    if n.below(3) == 0:
        file = io.BytesIO()
        Image.new("RGB", (n.count(512) + 1, n.count(512) + 1)).save(file, "JPEG", progressive=True)
        data = file.getvalue()
        at = data.find(b"\xff\xda")
        return data[:at] + multiplied.times(data[at:-2], n) + data[-2:]

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    width, height = n.count() * (1 + n.below(64)), n.count()
    rows = zlib.compress(bytes(min(height * (width // 8 + 1), 1 << 24)), 1)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    more = chunk(
        (b"zTXt", b"iCCP", b"PLTE", b"tEXt")[n.below(4)], b"a\0\0" + zlib.compress(bytes(n.count() * n.count(512)))
    )
    return b"\x89PNG\r\n\x1a\n" + head + multiplied.times(more, n) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def seeds() -> dict[str, bytes]:
    """A picture of each kind, in two modes."""
    found = {}
    for kind in KINDS:
        for mode in ("RGB", "P"):
            file = io.BytesIO()
            try:
                Image.effect_noise((12, 9), 50).convert(mode).save(file, kind)
            except (OSError, KeyError, ValueError):  # this mode, or this build of Pillow, does not
                continue
            found[f"{kind} {mode}"] = file.getvalue()
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Pillow's of large pictures and odd metadata
    harness.run(read, seeds(), 4096, 256, build=build)
