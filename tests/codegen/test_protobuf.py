"""The built-in protobuf reader, compared with the protobuf library."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from conformance.cases import node_cases
from emberlet.codegen import generate, protobuf
from emberlet.codegen.graph_json import as_json
from emberlet.codegen.protobuf.message import Message, fields
from emberlet.codegen.reader import parsing
from emberlet.codegen.reader.schema import schemas
from emberlet.errors import EmberletError
from models.index import cases
from onnx import defs
from support.draws import draw

KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 9: "string", 11: "message", 12: "bytes", 14: "enum",
}  # fmt: skip
"""What the library's descriptors call the types of fields."""


def assert_same(ours: Any, theirs: Any, where: str = "model") -> None:
    """Raise AssertionError where two messages differ in a field."""
    for f in fields(type(ours)):
        mine, wanted, at = getattr(ours, f.name), getattr(theirs, f.name), f"{where}.{f.name}"
        if f.repeated:
            assert len(mine) == len(wanted), at
            for i, (a, b) in enumerate(zip(mine, wanted, strict=True)):
                if f.kind == "message":
                    assert_same(a, b, f"{at}[{i}]")
                else:
                    assert a == b or (a != a and b != b), f"{at}[{i}]"
            continue
        assert ours.HasField(f.name) == theirs.HasField(f.name), at
        if f.kind == "message":
            if ours.HasField(f.name):
                assert_same(mine, wanted, at)
        else:
            assert mine == wanted or (mine != mine and wanted != wanted), at
    for group in {o.name for o in theirs.DESCRIPTOR.oneofs}:
        assert ours.WhichOneof(group) == theirs.WhichOneof(group), where


def assert_read_alike(data: bytes) -> bool:
    """Whether the bytes are a message. Raises AssertionError if the two readers disagree."""
    try:
        theirs = onnx.ModelProto.FromString(data)
    except Exception as error:
        with pytest.raises(protobuf.DecodeError):
            protobuf.parse(protobuf.ModelProto, data)
        assert type(error).__name__ == "DecodeError"
        return False
    assert_same(protobuf.parse(protobuf.ModelProto, data), theirs)
    return True


def test_the_messages_are_those_of_onnx():
    seen: set[type[Any]] = set()

    def walk(kind: type[Any], descriptor: Any) -> None:
        if kind in seen:
            return
        seen.add(kind)
        declared = {f.name: (f.number, "bytes" if f.kind == "view" else f.kind, f.repeated) for f in fields(kind)}
        assert declared == {f.name: (f.number, KINDS[f.type], f.is_repeated) for f in descriptor.fields}, kind
        for f in fields(kind):
            theirs = descriptor.fields_by_name[f.name]
            if f.kind == "message":
                walk(f.of, theirs.message_type)
            elif f.kind == "enum":
                assert {v.name: v.number for v in theirs.enum_type.values} == {m.name: m.value for m in f.of}

    walk(protobuf.ModelProto, onnx.ModelProto.DESCRIPTOR)
    data_types = {m.name: m.value for m in protobuf.messages.DataType}
    assert data_types.items() >= dict(onnx.TensorProto.DataType.items()).items()


def test_every_node_case_is_read_as_by_the_library():
    for case in node_cases().values():
        assert assert_read_alike(case.model.SerializeToString()), case.name


@pytest.mark.parametrize("path", sorted({c.model for c in cases()}), ids=lambda path: path.parent.name)
def test_every_model_gives_the_same_graph(path, monkeypatch):
    assert_read_alike(path.read_bytes())
    wanted = as_json(path)
    monkeypatch.setattr(parsing, "has_onnx", lambda: False)
    assert as_json(path) == wanted


def test_damaged_files_are_read_or_refused_alike(capsys):
    choose = draw(__name__)
    files = [m for c in node_cases().values() if len(m := c.model.SerializeToString()) < 2000]
    read = sum(assert_read_alike(damaged(choose.choice(files), choose)) for _ in range(3000))
    assert 100 < read < 2900


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A file with up to four changes: bytes replaced, removed, inserted or repeated, or a bit flipped."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        i = draw.randrange(len(out) + 1)
        match draw.randrange(5):
            case 0:
                out[i : i + 1] = bytes([draw.randrange(256)])
            case 1 if i < len(out):
                out[i] ^= 1 << draw.randrange(8)
            case 2:
                del out[i : i + draw.randrange(1, 8)]
            case 3:
                out[i:i] = draw.randbytes(draw.randrange(1, 8))
            case _:
                j = draw.randrange(len(out) + 1)
                out[i:i] = out[j : j + draw.randrange(1, 40)]
    return bytes(out)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00", b"\x04", b"\x07", b"\x0b\x0c", b"\x0b\x01\x0c", b"\x0b", b"\x05abcd",
        b"\x08" + b"\xff" * 9 + b"\x7f", b"\x08" + b"\xff" * 10 + b"\x00", b"\x8a\x80\x80\x80\x00\x01a",
        b"\x8a\x80\x80\x80\x10\x01a", b"\x12\x81\x80\x80\x80\x00a", b"\x12\x81\x80\x80\x80\x80\x00a",
        b"\x12\x02\xff\xfe", b"\x3a\x02\x08\x01\x3a\x03\x12\x01g", b"\x3a" * 3, b"",
    ],
)  # fmt: skip
def test_the_corners_of_the_wire_format(data):
    assert_read_alike(data)


