"""wgpu's cached header: cffi reads from it what it parsed, or parses it again."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

cffi = pytest.importorskip("cffi")
from cffi.cparser import Parser  # noqa: E402
from emberlet.wgpu_backend import cffi_header  # noqa: E402

HEADER = """
#define SIZE 8
typedef struct ThingImpl* Thing;
typedef enum Kind { Kind_One = 1, Kind_Two = 0x7FFFFFFF } Kind;
typedef unsigned long long Flags;
typedef struct Chained { struct Chained * next; Kind kind; } Chained;
typedef struct Limits {
    Chained * chain; Flags flags; float scale[4]; char const * label; union { int a; double b; };
} Limits;
typedef void (*Callback)(Kind kind, Limits const * limits, void * data);
Thing make(Limits const * limits, Callback callback, void * data);
"""
TYPES = [
    "Thing",
    "Kind",
    "Flags",
    "Chained",
    "Limits",
    "Limits *",
    "Callback",
    "Limits const * const *",
    "struct Chained",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    return tmp_path


def read(header: str = HEADER, **options: Any) -> Any:
    ffi = cffi.FFI()
    with cffi_header.kept():
        ffi.cdef(header, **options)
    return ffi


def described(ffi: Any) -> list[Any]:
    """Everything about the types that a program can observe."""

    def fields(t: Any) -> Any:
        if t.kind not in ("struct", "union"):
            return None
        return [(n, str(f.type), f.offset, f.bitsize) for n, f in t.fields or []]

    found: list[Any] = [sorted(ffi._parser._declarations), sorted(ffi._parser._int_constants.items())]
    for text in TYPES:
        t = ffi.typeof(text)
        found.append((text, str(t), t.kind, fields(t), ffi.sizeof(text), ffi.alignof(text)))
    found += [ffi.typeof("Kind").elements, str(ffi.typeof("Callback").args), ffi.new("Limits *", {"flags": 3}).flags]
    return found


def test_what_is_kept_is_what_cffi_parses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cffi.FFI()
    plain.cdef(HEADER)
    first = read()
    assert len(list(folder.glob("header-*.pickle"))) == 1
    monkeypatch.setattr(Parser, "_internal_parse", None)  # nothing is parsed any more
    second = read()
    monkeypatch.undo()
    assert described(plain) == described(first) == described(second)


def test_options_and_other_headers_are_parsed(folder: Path) -> None:
    read()
    assert read(packed=True).sizeof("Chained") < read().sizeof("Chained")
    other = read("typedef short Flags;")
    assert other.sizeof("Flags") == 2
    assert len(list(folder.glob("header-*.pickle"))) == 1  # that of another release goes


class _Harm:
    def __reduce__(self) -> Any:
        return print, ("harm",)


@pytest.mark.parametrize(
    "data",
    [b"", b"no pickle", pickle.dumps({"_declarations": {}}), pickle.dumps([1]), pickle.dumps(_Harm())],
    ids=["empty", "text", "parts", "another", "harm"],
)
def test_a_damaged_file_counts_as_missing(folder: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    read()
    (file,) = folder.glob("header-*.pickle")
    file.write_bytes(data)
    assert read().sizeof("Flags") == 8
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["sys.exit", "types.CodeType", "ffiplatform", "global_cache", "lock"])
def test_only_classes_of_the_model_are_found(name: str) -> None:
    data = b"\x80\x04\x8c\x0acffi.model" + b"\x8c" + bytes([len(name)]) + name.encode() + b"\x93."
    import io

    with pytest.raises(pickle.UnpicklingError):
        cffi_header._Reader(io.BytesIO(data)).load()


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv("EMBERLET_CACHE", str(file / "below"))
    assert read().sizeof("Flags") == 8


@pytest.mark.needs("gpu-driver")
def test_a_second_process_parses_no_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
from cffi.cparser import Parser
whole, parsed = Parser._internal_parse, []
Parser._internal_parse = lambda self, source: parsed.append(len(source)) or whole(self, source)
import emberlet
x = emberlet.asarray([1.0, 2.0], backend="wgpu")
print((x + x).tolist(), len(parsed))
"""
    monkeypatch.setenv("EMBERLET_CACHE", str(tmp_path))
    said = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", check=True
        ).stdout
        for _ in range(2)
    ]
    assert [s.split("\n")[0] for s in said] == ["[2.0, 4.0] 1", "[2.0, 4.0] 0"]
