"""MicroPython reads and refuses the same burnpacks as CPython, with the same words."""

import json
import re

from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from support import burnpacks

SCRIPT = """
import json, os, sys
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError

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
    """What was said, but for a limit of 32-bit machines and the order of a map's keys, which MicroPython shuffles."""
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
