"""The interpreter of pickles gives what Python's own gives for plain values, opcode by opcode, and refuses the rest."""

from __future__ import annotations

import pickle
import random
import struct
import sys
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.errors import FormatError
from emberlet.store.formats import torch_tensors
from emberlet.store.formats.pickles import Known, Unknown, _Machine, load
from emberlet.store.formats.torch_tensors import KNOWN, Storage, StorageType, TensorView, elements, find, storage_of
from support.rows import every


def nothing(found: Any) -> Any:
    raise AssertionError(f"a persistent id {found!r}")


def read(data: bytes, persistent: Any = nothing, start: int = 0) -> Any:
    value, end = load(memoryview(data), find, persistent, "file", start)
    assert end == len(data)
    return value


def drawn(rng: random.Random, depth: int, protocol: int) -> Any:
    """A value of plain types, of every size that has an opcode of its own."""
    kind = rng.randrange(13 if depth else 7)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind <= 2:
        bits = rng.choice([1, 7, 8, 9, 15, 16, 17, 30, 31, 32, 33, 63, 64, 200, 2100])
        return rng.choice([-1, 1]) * rng.getrandbits(bits)
    if kind == 3:
        return rng.choice([0.0, -1.5, 1e300, float("inf"), rng.random()])
    if kind == 4:
        letters = "abc" if protocol == 0 else "aé漢\ud800😀\n"
        return "".join(rng.choices(letters, k=rng.choice([0, 1, 5, 255, 256, 300])))
    if kind in (5, 6):
        return rng.randbytes(rng.choice([0, 1, 255, 256, 300])) if protocol >= 3 else ()
    many = rng.choice([0, 1, 2, 3, 4, 7])
    if kind in (7, 8):
        return [drawn(rng, depth - 1, protocol) for _ in range(many)]
    if kind == 9:
        return tuple(drawn(rng, depth - 1, protocol) for _ in range(many))
    if kind == 10 and protocol >= 4:
        return {drawn(rng, 0, protocol) for _ in range(many)} - {()}
    return {rng.choice([str(i), i, (i, "x"), i / 2]): drawn(rng, depth - 1, protocol) for i in range(many)}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_what_python_reads(protocol: int) -> None:
    rng = random.Random(protocol)
    for _ in range(120):
        shared = drawn(rng, 1, protocol)
        value = [drawn(rng, 3, protocol), shared, shared]
        data = pickle.dumps(value, protocol)
        assert read(data) == pickle.loads(data) == value
        assert read(b"before" + data, start=6) == value
        found = read(data)
        assert found[1] is found[2] or shared == () or not isinstance(shared, (list, dict))


@every(
    "data",
    [
        b"I00\n.", b"I01\n.", b"I7\n.", b"I-12345678901\n.", b"L12L\n.", b"L-3\n.", b"F2.5\n.", b"S'a b'\n.",
        b"Vabc\n.",
        b"T\x03\0\0\0abc.", b"U\x02ab.", b"U\0.", b"K\xff.", b"M\xff\xff.", b"J\xff\xff\xff\xff.", b"J\0\0\0\x80.",
        b"\x8a\0.", b"\x8a\x01\x80.", b"\x8a\x02\xff\x00.", b"\x8b\x02\0\0\0\xff\x7f.", b"G?\xf8\0\0\0\0\0\0.",
        b"X\x02\0\0\0\xc3\xa9.", b"\x8c\x01a.", b"\x8d\x01" + bytes(7) + b"a.", b"B\x02\0\0\0ab.", b"C\x01a.",
        b"\x8e\x02" + bytes(7) + b"ab.", b"N.", b"\x88.", b"\x89.", b").", b"].", b"}.", b"(t.", b"(l.", b"(d.",
        b"K\x01\x85.", b"K\x01K\x02\x86.", b"K\x01K\x02K\x03\x87.", b"(K\x01K\x02t.", b"(K\x01K\x02l.",
        b"(K\x01K\x02d.",
        b"]K\x01a.", b"](K\x01K\x02e.", b"}K\x01K\x02s.", b"}(K\x01K\x02K\x03K\x04u.", b"K\x01K\x020.",
        b"K\x01(K\x02K\x031.",
        b"K\x01(0.", b"K\x012\x86.", b"]q\x010h\x01.", b"]r\x01\0\0\0000j\x01\0\0\0.", b"]p7\n0g7\n.", b"]\x940h\0.",
        b"K\x05\x94K\x06\x940h\0\x86.", b"\x80\x02K\x01.", b"\x80\x04\x95\x03\0\0\0\0\0\0\0K\x01.",
        b"\x8f(K\x01K\x02\x90.",
        b"(K\x01K\x02\x91.", b"(\x91.", b"}K\x01K\x02\x86K\x03s.", b"(]K\x01a]K\x02at.",
    ],
)  # fmt: skip
def test_every_opcode_does_what_it_does_in_python(data: bytes) -> None:
    assert read(data) == pickle.loads(data)
    assert type(read(data)) is type(pickle.loads(data)) or isinstance(read(data), (set, frozenset))


