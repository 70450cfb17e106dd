"""Which format a file has by its first bytes and its name, and which file a path leads to, are as recorded."""

from __future__ import annotations

import io
import zipfile
from itertools import combinations
from pathlib import Path

import pytest
from emberlet.errors import FormatError
from emberlet.store.opening import ENDINGS, INDEX, UNKNOWN, _found, _kind
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "recorded_kinds.txt"


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"")
    return file.getvalue()


def header(length: int, rest: bytes = b"{}") -> bytes:
    return length.to_bytes(8, "little") + rest


HEADS = {
    "nothing": b"", "text": b"hello, this is text", "NRUB": b"NRUB", "NRUA": b"NRUA", "NRU": b"NRU", "GGUF": b"GGUF",
    "GGU": b"GGU", "a header of 1": header(1), "of 2": header(2), "of 3": header(3),
    "of 2 before a list": header(2, b"[]"),
    "of 0 alone": header(0, b""), "of 1 in 3": header(1, b"{} "), "of 3 in 3": header(3, b"{} "),
    "a zip": zipped("a.npy"), "a zip of nothing": zipped(), "a zip of PyTorch": zipped("x/data.pkl", "x/data/0"),
    "a zip that is cut off": zipped("a.npy")[:40], "ustar": bytes(257) + b"ustar" + bytes(250),
    "ustar a byte earlier": bytes(256) + b"ustar" + bytes(250), "half of ustar": bytes(257) + b"ust",
    "bincode": b"\3f32\3i32", "half": b"\4half", "JSON": b'{"metadata": {}}', "other JSON": b'{"meta": {}}',
    **{f"0x80 and {n}": bytes([0x80, n]) for n in range(1, 7)}, "0x80": b"\x80", "x and 2": b"x\2", "0x08": b"\x08\x08",
    "metadata late": b"{" + b" " * 502 + b'"metadata"', "metadata in time": b"{" + b" " * 501 + b'"metadata"',
}  # fmt: skip
NAMES = [
    "", "x", "x.dat", "X.PT", "x.mpk", "x.mpk.gz", "x.json", "x.json.gz", "x.bin", "x.bin.gz", INDEX, "x" + INDEX,
    "x.safetensors.index", *(f"x{ending}" for ending in ENDINGS), "a/b.onnx", "x.onnx/y", "x.pth.gz",
]  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_a_file_is_of_the_kind_that_is_recorded(head: str) -> None:
    kinds: dict[str, list[str]] = {}
    for name in NAMES:
        try:
            kind = _kind(memoryview(HEADS[head]), name, "w")
        except FormatError as error:
            kind = "none" if UNKNOWN in str(error) else str(error)
        kinds.setdefault(kind, []).append(name or "bytes")
    assert_recorded(RECORDED, head, "\n".join(f"{kind}: {' '.join(names)}" for kind, names in kinds.items()))


FILES = (INDEX, "model.safetensors", "pytorch_model.bin", "model.bpk", "other.bpk")


def test_a_folder_leads_to_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for count in range(len(FILES) + 1):
        for names in combinations(FILES, count):
            folder = Path(f"f{len(lines)}")
            folder.mkdir()
            for name in names:
                (folder / name).touch()
            lines.append(f"{' '.join(names) or 'none'}: {Path(_found(str(folder))).name}")
    Path("there").touch()
    Path("there.bpk").touch()
    Path("packed.bpk").touch()
    Path("named.x.bpk").touch()
    Path("held.bpk").mkdir()
    for path in ("there", "packed", "packed.x", "named.x", "gone", "held", "packed.bpk", ""):
        lines.append(f"{path}: {_found(path)}")
    assert_recorded(RECORDED, "paths", "\n".join(lines))