@pytest.mark.parametrize("depth", [20, 45, 49, 50, 51, 60])
def test_messages_nest_as_deep_as_the_library_lets_them(depth):
    data = b""
    for _ in range(depth):  # a type within a sequence's type
        inner = b"\x22" + varint(len(data) + len(varint(len(data))) + 1) + b"\x0a" + varint(len(data)) + data
        data = inner
    info = b"\x12" + varint(len(data)) + data
    graph = b"\x5a" + varint(len(info)) + info
    assert_read_alike(b"\x3a" + varint(len(graph)) + graph)


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def test_a_file_that_is_no_model_is_refused_in_words(monkeypatch, tmp_path):
    monkeypatch.setattr(parsing, "has_onnx", lambda: False)
    (tmp_path / "x.onnx").write_bytes(b"\x08")
    with pytest.raises(EmberletError, match=r"^x\.onnx is not an ONNX model: it ends in the middle of a number$"):
        as_json(tmp_path / "x.onnx")


def test_a_tensor_is_not_copied():
    w = onnx.helper.make_tensor("w", 1, (1000,), bytes(4000), raw=True)
    graph = onnx.helper.make_graph([], "g", [], [], [w])
    data = onnx.helper.make_model(graph).SerializeToString()
    found = protobuf.parse(protobuf.ModelProto, data).graph.initializer[0].raw_data
    assert isinstance(found, memoryview) and found.obj is data


def test_a_copy_shares_nothing_but_the_bytes_of_tensors():
    """For every message of ONNX's cases, a copy is equal, and changes to it do not affect the original."""

    def shared(a: Any, b: Any) -> None:
        """Check that no message and no list is in both."""
        if isinstance(a, Message):
            assert a is not b and type(a) is type(b)
            assert list(a.__dict__) == list(b.__dict__)
            for name, value in a.__dict__.items():
                shared(value, b.__dict__[name])
        elif isinstance(a, list):
            assert a is not b
            for x, y in zip(a, b, strict=True):
                shared(x, y)
        else:
            assert a is b or a == b
            assert not isinstance(a, memoryview) or a is b

    for case in list(node_cases().values())[::40]:
        theirs = case.model
        original = protobuf.parse(protobuf.ModelProto, theirs.SerializeToString())
        copied = protobuf.ModelProto()
        copied.graph.name = "is overwritten"
        copied.CopyFrom(original)
        shared(original, copied)
        assert_same(copied, theirs)
        copied.graph.node[0].name = "another"
        copied.graph.node.append(copied.graph.node[0])
        assert_same(original, theirs)


def test_the_table_of_operators_says_what_onnx_says():
    for theirs in defs.get_all_schemas_with_history():
        s: Any = theirs
        ours = next(v for v in schemas()[s.domain][s.name] if v.since == s.since_version)
        assert ours[1:5] == (s.min_input, s.max_input, s.min_output, s.max_output), s.name
        assert ours.attributes.split() == sorted(s.attributes), s.name
        assert ours.gone == (s.deprecated and not (s.has_function or s.has_context_dependent_function)), s.name


def test_code_is_generated_and_run_without_any_library(tmp_path):
    model = next(c for c in cases() if c.name == "residual_cnn").model
    script = (
        "import sys\n"
        "for name in ('numpy', 'onnx', 'google', 'google.protobuf', 'ml_dtypes', 'wgpu'): sys.modules[name] = None\n"
        "from emberlet.codegen import generate, inspect, load\n"
        f"made = generate({str(model)!r}, {str(tmp_path)!r})\n"
        f"load({str(model)!r})\n"
        f"print(made.module.name, len(inspect({str(model)!r})) > 1000)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [Path(model).stem + ".py", "True"]
    wanted = tmp_path / "wanted"
    generate(model, wanted)
    for f in wanted.iterdir():
        assert f.read_bytes() == (tmp_path / f.name).read_bytes()