class Thing:
    def __init__(self, *args: Any) -> None:
        self.args = args


@pytest.mark.parametrize(
    "data",
    [
        b"cmod\nThing\n(K\x01t\x81.", b"cmod\nThing\nK\x01\x85R.", b"(cmod\nThing\nK\x01o.", b"(K\x01imod\nThing\n.",
        b"\x8c\x03mod\x8c\x05Thing\x93K\x01\x85\x81.", b"cmod\nThing\nK\x01\x85}\x92.",
    ],
)  # fmt: skip
def test_objects_of_unknown_classes_keep_their_arguments(data: bytes) -> None:
    made = read(data)
    assert isinstance(made, Unknown)
    assert (made.name, made.args, made.state) == ("mod.Thing", (1,), None)


def test_the_state_of_an_unknown_object() -> None:
    thing = b"cmod\nThing\n)\x81"
    assert read(thing + b"K\x07b.").state == 7
    assert read(thing + b"}K\x01K\x02sb.").state == {1: 2}
    # Items of a subclass of dict stay beside its attributes.
    both = read(thing + b"}X\1\0\0\0aK\x02sb" + b"X\1\0\0\0bK\x03s.")
    assert both.state == {"a": 2, "b": 3}
    again = read(thing + b"X\1\0\0\0bK\x03s" + b"}X\1\0\0\0bK\x02sb.")
    assert again.state == {"b": 3}
    assert read(thing + b"(K\x01K\x02e.").state == [1, 2]
    assert read(b"}}K\x01K\x02sb.") == {}  # attributes of a dict
    assert read(b"cmod\nThing\n.").args is None


def test_persistent_ids_are_looked_up() -> None:
    assert read(b"K\x07Q.", lambda found: ("id", found)) == ("id", 7)
    assert read(b"Pabc\n.", lambda found: ("id", found)) == ("id", "abc")


@every(
    ("data", "says"),
    [
        (b"", "is cut off at byte 0"), (b"K", "is cut off at byte 1"), (b"K\x01", "is cut off"), (b"I1", "is cut off"),
        (b".", "takes a value from an empty stack"), (b"0.", "takes a value from an empty stack"),
        (b"(0.", "takes a value from an empty stack"), (b"1.", "has no mark"), (b"K\x01l.", "has no mark"),
        (b"(.", "takes a value from an empty stack"), (b"2.", "malformed"),
        (b"h\x01.", "recalls 1, which it never stored,"),
        (b"q\x01.", "stores a value while its stack is empty"), (b"(q\x01.", "stores a value while its stack is empty"),
        (b"K\x01a.", "changes a value that is not there"), (b"(K\x01a.", "changes a value that is not there"),
        (b"K\x01K\x02a.", "appends to something other than a list"),
        (b"NK\x01K\x02s.", "sets items of something other than a dict"),
        (b"}(K\x01u.", "sets items of something other than a dict"),
        (b"(K\x01d.", "sets items of something other than a dict"),
        (b"}]K\x01s.", "has a key of list"), (b"}}K\x01s.", "has a key of dict"),
        (b"}]\x85K\x01s.", "has a key of tuple"),
        (b"(]\x91.", "has a key of list"), (b"\x8f(]\x90.", "has a key of list"),
        (b"K\x01K\x02\x93.", "names a class with something other than text"),
        (b"\x8c\x01aK\x02\x93.", "names a class with something other than text"),
        (b"K\x01\x8c\x01a\x93.", "names a class with something other than text"),
        (b"cmod\nThing\nK\x01R.", "calls a function with something other than a tuple"),
        (b"ctorch._utils\n_rebuild_parameter\n)R.", "calls torch._utils._rebuild_parameter with arg"),
        (b"\x82\x01.", "has the opcode 0x82, which is not read,"), (b"\xff.", "has the opcode 0xff"),
        (b"\x8a\x05abc.", "is cut off"), (b"X\x05\0\0\0abc.", "is cut off"),
        (b"Iabc\n.", r"malformed \(ValueError at byte"),
        (b"X\x01\0\0\0\xff.", r"malformed \(UnicodeDecodeError"),
    ],
)  # fmt: skip
def test_what_no_pickle_does_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=f"^file: its pickle (is )?.*{says}"):
        read(data)


