"""Files that repeat a tiny thing any number of times are refused, or cost what their bytes do; refusals stay short."""

import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.reader import parsing
from emberlet.errors import ModelError
from emberlet.host.listing import listed, names, shortened


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
