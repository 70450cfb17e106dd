"""The offsets of the members of zip and tar archives, so that they can be read in place."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from ...errors import FormatError
from ...host.memory import error_text
from ..reading import Bytes

Members = dict[str, tuple[int, int]]
MAX_MEMBERS = 200_000


class BytesFile(io.RawIOBase):
    """A readable file over bytes."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0 if whence == 0 else self._at if whence == 1 else len(self._data))
        if at < 0:
            raise OSError("before the beginning")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any) -> int:
        begin = min(self._at, len(self._data))
        piece = self._data[begin : min(begin + len(target), len(self._data))]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def open_zip(data: Bytes, where: str) -> zipfile.ZipFile:
    """The archive. Raises FormatError."""
    end = min(len(data), 1 << 16)
    if data[len(data) - end : len(data)].tobytes().find(b"PK\5\6") < 0:
        raise FormatError(f"{where}: a zip archive that is cut off")
    try:
        archive = zipfile.ZipFile(BytesFile(data))
    except Exception as error:  # zipfile's exceptions, which have no common base
        raise FormatError(f"{where}: not a zip archive: {error_text(error)}") from None
    if len(archive.infolist()) > MAX_MEMBERS:
        raise FormatError(f"{where}: {len(archive.infolist())} members are more than the limit of {MAX_MEMBERS}")
    return archive


def members_of_zip(data: Bytes, where: str, stored_only: bool) -> Members:
    """name -> (first byte, length) of every uncompressed member.

    Raises FormatError; with `stored_only`, also for a compressed member.
    """
    found = {}
    for info in open_zip(data, where).infolist():
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            if stored_only:
                raise FormatError(
                    f"{where}: {info.filename[:80]!r} is compressed or encrypted, which PyTorch's files never are"
                )
            continue
        begin = info.header_offset
        head = bytes(data[begin : begin + 30]) if 0 <= begin <= len(data) - 30 else b""
        if head[:4] != b"PK\3\4":
            raise FormatError(f"{where}: {info.filename[:80]!r} is not where the archive says")
        start = begin + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        if start + info.file_size > len(data) or info.file_size != info.compress_size:
            raise FormatError(f"{where}: {info.filename[:80]!r} ends past the file")
        found[info.filename] = (start, info.file_size)
    return found


def members_of_tar(data: Bytes, where: str) -> Members:
    """name -> (first byte, length) of every file in an uncompressed tar archive (POSIX ustar). Raises FormatError."""
    found: Members = {}
    at = 0
    while at + 512 <= len(data):
        head = bytes(data[at : at + 512])
        if head == bytes(512):
            break
        name = head[:100].rstrip(b"\0").decode("utf-8", "replace")
        digits = head[124:136].strip(b"\0 ")
        if not digits or len(digits) > 11 or digits.strip(b"01234567"):
            raise FormatError(f"{where}: the size of {name!r} in its tar archive is not a number")
        size = int(digits, 8)
        if at + 512 + size > len(data) or len(found) > 1000:
            raise FormatError(f"{where}: {name!r} ends past its tar archive")
        if head[156:157] in (b"0", b"\0"):
            found[name.removeprefix("./")] = (at + 512, size)
        at += 512 + (size + 511) // 512 * 512
    return found