@pytest.mark.parametrize(("many", "fine"), [(1, True), (16, True), (17, False)])
def test_a_key_may_be_a_short_tuple_of_simple_values(many: int, fine: bool) -> None:
    data = pickle.dumps({tuple(range(many)): 1}, 2)
    if fine:
        assert read(data) == {tuple(range(many)): 1}
    else:
        with pytest.raises(FormatError, match="has a key of tuple"):
            read(data)


# -- tensors

FLOATS = StorageType(dtypes.float32)


def storage(count: int = 12, **more: Any) -> Storage:
    return Storage(dtypes.float32, "0", count, **more)


@pytest.mark.parametrize("numpy", [True, False])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int16, dtypes.float32, dtypes.float64])
def test_views_have_the_elements_that_numpys_have(dtype: Any, swap: bool, numpy: bool, monkeypatch: Any) -> None:
    if not numpy:
        monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    rng = random.Random(dtype.bits)
    flat = np.arange(60).astype(dtype.name)
    data = b"head" + (flat.byteswap() if swap else flat).tobytes()
    for _ in range(60):
        shape = tuple(rng.choice([0, 1, 1, 2, 3, 4]) for _ in range(rng.randint(0, 3)))
        strides = tuple(rng.choice([0, 1, 1, 2, 4, 12]) for _ in shape)
        if rng.random() < 0.4:
            strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        offset = rng.randint(0, 5)
        if 0 not in shape and offset + last >= 60:
            continue
        view = TensorView(Storage(dtype, "0", 60), offset, shape, strides)
        width = dtype.itemsize
        want = np.lib.stride_tricks.as_strided(flat[offset:], shape, [s * width for s in strides])
        found = elements(view, memoryview(data), 4, swap)
        assert bytes(found) == want.tobytes()
        assert view.is_contiguous == (0 in shape or want.flags.c_contiguous)
        first, end = view.span()
        assert (first, end) == ((offset, offset) if 0 in shape else (offset, offset + last + 1))


def test_a_view_past_the_file_is_refused() -> None:
    view = TensorView(storage(4), 0, (4,), (1,))
    assert len(elements(view, memoryview(bytes(16)), 0, False)) == 16
    with pytest.raises(FormatError, match="cut off"):
        elements(view, memoryview(bytes(15)), 0, False)


rebuild = KNOWN["torch._utils._rebuild_tensor_v2"].call


