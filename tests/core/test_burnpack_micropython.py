"""MicroPython reads and refuses the same burnpacks as CPython, with the same messages."""

import json
import random
import re
import subprocess
import sys

import emberlet
import numpy as np
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from emberlet.host.burnpack_writer import save
from support import burnpacks

SCRIPT = """
import json, os, sys
from emberlet.burnpack import Burnpack
from emberlet.errors import EmberletError, FormatError

folder = sys.argv[1]
said = {}
for name in os.listdir(folder):
    try:
        pack = Burnpack.from_file(folder + "/" + name)
    except FormatError as error:
        said[name] = str(error).replace(folder + "/" + name, "PATH")
    else:
        said[name] = [list(pack.tensors["t"].shape), bytes(pack.raw("t")).hex(":")]
print(json.dumps(said))
"""


def same(said: dict) -> dict:
    """The output without what may differ: a limit of 32-bit machines, and the order of a map's keys, which MicroPython
    shuffles."""
    text = json.dumps(said, sort_keys=True).replace("limit of 2147483648", "limit of 10737418240")
    return json.loads(re.sub(r"dtype \{.*? is none", "dtype is none", text))


def said_here(data: bytes) -> object:
    try:
        pack = Burnpack.from_bytes(data, "PATH")
    except FormatError as error:
        return str(error)
    return [list(pack.tensors["t"].shape), bytes(pack.raw("t")).hex(":")]


def test_the_same_files_are_read_and_refused(micropython_port, tmp_path):
    cases = {**burnpacks.allowed(), **burnpacks.malformed()}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
    printed = micropython_port.run(SCRIPT, [tmp_path], files=[tmp_path]).check().stdout
    assert same(json.loads(printed)) == same({name: said_here(data) for name, data in cases.items()})


MUTATED = """
import json, struct, sys
from emberlet.burnpack import Burnpack
from emberlet.errors import EmberletError

with open(sys.argv[1], "rb") as file:
    said = []
    while True:
        head = file.read(4)
        if not head:
            break
        try:
            pack = Burnpack.from_bytes(file.read(struct.unpack("<I", head)[0]))
            found = []
            for name in sorted(pack.tensors):
                entry = pack.tensors[name]
                found.append([name, entry.dtype.name, list(entry.shape), bytes(pack.raw(name)).hex(":")])
            said.append(found + sorted(pack.metadata.items()) + sorted(pack.scalars))
        except EmberletError:
            said.append("refused")
print(json.dumps(said))
"""


def mutated(files: list[bytes], choose: random.Random) -> bytes:
    """One of the files with a few bits, bytes or parts of others changed."""
    data = bytearray(choose.choice(files))
    for _ in range(choose.choice([1, 1, 1, 2, 3])):
        at, kind = choose.randrange(len(data) + 1), choose.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << choose.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = choose.choice(b"\0\1\x17\x18\x1b\x1f\x3b\x5f\x7f\x80\x9f\xa0\xbf\xf4\xf6\xf9\xfb\xff")
        elif kind == 2:
            data[at:at] = choose.randbytes(choose.choice([1, 2, 8]))
        elif kind == 3:
            del data[at : at + choose.choice([1, 2, 9])]
        else:
            other = choose.choice(files)
            begin = choose.randrange(len(other) + 1)
            data[at:] = other[begin : begin + 20] + data[at:]
    return bytes(data)


def test_mutated_files_end_alike(micropython_port, tmp_path):
    files = [*burnpacks.allowed().values(), *burnpacks.malformed().values()]
    files = [data for data in files if len(data) < 4096]
    choose = random.Random(20261122)
    cases = [mutated(files, choose) for _ in range(1500)]
    path = tmp_path / "cases"
    path.write_bytes(b"".join(len(data).to_bytes(4, "little") + data for data in cases))
    printed = micropython_port.run(MUTATED, [path], files=[path], heap="8M").check().stdout
    script = tmp_path / "here.py"
    script.write_text(MUTATED, encoding="utf-8")
    here = subprocess.run([sys.executable, script, path], capture_output=True, text=True, encoding="utf-8", check=True)
    assert len(json.loads(printed)) == len(cases)
    assert json.loads(printed) == json.loads(here.stdout)


SAVING = """
import os
import sys
import emberlet
from emberlet.config import Config
from emberlet.module.record import Record

path = sys.argv[1] + "/model.bpk"
Record({"old": emberlet.asarray([1.0])}).save(path)
before = open(path, "rb").read()


class Failing:
    dtype = emberlet.float32
    shape = (3,)

    @property
    def backend(self):
        raise OSError("the disk is full")


try:
    Record({"a": emberlet.ones((3,)), "new": Failing()}).save(path)
except OSError as error:
    print(error, open(path, "rb").read() == before, os.listdir(sys.argv[1]))
Record({"newer": emberlet.ones((3,))}).save(path)
print(open(path, "rb").read() != before, os.listdir(sys.argv[1]))


class Sized(Config):
    FIELDS = ("size",)


Sized(1).save(path)
print(Sized.load(path).size, os.listdir(sys.argv[1]))
"""


def test_a_failing_save_leaves_the_old_file_on_a_device_too(micropython_port, tmp_path):
    said = micropython_port.run(SAVING, [tmp_path], files=[tmp_path]).check().stdout
    assert said == "the disk is full True ['model.bpk']\nTrue ['model.bpk']\n1 ['model.bpk']\n"


LARGE = """
import sys
from emberlet.burnpack import Burnpack

pack = Burnpack.from_file(sys.argv[1])
first, last = pack.tensor("a"), pack.tensor("b")
print(first.shape, last.shape, last[2999997:].tolist(), bytes(pack.raw("c")))
"""


def test_a_file_beyond_16_mb_is_read_to_its_end(micropython_port, tmp_path):
    """MicroPython's memoryviews hold the place where they begin in 24 bits."""
    path = tmp_path / "large.bpk"
    tensors = {name: emberlet.asarray(np.arange(3_000_000, dtype=np.float32)) for name in "ab"}
    save(str(path), {**tensors, "c": emberlet.asarray(np.array([1, 2, 3], np.uint8))})
    said = micropython_port.run(LARGE, [path], files=[path], heap="64M").check().stdout
    assert said.split() == "(3000000,) (3000000,) [2999997.0, 2999998.0, 2999999.0] b'\\x01\\x02\\x03'".split()
