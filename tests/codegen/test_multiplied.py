"""Files that repeat a tiny thing any number of times are refused, or cost what their bytes do; refusals stay short."""

import contextlib
import struct
import sys
import tracemalloc

import numpy as np
import onnx
import pytest
from emberlet import store
from emberlet.codegen.generation import translate
from emberlet.codegen.reader import parsing
from emberlet.errors import FormatError, ModelError
from emberlet.host.listing import listed, names, shortened
from onnx import TensorProto, helper, numpy_helper


def field(number, data):
    return number_of(number << 3 | 2) + number_of(len(data)) + data


def number_of(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def file(graph, more=b""):
    return b"\x08\x0a" + field(8, b"\x10\x15") + field(7, graph) + more


REPEATED = {
    "nodes": file(field(1, b"") * 200_000),
    "initializers": file(field(5, b"") * 200_000),
    "inputs": file(field(11, b"") * 200_000),
    "types of values": file(field(13, b"") * 200_000),
    "functions": file(b"", field(25, b"") * 200_000),
    "entries of metadata": file(b"", field(14, b"") * 200_000),
    "attributes of a node": file(field(1, field(4, b"Add") + field(5, b"") * 200_000)),
    "graphs of an attribute": file(field(1, field(5, field(11, b"") * 200_000))),
    "dimensions": file(field(11, field(2, field(1, field(2, field(1, b"") * 200_000))))),
}


@pytest.mark.parametrize("reader", ["onnx", "our own"])
@pytest.mark.parametrize("what", REPEATED)
def test_a_file_of_empty_messages_is_refused_before_they_become_objects(what, reader, monkeypatch):
    monkeypatch.setattr(parsing, "has_onnx", lambda: reader == "onnx")
    monkeypatch.setattr(parsing, "SMALL", 0)
    with pytest.raises(ModelError, match=r"holds more than [0-9]+ messages, one for every 8 bytes and 65536 more"):
        translate(REPEATED[what])


@pytest.mark.parametrize("part", [field(1, b""), field(5, b""), field(11, b""), field(12, b""), field(15, b"")])
def test_a_refusal_lists_twenty_problems_and_counts_the_rest(part):
    with pytest.raises(ModelError) as few:
        translate(file(part * 300))
    lines = str(few.value).splitlines()
    count = int(lines[0].split()[2])
    assert len(lines) == 22 and lines[-1] == f"- and {count - 20} more"
    with pytest.raises(ModelError) as many:
        translate(file(part * 5000))
    assert "1000 problems or more" in str(many.value) and len(str(many.value)) < 10_000
    assert str(many.value).endswith("- and 980 more at least: what follows was not read")


def test_a_long_name_does_not_fill_the_message():
    with pytest.raises(ModelError) as raised:
        translate(file(field(11, field(1, b"x" * 1_000_000))))
    assert len(str(raised.value)) < 1000


def test_lists_in_messages_are_cut():
    assert listed(["a", "b"]) == "- a\n- b"
    assert listed([str(i) for i in range(23)]).endswith("- 19\n- and 3 more")
    assert names(range(22)) == ", ".join(map(str, range(20))) + " and 2 more"
    assert shortened("begin" + "x" * 1000 + "end").startswith("begin") and shortened("x" * 1000 + "end").endswith("end")


def external(count, size):
    """A model with `count` initializers that lie at the same bytes of x.bin."""
    one = [TensorProto(name=f"w{i}", data_type=TensorProto.UINT8, dims=[size]) for i in range(count)]
    for t in one:
        t.data_location = TensorProto.EXTERNAL
        t.external_data.add(key="location", value="x.bin")
    nodes = [helper.make_node("Identity", ["w0"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [size])]
    return helper.make_model(
        helper.make_graph(nodes, "g", [], outputs, one), opset_imports=[helper.make_opsetid("", 21)]
    )


def test_external_data_that_many_tensors_share_is_refused(tmp_path):
    size = 1 << 20
    (tmp_path / "x.bin").write_bytes(bytes(size))
    onnx.save(external(20, size), tmp_path / "few.onnx")
    onnx.save(external(300, size), tmp_path / "many.onnx")
    translate(tmp_path / "few.onnx")
    assert len(store.open(tmp_path / "few.onnx")) == 20
    with pytest.raises(ModelError, match=r"'x\.bin'.*16"):
        translate(tmp_path / "many.onnx")
    with pytest.raises(FormatError, match="its tensors share their bytes"):
        store.open(tmp_path / "many.onnx")


def test_a_weight_file_whose_tensors_share_their_bytes_is_refused():
    def text(words):
        return struct.pack("<Q", len(words)) + words.encode()

    count, size = 300, 1 << 20
    entries = b"".join(text(f"t{i}") + struct.pack("<IQIQ", 1, size, 24, 0) for i in range(count))
    head = b"GGUF" + struct.pack("<IQQ", 3, count, 0) + entries
    with pytest.raises(FormatError, match="its tensors share their bytes"):
        store.open(head + bytes(-len(head) % 32) + bytes(size))


def calls_of(function, *arguments):
    """How many functions are called."""
    found = 0

    def count(frame, event, arg):
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return found


def sum_of_numbers(count):
    weights = [numpy_helper.from_array(np.float32([i]), f"w{i}") for i in range(count)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    node = helper.make_node("Sum", ["x", *(w.name for w in weights)], ["y"])
    return helper.make_model(helper.make_graph([node], "g", [x], [y], weights)).SerializeToString()


def test_the_work_for_many_numbers_of_a_node_is_in_proportion_to_them():
    translate(sum_of_numbers(1))  # imports what it needs
    assert calls_of(translate, sum_of_numbers(1200)) < 6 * calls_of(translate, sum_of_numbers(300))


def chain(operator, count):
    nodes = (field(1, field(1, b"%x" % i) + field(2, b"%x" % (i + 1)) + field(4, operator)) for i in range(count))
    return file(b"".join(nodes) + field(2, b"g") + field(11, value(b"0")) + field(12, value(b"%x" % count)))


def value(name):
    return field(1, name) + field(2, field(1, b"\x08\x01" + field(2, field(1, b"\x08\x02"))))


# as many messages for each byte as a model can have
DENSE = {
    "a chain": chain(b"Exp", 1500),
    "a chain of shapes": chain(b"Shape", 1500),
    "many results": file(
        b"".join(field(1, field(1, b"0") + field(2, b"%x" % i) + field(4, b"Neg")) for i in range(1, 1000))
        + b"".join(field(12, value(b"%x" % i)) for i in range(1, 1000))
        + field(2, b"g") + field(11, value(b"0"))
    ),
    "initializers": file(
        b"".join(field(5, b"\x10\x01" + field(8, b"%x" % i) + field(9, b"1234")) for i in range(3000))
        + field(2, b"g") + field(12, value(b"0"))
    ),
    "entries of metadata": file(field(2, b"g"), field(14, field(1, b"abcd")) * 3000),
}  # fmt: skip
TIMES = 128  # docs/security.md says it


@pytest.mark.parametrize("what", DENSE)
def test_a_dense_file_takes_a_bounded_multiple_of_its_size(what):
    translate(chain(b"Exp", 2))  # imports what it needs
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelError):
            translate(DENSE[what])
        assert tracemalloc.get_traced_memory()[1] < TIMES * len(DENSE[what])
    finally:
        tracemalloc.stop()