@every(
    ("offset", "shape", "strides", "says"),
    [
        (0, (12,), (1,), None), (0, (3, 4), (4, 1), None), (11, (), (), None), (12, (0,), (1,), None),
        (0, [2, 2], [1, 2], None),
        (0, (1,) * 64, (1,) * 64, None), (0, (2, 6), (6, 1), None), (0, (0, 1 << 62), (1, 1), None),
        (0, (13,), (1,), "ends at element 13 of a storage of 12"), (1, (12,), (1,), "ends at element 13"),
        (12, (), (), "ends at element 13"), (0, (2, 6), (7, 1), "ends at element 13"),
        (-1, (1,), (1,), "from something other than a storage"), (1 << 63, (0,),
        (1,), "from something other than a storage"),
        (True, (1,), (1,), "from something other than a storage"), ("0", (1,),
        (1,), "from something other than a storage"),
        (0, (1,) * 65, (1,) * 65, "shape is not a tuple of at most 64 integers"),
        (0, "ab", (1,), "shape is not a tuple"),
        (0, (1,), None, "strides is not a tuple"), (0, (-1,), (1,), "shape is not of unsigned"), (0, (1,),
        (-1,), "strides is not of"),
        (0, (1.0,), (1,), "shape is not of unsigned"), (0, (True,), (1,), "shape is not of unsigned"),
        (0, (1 << 63,), (0,), "shape is not of unsigned"), (0, (1, 1), (1,), "has 2 axes and 1 strides"),
        (0, (1 << 32, 1 << 31), (0, 0), "overflows"), (0, (1 << 31, 1 << 31), (0, 0), "is a view of only 12 elements"),
    ],
)  # fmt: skip
def test_a_tensor_lies_within_its_storage(offset: Any, shape: Any, strides: Any, says: str | None) -> None:
    if says is None:
        made = rebuild(storage(), offset, shape, strides, False, None)
        assert (made.offset, made.shape, made.strides) == (offset, tuple(shape), tuple(strides))
        return
    with pytest.raises(FormatError, match=says):
        rebuild(storage(), offset, shape, strides, False, None)


def test_an_expanded_tensor_may_be_sixteen_times_its_storage_and_16_mebibytes(monkeypatch: Any) -> None:
    monkeypatch.setattr(torch_tensors, "EXPANDED", 400)
    most = 100 + 16 * 12
    assert rebuild(storage(), 0, (most,), (0,)).shape == (most,)
    with pytest.raises(FormatError, match="is a view of only 12 elements"):
        rebuild(storage(), 0, (most + 1,), (0,))
    assert torch_tensors.EXPANDED == 400
    monkeypatch.undo()
    assert torch_tensors.EXPANDED == 16 << 20


def test_tensors_of_unknown_storages_are_unknown() -> None:
    kind = Unknown("torch.ComplexFloatStorage")
    made = rebuild(("storage", kind, "0", "cpu", 4), 0, (2,), (1,))
    assert isinstance(made, Unknown)
    assert made.name == "torch.ComplexFloatStorage"
    for wrong in (None, 3, ("storage",), "0"):
        with pytest.raises(FormatError, match="from something other than a storage"):
            rebuild(wrong, 0, (2,), (1,))
    assert rebuild(("storage", FLOATS, "7", "cpu", 4), 0, (2,), (1,)).storage.key == "7"


def test_a_storage_may_be_a_part_of_another() -> None:
    whole = ("storage", FLOATS, "0", "cpu", 10)
    assert (storage_of((*whole, None)).offset, storage_of((*whole, None)).count) == (0, 10)
    for begin, count in ((0, 10), (3, 7), (10, 0), (2, 3)):
        found = storage_of((*whole, ("1", begin, count)))
        assert (found.key, found.offset, found.count, found.dtype) == ("0", begin, count, dtypes.float32)
    for begin, count in ((0, 11), (3, 8), (-1, 2), (2, -1)):
        with pytest.raises(FormatError, match="a view of a storage ends past it"):
            storage_of((*whole, ("1", begin, count)))
    for view in ((1, 2), ("1", 2, "3"), ("1", "2", 3), [1, 2, 3]):
        assert storage_of((*whole, view)).count == 10
    assert storage_of(("storage", FLOATS, "0", "cpu", (1 << 62) - 1)).count == (1 << 62) - 1


