"""Writes a ROMFS image, with mpremote's writer, whose files are aligned so that the flash can be read by words."""

from __future__ import annotations

from collections.abc import Mapping

from emberlet.errors import FormatError, UnsupportedError
from emberlet.host.extras import sentence

ALIGNMENT = 16


def romfs_image(files: Mapping[str, bytes]) -> bytes:
    """The image of one folder; every file begins at a multiple of 16 bytes.

    Raises UnsupportedError if mpremote is missing.
    """
    # The header contains the image's length, which determines the header's size.
    for header in range(4, 9):
        image = _image(files, header)
        if image is not None:
            check(image, files)
            return image
    raise FormatError("the files are too large for a ROMFS image")


def _image(files: Mapping[str, bytes], header: int) -> bytes | None:
    """The image with files aligned for a header of `header` bytes; None if its header has another size."""
    try:
        from mpremote.romfs import VfsRomWriter  # type: ignore[import-untyped]
    except ImportError as error:
        raise UnsupportedError(f"{sentence('a ROMFS image', ['mpremote'])}, 1.25 or newer ({error})") from None
    writer = VfsRomWriter()

    def pad(count: int) -> None:
        """Skip `count` bytes with a padding record, which takes 2 to 127."""
        writer._extend(writer._pack(writer.ROMFS_RECORD_KIND_PADDING, bytes(count - 2)))

    def written() -> int:
        return len(writer._dir_stack[0][1])

    for name, data in files.items():
        probe = VfsRomWriter()
        probe.mkfile(name, data)
        own = len(probe._dir_stack[0][1]) - len(data)
        gap = -(header + written() + own) % ALIGNMENT
        if gap:
            pad(gap if gap >= 2 else gap + ALIGNMENT)
        writer.mkfile(name, data)
    if (header + written()) % 2:
        pad(3)  # the writer would make the header longer instead
    length = written()
    image = bytes(writer.finalise())
    return image if len(image) - length == header else None


def check(image: bytes, files: Mapping[str, bytes]) -> None:
    """Raises FormatError if a file is not in the image at a multiple of 16."""
    for name, data in files.items():
        at = image.find(name.encode() + b"\x02")
        start = image.find(data, at)
        if data and (at < 0 or start < 0 or start % ALIGNMENT):
            raise FormatError(f"{name} lies at byte {start} of the ROMFS image, expected a multiple of {ALIGNMENT}")
