"""The limits of every format hold at their exact values, and its containers are read as by their own libraries."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import sys
import tarfile
import types
import zipfile
from typing import Any

import msgpack
import numpy as np
import onnx
import pytest
from emberlet import dtypes, store
from emberlet.errors import EmberletError, FormatError, UnsupportedError
from emberlet.store.formats.archives import members_of_tar, members_of_zip
from emberlet.store.formats.records import MAX_DEPTH, _MessagePack
from emberlet.store.opening import ENDINGS
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

ARRAYS = {"small": np.arange(2, dtype=np.float32), "wide": np.arange(6, dtype=np.float32)}


def gguf(arrays: dict[str, np.ndarray]) -> bytes:
    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words)) + words.encode()

    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), 0), b""
    for name, array in arrays.items():
        head += text(name) + struct.pack("<IQIQ", 1, array.size, 0, len(data))
        data += array.tobytes() + bytes(-array.nbytes % 32)
    return head + bytes(-len(head) % 32) + data


def pytorch(arrays: dict[str, np.ndarray]) -> bytes:
    code = b"\x80\x02}"
    for i, (name, array) in enumerate(arrays.items()):
        kind = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0%dX\3\0\0\0cpuK%ctQ" % (i, array.size)
        code += b"X%c\0\0\0%s" % (len(name), name.encode())
        code += b"ctorch._utils\n_rebuild_tensor_v2\n(" + kind + b"K\0K%c\x85K\1\x85\x89NtRs" % array.size
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", code + b".")
        for i, array in enumerate(arrays.values()):
            archive.writestr(f"x/data/{i}", array.tobytes())
    return file.getvalue()


def record(arrays: dict[str, np.ndarray]) -> bytes:
    item = {n: {"bytes": a.tobytes(), "shape": list(a.shape), "dtype": "F32"} for n, a in arrays.items()}
    return bytes(msgpack.packb({"metadata": {}, "item": item}))


def model(arrays: dict[str, np.ndarray]) -> bytes:
    held = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    return bytes(helper.make_model(helper.make_graph([], "g", [], [], held)).SerializeToString())


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


FILES = {
    "burnpack": store.dumps(store.store_of(ARRAYS)), "safetensors": store.dumps(store.store_of(ARRAYS), "safetensors"),
    "gguf": gguf(ARRAYS), "pytorch": pytorch(ARRAYS), "record": record(ARRAYS), "onnx": model(ARRAYS),
    "npz": npz(ARRAYS),
}  # fmt: skip
CONTENTS = {  # the bytes of the table of contents
    "burnpack": int.from_bytes(FILES["burnpack"][6:10], "little"),
    "safetensors": int.from_bytes(FILES["safetensors"][:8], "little"),
    "gguf": 4 + 20 + sum(8 + len(name) + 24 for name in ARRAYS),
    "pytorch": zipfile.ZipFile(io.BytesIO(FILES["pytorch"])).getinfo("x/data.pkl").file_size,
}


@pytest.mark.parametrize("kind", FILES)
def test_every_file_here_is_read_whole(kind: str) -> None:
    for format in (kind, None if kind not in ("onnx", "record") else kind):
        found = store.open(FILES[kind], format=format)
        assert {name: np.asarray(s).tolist() for name, s in found.items()} == {n: a.tolist() for n, a in ARRAYS.items()}
        assert (found.format, found.nbytes) == (kind, 32)


@pytest.mark.parametrize(
    ("kind", "limit", "exact"),
    [
        *((kind, "file", len(data)) for kind, data in FILES.items()),
        *((kind, "tensor", 24) for kind in FILES if kind != "npz"),
        *((kind, "tensors", 2) for kind in FILES if kind not in ("npz", "record")),
        *((kind, "metadata", size) for kind, size in CONTENTS.items()),
    ],
)
def test_a_limit_itself_is_allowed_and_one_more_is_not(
    kind: str, limit: str, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "burnpack":  # whose limits can only be raised
        for constant in ("MAX_FILE", "MAX_METADATA", "MAX_TENSOR", "MAX_TENSORS"):
            monkeypatch.setattr(f"emberlet.burnpack.{constant}", 1)
    store.open(FILES[kind], format=kind, limits=store.Limits(**{limit: exact}))
    with pytest.raises(FormatError):
        store.open(FILES[kind], format=kind, limits=store.Limits(**{limit: exact - 1}))


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_cut_by_one_byte_is_refused(kind: str) -> None:
    whole = FILES[kind]
    end = len(whole) - (0 if kind not in ("gguf", "burnpack") else 8 if kind == "gguf" else 0)  # padding is not needed
    store.open(whole[:end], format=kind)
    with pytest.raises(FormatError):
        found = store.open(whole[: end - 1], format=kind)
        [s.tensor() for s in found.values()]


# -- what a file is, from its first bytes


@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_known_by_its_bytes_or_its_ending(kind: str, tmp_path: Any) -> None:
    ending = {v: k for k, v in ENDINGS.items()}.get(kind, ".mpk")
    (tmp_path / f"x{ending}").write_bytes(FILES[kind])
    assert store.open(tmp_path / f"x{ending}").format == kind
    (tmp_path / "x.dat").write_bytes(FILES[kind])
    if kind in ("onnx", "record"):
        with pytest.raises(FormatError, match="first bytes match no weight format"):
            store.open(tmp_path / "x.dat")
    else:
        assert store.open(tmp_path / "x.dat").format == kind


def test_a_folder_is_its_model(tmp_path: Any) -> None:
    names = ["model.bpk", "pytorch_model.bin", "model.safetensors"]
    for name, kind in zip(names, ("burnpack", "pytorch", "safetensors"), strict=True):
        (tmp_path / name).write_bytes(FILES[kind])
        assert store.open(tmp_path).origin == str(tmp_path / name)
    index = {"weight_map": {"wide": "model.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(str(index).replace("'", '"'), encoding="utf-8")
    assert list(store.open(tmp_path)) == ["wide"]
    (tmp_path / "bare.bpk").write_bytes(FILES["burnpack"])
    assert store.open(tmp_path / "bare").origin == str(tmp_path / "bare.bpk")
    (tmp_path / "bare").write_bytes(FILES["gguf"])
    assert store.open(tmp_path / "bare").format == "gguf"
    with pytest.raises(OSError, match="absent"):
        store.open(tmp_path / "absent")


# -- MessagePack


def drawn(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(9 if depth else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        bits = rng.choice([1, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63])
        return rng.choice([-1, 1]) * rng.getrandbits(bits)
    if kind == 3:
        return rng.choice([1.5, -2.0, 1e30])
    if kind == 4:
        return "é" * rng.choice([0, 1, 15, 16, 31, 32, 127, 128, 300])
    if kind == 5:
        return (1 << 64) - 1
    many = rng.choice([0, 1, 15, 16, 17])
    if kind == 6:
        return [drawn(rng, 0) for _ in range(many)]
    return {f"k{i}": drawn(rng, depth - 1) for i in range(many)}


@every("seed", range(8), share=2)
def test_messagepack_is_read_as_by_its_library(seed: int) -> None:
    rng = random.Random(seed)
    for single in (False, True):
        for _ in range(25):
            data = msgpack.packb(drawn(rng, 2), use_single_float=single)
            assert _MessagePack(memoryview(data), "x").read() == msgpack.unpackb(data, strict_map_key=False)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65535, 65536])
def test_messagepack_of_every_length(size: int) -> None:
    for value in (bytes(size), "a" * size, [1] * size, {str(i): i for i in range(size)}):
        data = msgpack.packb(value)
        found = _MessagePack(memoryview(data), "x").read()
        assert (bytes(found) if isinstance(value, bytes) else found) == value
        for cut in (1, len(data) // 2 + 1):
            if len(data) > 1:
                with pytest.raises(FormatError, match="cut off"):
                    _MessagePack(memoryview(data[:-cut]), "x").read()
    assert _MessagePack(memoryview(msgpack.packb({1: 2})), "x").read() == {"1": 2}
    with pytest.raises(FormatError, match="a key is not text"):
        _MessagePack(memoryview(msgpack.packb({(1,): 2})), "x").read()


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": x}])
def test_messagepack_nests_128_levels_deep(wrap: Any) -> None:
    value: Any = 0
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    data = msgpack.packb(value)
    assert _MessagePack(memoryview(data), "x").read() == value
    with pytest.raises(FormatError, match="nested deeper than 128"):
        _MessagePack(memoryview(msgpack.packb(wrap(value))), "x").read()


@pytest.mark.parametrize("wrap", [lambda x: [x, {}], lambda x: {"a": x}])
def test_a_record_in_json_nests_128_levels_deep(wrap: Any) -> None:
    item: Any = {"b": 1}
    for _ in range(127):
        item = wrap(item)
    assert len(store.open(json.dumps({"item": item}).encode(), format="record").scalars) == 1
    with pytest.raises(FormatError, match="is nested deeper than 128"):
        store.open(json.dumps({"item": wrap(item)}).encode(), format="record")


@pytest.mark.parametrize("change", [-1, 0])
def test_compressed_arrays_take_at_most_a_limit(change: int, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(10_000), b=np.zeros(10_000))
    monkeypatch.setattr("emberlet.host.npy.EXPANDED", 2 * (80_000 + 128) + change)
    if change:
        with pytest.raises(FormatError, match="become 160256"):
            store.open(file.getvalue())
    else:
        assert store.open(file.getvalue()).nbytes == 160_000


def test_a_zipped_record_may_be_eight_mebibytes_and_sixteen_times_its_size() -> None:
    data = record({"wide": np.zeros((8 << 20) // 4 - 100, np.float32)})
    zipped = gzip.compress(data)
    assert len(data) < (8 << 20) + 16 * len(zipped)
    assert store.open(zipped, format="record")["wide"].size == (8 << 20) // 4 - 100
    data = record({"wide": np.zeros((8 << 20) // 4 + 5 * len(zipped), np.float32)})
    with pytest.raises(FormatError, match="would become more than"):
        store.open(gzip.compress(data), format="record")


# -- archives


@every("seed", range(6), share=2)
def test_members_of_a_zip_archive_lie_where_its_library_finds_them(seed: int) -> None:
    rng = random.Random(seed)
    file = io.BytesIO(b"")
    held = {f"{'é' * (i % 3)}m{i}": rng.randbytes(rng.choice([0, 1, 500, 70_000])) for i in range(6)}
    packed = set()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in held.items():
            info = zipfile.ZipInfo(name)
            info.extra = rng.choice([b"", b"\x34\x12\x04\0abcd"])
            info.comment = rng.choice([b"", b"a comment"])
            if rng.random() < 0.3:
                info.compress_type = zipfile.ZIP_DEFLATED
                packed.add(name)
            archive.writestr(info, data)
        archive.comment = rng.choice([b"", b"of all"])
    whole = memoryview(file.getvalue())
    found = members_of_zip(whole, "file", stored_only=False)
    assert {n: bytes(whole[a : a + size]) for n, (a, size) in found.items()} == {
        n: d for n, d in held.items() if n not in packed
    }
    if packed:
        with pytest.raises(FormatError, match="is compressed or encrypted, which PyTorch's files never are"):
            members_of_zip(whole, "file", stored_only=True)
    else:
        assert members_of_zip(whole, "file", stored_only=True) == found


def test_a_zip_archive_that_lies_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"12345")
    data = bytearray(file.getvalue())
    listing = data.index(b"PK\1\2")

    def changed(at: int, value: bytes) -> memoryview:
        out = bytearray(data)
        out[at : at + len(value)] = value
        return memoryview(bytes(out))

    assert members_of_zip(changed(0, b"PK"), "file", True) == {"a": (31, 5)}
    for at, value, says in (
        (0, b"xx", "is not where the archive says"),
        (listing + 8, b"\1\0", "compressed or encrypted"),
        (listing + 42, struct.pack("<I", len(data) - 29), "is not where the archive says"),
        (listing + 24, struct.pack("<I", 6), "ends past the file"),
        (listing + 20, struct.pack("<II", 1000, 1000), "ends past the file"),
    ):
        with pytest.raises(FormatError, match=says):
            members_of_zip(changed(at, value), "file", True)
    with pytest.raises(FormatError, match="that is cut off"):
        members_of_zip(memoryview(bytes(data[:-22])), "file", True)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 5000])
def test_members_of_a_tar_archive_lie_where_its_library_finds_them(size: int) -> None:
    file = io.BytesIO()
    held = {"storages": random.Random(size).randbytes(size), "./pickle": b"abc", "a" * 99: b""}
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in held.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    whole = file.getvalue()
    found = members_of_tar(memoryview(whole), "file")
    assert {n: whole[a : a + n_bytes] for n, (a, n_bytes) in found.items()} == {
        n.removeprefix("./"): d for n, d in held.items()
    }
    at = whole.index(b"storages")
    for digits in (b"x2345678901\0", b"\0" * 12, b"9" * 11 + b"\0"):
        bad = whole[: at + 124] + digits + whole[at + 136 :]
        with pytest.raises(FormatError, match="is not a number"):
            members_of_tar(memoryview(bad), "file")
    if size:
        with pytest.raises(FormatError, match="ends past its tar archive"):
            members_of_tar(memoryview(whole[: at + 512 + size - 1]), "file")


# -- PyTorch before 0.2: a tar archive


def old_tar(storages: list[Any], views: Any, tensors: list[Any] | None, value: Any) -> bytes:
    """storages: (key, elements of float32); views: what follows them, or None; tensors: (key, storage, sizes, strides,
    offset), or None where persistent ids are storages."""
    torch = types.ModuleType("torch")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})  # type: ignore[attr-defined]
    before = sys.modules.get("torch")
    sys.modules["torch"] = torch
    try:

        def dumped(what: Any) -> bytes:
            return pickle.dumps(what, 2)

        raw = dumped(len(storages))
        for key, elements in storages:
            raw += dumped((key, "cpu", torch.FloatStorage)) + struct.pack("<q", len(elements)) + elements.tobytes()
        raw += b"" if views is None else dumped(views)
        members = {"storages": raw}
        if tensors is not None:
            held = dumped(len(tensors))
            for key, storage, sizes, strides, offset in tensors:
                held += dumped((key, storage, "torch.FloatTensor")) + struct.pack("<ii", len(sizes), 0)
                held += struct.pack(f"<{2 * len(sizes) + 1}q", *sizes, *strides, offset)
            members["tensors"] = held
        file = io.BytesIO()

        class Saved(pickle.Pickler):
            def persistent_id(self, obj: Any) -> Any:
                return obj[1] if isinstance(obj, tuple) and obj[0] == "id" else None

        Saved(pickled := io.BytesIO(), 2).dump(value)
        members["pickle"] = pickled.getvalue()
    finally:
        del sys.modules["torch"]
        if before is not None:
            sys.modules["torch"] = before
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


TEN = np.arange(10, dtype=np.float32)
TENSORS = [(1, 7, (2, 3), (1, 2), 1), (2, 8, (4,), (1,), 0)]
IDS = {"a": ("id", 1), "b": [("id", 2), ("id", (5, "its source"))], "n": 3}


def test_the_oldest_files_of_pytorch_are_read() -> None:
    opened = store.open(old_tar([(7, TEN)], [(8, 7, 3, 5)], TENSORS, IDS))
    assert np.asarray(opened["a"]).tolist() == [[1, 3, 5], [2, 4, 6]]
    assert np.asarray(opened["b.0"]).tolist() == [3, 4, 5, 6]
    assert opened.scalars == {"n": 3, "b.1": 5}
    whole = [(1, 7, (10,), (1,), 0), (2, 9, (2,), (1,), 0)]
    opened = store.open(old_tar([(7, TEN), (9, TEN[:2] + 90)], None, whole, IDS))
    assert np.asarray(opened["a"]).tolist() == TEN.tolist()
    assert np.asarray(opened["b.0"]).tolist() == [90, 91]


@pytest.mark.parametrize(
    ("views", "tensors", "value", "says"),
    [
        ([(8, 7, 3, 8)], TENSORS, IDS, "a view of a storage ends past it"),
        ([(8, 7, -1, 3)], TENSORS, IDS, "a view of a storage ends past it"),
        ([(8, 7, 3, -1)], TENSORS, IDS, "a view of a storage ends past it"),
        ([(8, 6, 3, 5)], TENSORS, IDS, "a view of a storage ends past it"),
        ([(8, 7, 3)], TENSORS, IDS, "a view of a storage is not in PyTorch's format"),
        ([[8, 7, 3, 5]], TENSORS, IDS, "a view of a storage is not in PyTorch's format"),
        ([(8, 7, 3, 5.0)], TENSORS, IDS, "a view of a storage is not in PyTorch's format"),
        ([(8, 7, 3, 5)], [(1, 7, (2, 3), (1, 2), 6), TENSORS[1]], IDS, "ends at element 12 of a storage of 10"),
        ([(8, 7, 3, 5)], [(1, 6, (2,), (1,), 0), TENSORS[1]], IDS, "or of no storage"),
        ([(8, 7, 3, 5)], [(1, 7, (1,) * 65, (1,) * 65, 0), TENSORS[1]], IDS, "a tensor of 65 axes"),
        ([(8, 7, 3, 5)], TENSORS[:1], IDS, "is not a tensor"),
        ([(8, 7, 3, 5)], None, IDS, "is not a tensor"),
    ],
)
def test_malformed_files_of_the_oldest_kind_are_refused(views: Any, tensors: Any, value: Any, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        store.open(old_tar([(7, TEN)], views, tensors, value))


def test_a_storage_of_the_oldest_kind_ends_within_its_member() -> None:
    whole = old_tar([(7, TEN)], None, [(1, 7, (10,), (1,), 0), (2, 7, (2,), (1,), 0)], IDS)
    count = struct.pack("<q", 10)
    assert whole.count(count + TEN.tobytes()) == 1
    with pytest.raises(FormatError, match="storage '7' ends past the file"):
        store.open(whole.replace(count + TEN.tobytes(), struct.pack("<q", 11) + TEN.tobytes()))


def test_a_view_up_to_the_last_element_is_one() -> None:
    opened = store.open(old_tar([(7, TEN)], [(8, 7, 3, 7)], [(1, 7, (10,), (1,), 0), (2, 8, (7,), (1,), 0)], IDS))
    assert np.asarray(opened["b.0"]).tolist() == TEN[3:].tolist()


# -- ONNX


def test_initializers_of_every_kind_of_field() -> None:
    for axes in (64, 65):
        array = np.zeros((1,) * min(axes, 60), np.float32)
        made = numpy_helper.from_array(array, "w")
        made.dims[:] = [1] * axes
        data = model({})
        proto = onnx.load_from_string(data)
        proto.graph.initializer.append(made)
        if axes == 64:
            assert store.open(proto.SerializeToString(), format="onnx")["w"].shape == (1,) * 64
        else:
            with pytest.raises(FormatError, match="its shape is too large"):
                store.open(proto.SerializeToString(), format="onnx")


@pytest.mark.parametrize("change", [-1, 1])
def test_an_initializer_has_as_many_bytes_as_its_shape_takes(change: int) -> None:
    made = numpy_helper.from_array(np.zeros(3, np.float32), "w")
    made.raw_data = bytes(12 + change)
    proto = helper.make_model(helper.make_graph([], "g", [], [], [made]))
    with pytest.raises(FormatError, match=rf"{12 + change} bytes where float32 of \(3,\) takes 12"):
        store.open(proto.SerializeToString(), format="onnx")
    typed = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    typed.float_data[:] = [1.0] * (3 + change)
    proto = helper.make_model(helper.make_graph([], "g", [], [], [typed]))
    with pytest.raises(FormatError, match=f"{3 + change} elements where its shape takes 3"):
        store.open(proto.SerializeToString(), format="onnx").tensor("w")


def made_of_fields(kind: int, count: int, *fields: bytes) -> bytes:
    """A model of one initializer of `count` elements."""

    def within(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    return within(7, within(5, bytes([8, count, 16, kind]) + within(8, b"w") + b"".join(fields)))


ONE_BY_ONE, PACKED = b"\x38\5", b"\x3a\2\5\5"  # int64_data: a number; two numbers side by side
INT4 = b"\x28\5"  # int32_data: a number of two elements


@pytest.mark.parametrize(
    ("kind", "fields", "most"),
    [(7, [], 0), (7, [ONE_BY_ONE], 2), (7, [ONE_BY_ONE] * 3, 6), (7, [PACKED], 4), (7, [PACKED, ONE_BY_ONE], 6),
     (22, [INT4], 4), (26, [INT4], 8), (9, [INT4], 2)],
)  # fmt: skip
def test_a_shape_takes_at_most_twice_the_elements_that_the_fields_may_hold(
    kind: int, fields: list[bytes], most: int
) -> None:
    """That bounds what a small file makes a reader allocate; the elements are counted once they are read."""
    assert store.open(made_of_fields(kind, most, *fields), format="onnx")["w"].shape == (most,)
    with pytest.raises(FormatError, match=rf"w'?: fewer elements than its shape \({most + 1},\) takes"):
        store.open(made_of_fields(kind, most + 1, *fields), format="onnx")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"offset": "4"}, None), ({"offset": "8"}, None), ({"offset": "9"}, "ends at byte 17 of m.bin, which has 16"),
        ({"offset": "-1"}, "offset '-1' is not a number"), ({"offset": "x"}, "is not a number"),
        ({"offset": ""}, "is not a number"),
        ({"offset": "9" * 21}, "is not a number"), ({"offset": "²"}, "is not a number"),
        ({"location": "gone.bin"}, "gone.bin"),
        ({"location": "."}, "is not in the model's folder"), ({"location": "a\0b"}, "is not in the model's folder"),
    ],
)  # fmt: skip
def test_external_data_lie_where_the_file_says(entries: dict[str, str], says: str | None, tmp_path: Any) -> None:
    (tmp_path / "m.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    made = helper.make_tensor("w", TensorProto.FLOAT, [2], [0.0, 0.0])
    made.ClearField("float_data")
    made.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "m.bin", **entries}.items():
        entry = made.external_data.add()
        entry.key, entry.value = key, value
    data = helper.make_model(helper.make_graph([], "g", [], [], [made])).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    opened = store.open(tmp_path / "m.onnx")
    if says is None:
        at = int(entries["offset"]) // 4
        assert np.asarray(opened["w"]).tolist() == [at, at + 1]
    else:
        with pytest.raises((FormatError, OSError), match=says):
            opened.tensor("w")
    with pytest.raises(FormatError, match="open the model by its path"):
        store.open(data, format="onnx").tensor("w")


# -- what a store says and takes


@pytest.mark.parametrize(
    ("shape", "level", "fits"),
    [
        ((255, 2), "channel", True), ((256, 2), "channel", False), ((2, 300), 255, True), ((2, 300), 256, False),
        ((2, 2), 1, True), ((2, 2), 0, False), ((1, 1, 1, 1, 2), "channel", True),
        ((1, 1, 1, 1, 1, 2), "channel", False),
        ((1, 1, 1, 1, 1, 2), "tensor", True), ((300, 2), "tensor", True), ((2, 2), True, False), ((2, 2), "row", False),
        *(((300, 2), level, False) for level in ((32,), (32, 1, 1), (256, 1), (True, 1))),
    ],
)  # fmt: skip
def test_a_block_has_at_most_255_elements_along_each_of_five_axes(shape: Any, level: Any, fits: bool) -> None:
    one = store.store_of({"w": np.ones(shape, np.float32)})
    if fits:
        assert np.asarray(one.quantize(8, level)["w"]).tolist() == np.ones(shape).tolist()
    else:
        with pytest.raises(UnsupportedError):
            one.quantize(8, level)


def test_shards_hold_at_most_as_many_bytes_as_asked(tmp_path: Any) -> None:
    arrays = {f"t{i}": np.zeros(n, np.uint8) for i, n in enumerate([10, 10, 5, 30, 1, 9])}
    for limit, groups in (
        (20, [2, 1, 1, 2]),
        (19, [1, 2, 1, 2]),
        (25, [3, 1, 2]),
        (9, [1, 1, 1, 1, 1, 1]),
        (1000, [6]),
    ):
        folder = tmp_path / str(limit)
        folder.mkdir()
        store.store_of(arrays).save(folder / "m.safetensors", shard=limit)
        files = sorted(folder.glob("m-*-of-*.safetensors"))
        assert [len(store.open(file)) for file in files] == groups
        assert files[0].name == f"m-00001-of-{len(groups):05}.safetensors"
        assert list(store.open(folder / "m.safetensors.index.json")) == list(arrays)
    with pytest.raises(EmberletError, match="only safetensors files are written in shards, not burnpack"):
        store.store_of(arrays).save(tmp_path / "m.bpk", shard=5)


def test_a_path_without_an_ending_is_a_burnpacks(tmp_path: Any) -> None:
    one = store.store_of({"w": np.ones(2, np.float32)})
    for name, format, written in (
        ("a", None, "a.bpk"), ("b.dat", None, "b.dat"), ("c", "safetensors", "c"), ("d.NPZ", None, "d.NPZ"),
    ):  # fmt: skip
        one.save(tmp_path / name, format=format)
        assert (tmp_path / written).exists()
    assert store.open(tmp_path / "b.dat").format == "burnpack"
    assert store.open(tmp_path / "c").format == "safetensors"
    assert store.open(tmp_path / "d.NPZ").format == "npz"


def test_a_snapshot_of_every_dtype_says_its_bytes() -> None:
    for dtype in dtypes.ALL:
        if dtype.kind != "string":
            assert store.Snapshot("x", dtype, (3, 5)).nbytes == dtype.nbytes(15)
    with pytest.raises(FormatError, match="too large to address"):
        store.Snapshot("x", dtypes.uint8, (1 << 59,))
    store.Snapshot("x", dtypes.uint8, ((1 << 59) - 1, 0, 1))