def test_a_tensor_of_a_dtype_without_storage_counts_its_own_elements() -> None:
    make = KNOWN["torch._utils._rebuild_tensor_v3"].call
    raw = Storage(dtypes.uint8, "0", 64, 16)
    made = make(raw, 2, (3, 2), (2, 1), False, None, dtypes.uint16)
    assert (made.dtype, made.shape, made.offset) == (dtypes.uint16, (3, 2), 2)
    assert (made.storage.count, made.storage.offset, made.storage.dtype) == (32, 8, dtypes.uint16)
    assert make(raw, 0, (32,), (1,), False, None, dtypes.uint16).shape == (32,)
    with pytest.raises(FormatError, match=r"element 33.*32"):
        make(raw, 0, (33,), (1,), False, None, dtypes.uint16)
    for storage_, dtype in ((raw, "float32"), (None, dtypes.uint16)):
        assert isinstance(make(storage_, 0, (1,), (1,), False, None, dtype), Unknown)


@every(
    ("name", "args", "wanted"),
    [
        ("torch.Size", ([2, 3],), (2, 3)), ("torch.Size", ((2,),), (2,)), ("torch.Size", (), ()),
        ("torch.Size", (7,), ()),
        ("torch.device", ("cuda", 1), "cuda:1"), ("torch.device", ("cpu",), "cpu"),
        ("torch.device", ("cpu", None), "cpu"),
        ("builtins.list", ((1, 2),), [1, 2]), ("builtins.list", (), []), ("builtins.list", (3,), FormatError),
        ("builtins.set", ([1, "a", [2]],), [1, "a"]), ("builtins.set", ((1,),), [1]), ("builtins.set", ({1},), [1]),
        ("builtins.set", (5,), []), ("builtins.frozenset", ([1],), [1]), ("__builtin__.set", ([1],), [1]),
        ("collections.OrderedDict", (), {}), ("collections.OrderedDict", ([["a", 1], ("b", 2)],), {"a": 1, "b": 2}),
        ("collections.OrderedDict", ([[3, 1]],), {3: 1}), ("collections.OrderedDict", (5,), {}),
        ("collections.OrderedDict", ([["a"]],), FormatError), ("collections.OrderedDict", ([[(1,), 2]],), FormatError),
        ("collections.OrderedDict", (["ab"],), FormatError), ("collections.defaultdict", (list,), {}),
        ("_codecs.encode", ("é", "latin1"), b"\xe9"), ("_codecs.encode", ("é", "utf-8"), "é".encode()),
        ("_codecs.encode", ("é", "latin-1"), b"\xe9"), ("_codecs.encode", ("a", "ascii"), b"a"),
        ("_codecs.encode", ("é",), b"\xe9"),
        ("_codecs.encode", ("é", "ascii"), FormatError), ("_codecs.encode", ("a", "rot13"), FormatError),
        ("_codecs.encode", (b"a", "latin1"), FormatError), ("torch._utils._rebuild_parameter", (1, True, {}), 1),
        ("torch._utils._rebuild_parameter_with_state", (1, True, {}, 2), 1), ("torch.nn.parameter.Parameter", (4,), 4),
        ("torch.nn.parameter.Parameter", (), None), ("torch.nn.parameter.Buffer", (4, True), 4),
    ],
)  # fmt: skip
def test_known_functions(name: str, args: Any, wanted: Any) -> None:
    if wanted is FormatError:
        with pytest.raises(FormatError):
            KNOWN[name].call(*args)
    else:
        assert KNOWN[name].call(*args) == wanted


def test_a_subclass_of_a_tensor_is_its_tensor() -> None:
    make = KNOWN["torch._tensor._rebuild_from_type_v2"].call
    made = make(KNOWN["torch._utils._rebuild_tensor_v2"], None, (storage(), 0, (2,), (1,)), {})
    assert made.shape == (2,)
    assert isinstance(make(Known("x", lambda: 1), None, [], {}), Unknown)
    assert isinstance(make(None, None, (), {}), Unknown)


