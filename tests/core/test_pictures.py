"""Pictures that Pillow can read become bytes, and every error on a damaged one becomes a FormatError."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.batch import pictures
from emberlet.errors import FormatError
from emberlet.host.images import decode
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, features

PIXELS = np.random.default_rng(3).integers(0, 256, (9, 12, 3)).astype(np.uint8)


def encoded(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, kind)
    return file.getvalue()


KINDS = ["PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM", "TGA", "PCX", "ICO", "SGI", "DDS"]
KINDS += [kind for kind, feature in (("WEBP", "webp"), ("JPEG2000", "jpg_2000")) if features.check(feature)]
FILES = {kind: encoded(kind) for kind in KINDS}


@pytest.mark.parametrize(
    ("pixel_format", "expected"),
    [
        ("RGB", PIXELS),
        ("BGR", PIXELS[..., ::-1]),
        ("Grayscale", np.array(Image.fromarray(PIXELS).convert("L"))[..., None]),
    ],
)
def test_pixels_come_in_the_order_that_is_asked_for(pixel_format, expected):
    x = F.decode_image(emberlet.asarray(np.frombuffer(FILES["PNG"], np.uint8)), pixel_format)
    np.testing.assert_array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("error", [struct.error("bad"), IndexError(), SyntaxError("broken"), KeyError("x"), EOFError()])
def test_whatever_pillow_raises_is_a_format_error(monkeypatch, error):
    def raising(file):
        raise error

    monkeypatch.setattr(Image, "open", raising)
    with pytest.raises(FormatError, match=r"Pillow cannot read the picture: .+"):
        decode(b"", "RGB")


def test_the_words_about_other_files_are_the_same_each_time():
    with pytest.raises(FormatError, match=r"^Pillow cannot read the picture: it is of no kind that Pillow knows$"):
        decode(b"words", "RGB")


def test_a_picture_with_thousands_of_wrong_tags_is_refused_without_a_warning_for_each(tmp_path):
    tags = b"".join(struct.pack("<HHII", 1000 + i, 4, 1 << 28, 0) for i in range(2000))
    file = tmp_path / "picture.tiff"
    file.write_bytes(b"II*\0" + struct.pack("<IH", 8, 2000) + tags + bytes(4))
    script = (
        "import sys\nfrom emberlet.errors import FormatError\nfrom emberlet.host.images import decode\n"
        "try:\n    decode(open(sys.argv[1], 'rb').read(), 'RGB')\nexcept FormatError:\n    print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, file], capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")


@st.composite
def damaged(draw):
    """A picture file with a few bytes changed, left out or repeated."""
    data = bytearray(FILES[draw(st.sampled_from(KINDS))])
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        change = draw(st.sampled_from(["set", "set", "set", "cut", "drop", "repeat"]))
        length = draw(st.integers(1, 8))
        if change == "set":
            data[at : at + 1] = bytes([draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))])
        elif change == "cut":
            del data[at:]
        elif change == "drop":
            del data[at : at + length]
        else:
            data[at:at] = data[at : at + length]
    return bytes(data)


@pytest.mark.filterwarnings("ignore")  # Pillow warns of much that it then reads
@settings(max_examples=400)
@given(data=damaged(), pixel_format=st.sampled_from(["RGB", "BGR", "Grayscale"]))
def test_damaged_pictures_are_read_or_refused(data, pixel_format):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Image, "MAX_IMAGE_PIXELS", 1 << 20)  # a damaged size would ask for much memory
        try:
            raw, (height, width, channels) = decode(data, pixel_format)
        except FormatError:
            return
    assert len(raw) == height * width * channels


def png(width: int, height: int) -> bytes:
    """A black picture, in about one byte for 8000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(width // 8 + 1)) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("read", [lambda data: decode(data, "RGB"), pictures.decode])
def test_a_picture_of_more_pixels_than_its_bytes_allow_is_refused(read) -> None:
    assert read(png(400, 300)) is not None
    with pytest.raises(FormatError, match=r"8000 x 8000 pixels in \d+ bytes; a picture may have 16 million"):
        read(png(8000, 8000))


@pytest.mark.parametrize("read", [lambda data: decode(data, "RGB"), pictures.decode])
def test_no_picture_runs_a_program(read) -> None:
    with pytest.raises(FormatError):  # Pillow would start Ghostscript
        read(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n")


def test_a_jpeg_of_many_scans_is_refused() -> None:
    with pytest.raises(FormatError, match="scans"):
        decode(FILES["JPEG"] + b"\xff\xda" * 200, "RGB")