def test_names_in_a_pickle() -> None:
    for module in ("torch", "torch.cuda", "torch.storage"):
        assert find(module, "HalfStorage").dtype is dtypes.float16
    assert find("torch", "bfloat16") is dtypes.bfloat16
    assert find("torch.cuda", "float32") is None
    assert find("mine", "HalfStorage") is None
    assert find("collections", "OrderedDict") is KNOWN["collections.OrderedDict"]
    assert find("os", "system") is None
    assert read(pickle.dumps(OrderedDict(a=1, b=[2]), 2)) == {"a": 1, "b": [2]}
    assert struct.calcsize("<q") == dtypes.int64.itemsize


def taken(value: Any) -> int:
    """The bytes of a value and of what it holds."""
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(taken(k) + taken(v) for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sys.getsizeof(value) + sum(map(taken, value))
    return sys.getsizeof(value) if not isinstance(value, (int, bool)) or abs(value) > 256 else 0


MANY = b"".join(b"M" + struct.pack("<H", i) for i in range(1000, 2000))


@every(
    "data",
    [
        b"V" + b"a" * 1000 + b"\n.", b"S'" + b"a" * 1000 + b"'\n.", b"X" + struct.pack("<I", 1000) + b"a" * 1000 + b".",
        "V{}\n.".format("漢" * 1000).encode(), b"T" + struct.pack("<I", 1000) + b"a" * 1000 + b".",
        b"U\xff" + b"a" * 255 + b".",
        b"B" + struct.pack("<I", 1000) + b"a" * 1000 + b".", b"C\xff" + b"a" * 255 + b".",
        b"\x8a\xff" + b"\x7f" * 255 + b".",
        b"\x8b" + struct.pack("<I", 1000) + b"\x7f" * 1000 + b".", b"I" + b"9" * 1000 + b"\n.",
        b"L" + b"9" * 1000 + b"L\n.",
        b"M\xff\xff.", b"J\xff\xff\xff\x7f.", b"G?\xf8\0\0\0\0\0\0.", b"F2.5\n.", b"].", b"}.", b"\x8f.",
        b"(" + MANY + b"t.",
        b"(" + MANY + b"l.", b"(" + MANY + b"d.", b"](" + MANY + b"e.", b"}(" + MANY + b"u.",
        b"\x8f(" + MANY + b"\x90.",
        b"(" + MANY + b"\x91.", b"M\0\1\x85.", b"M\0\1M\1\1\x86.", b"M\0\1M\1\1M\2\1\x87.", b"}" + b"M\0\1M\1\1s.",
    ],
)  # fmt: skip
def test_a_value_costs_at_least_the_memory_that_it_takes_and_not_much_more(data: bytes) -> None:
    machine = _Machine(memoryview(data), find, nothing, "x", 0)
    before = machine.left
    value, _ = machine.run()
    paid = before - machine.left
    assert 0.8 * taken(value) <= paid <= 5 * taken(value) + 300


def test_stored_values_calls_and_classes_cost_memory_too() -> None:
    def paid(data: bytes, persistent: Any = nothing) -> int:
        machine = _Machine(memoryview(data), find, persistent, "x", 0)
        before = machine.left
        machine.run()
        return before - machine.left

    empty = paid(b"N.")
    assert paid(b"N" + b"q\1" * 50 + b".") - empty >= 50 * 64
    assert paid(b"Nq\1" + b"h\1" * 50 + b".") - paid(b"Nq\1.") >= 50 * 8
    assert paid(b"cmod\nThing\n.") >= 100
    assert paid(b"cmod\nThing\n)R.") - paid(b"cmod\nThing\n).") >= 64
    assert paid(b"ccollections\nOrderedDict\n)R.") - paid(b"ccollections\nOrderedDict\n).") >= 64
    assert paid(b"NQ.", lambda found: found) - empty >= 100
    assert paid(b"cmod\nThing\n)R}(" + MANY + b"ub}(" + MANY + b"ub.") - 2 * paid(b"}(" + MANY + b"u.") >= 500 * 60


def test_the_allowance_is_a_multiple_of_the_pickles_length() -> None:
    short, long = (_Machine(memoryview(bytes(n)), find, nothing, "x", 0).left for n in (10, 1010))
    assert long - short == 24_000
    assert short == (8 << 20) + 240
    assert _Machine(memoryview(bytes(1010)), find, nothing, "x", 1000).left == short
