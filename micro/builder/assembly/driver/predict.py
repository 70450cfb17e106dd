"""`predict` as one function in machine code, which converts numbers, runs the model and makes the list.

It converts the numbers as converted.py says and calls the driver as `drive()`, or else as `drive(numbers, 0)`. Then
MicroPython allocates the list, its items and each float, which are laid out as py/objlist.h and py/objfloat.h say, as
the driver reads them. Whatever the driver refuses, and other arguments than one, go to `predict` in bytecode, which
says what is wrong; if there is no memory, `get` in bytecode makes the list or says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..frame import Frame
from ..scalar import V0, V1, V2, V3, V4, V5, V6, V7
from .calls import Calls, CallsVfp, place
from .converted import converted
from .products import long_product, product

FRAME = Frame(("list", "items", "count", "way", "at", "each"), ("float", "arguments", "given"))
"""As numbers.FIELDS, whose functions read it. items: where the next number's object goes; at: where it comes from;
arguments, given: of the call, and how many."""

MULTIPLY = 29
"""MicroPython's number for a product (py/runtime0.h)."""

LIST, FLOAT, LEAST = 16, 8, 4
"""Bytes of the objects of a list and of a float, and the least items for which a list has room."""


@dataclass(frozen=True)
class Answer:
    """What `predict` does. count: the output's numbers; words: whether they are words or bytes; result: "whole"
    numbers, "floats", or "product" if MicroPython computes it; power: whether the step is a power of two; converts:
    whether `predict` converts the input's numbers."""

    count: int
    words: bool
    result: str
    power: bool
    converts: bool


def predict(a: Calls, answer: Answer) -> Calls:
    """The function."""
    f = FRAME
    a.function(f)
    a.put(V0, f["given"])
    a.put(V1, f["arguments"])
    a.number(V2, 1)
    a.go_if("ne", V0, V2, "slow", far=True)
    if answer.converts:
        converted(a)
        a.told(V0, "drive")
        a.number(V1, 0)
        a.call("code")
        a.go("ran")
    a.label("refused")
    a.fourth(f["arguments"])
    a.told(V0, "drive")
    a.number(V1, 2)
    a.call("code")
    a.number(V1, 1)  # a small zero
    a.go_if("ne", V0, V1, "slow", far=True)
    a.label("ran")
    _list(a, answer)
    a.label("leave")
    a.result(f)
    for name in ("slow", "get"):
        a.label(name)
        a.told(V0, name)
        if name == "slow":
            a.get(V1, f["given"])
        else:
            a.number(V1, 0)
        a.get(V2, f["arguments"])
        a.call("call")
        a.go("leave")
    return a


def _allocated(a: Calls, size: int) -> None:
    """V0: so many bytes."""
    a.number(V0, 0)
    a.number(V1, size)
    a.number(V2, 0)
    a.call("allocate")
    a.go_if_zero("eq", V0, "get", far=True)


def _list(a: Calls, answer: Answer) -> None:
    """V0: the list."""
    f, room = FRAME, max(answer.count, LEAST)
    _allocated(a, LIST)
    a.put(V0, f["list"])
    _allocated(a, 4 * room)
    a.put(V0, f["items"])
    a.get(V1, f["list"])
    a.told(V2, "list")
    a.number(V3, room)
    a.number(V4, answer.count)
    a.copy(V5, V0)
    a.put_words(V1, (V2, V3, V4, V5))
    a.number(V6, 0)
    for k in range(answer.count, room):
        a.store_word(V6, V0, 4 * k)
    if answer.count > 1:
        a.put(V4, f["count"])
        a.told(V4, "bytes")
        a.put(V4, f["at"])
    a.label("number")
    if answer.result == "floats":
        _allocated(a, FLOAT)
    _integer(a, answer)
    _object(a, answer)
    a.get(V1, f["items"])
    a.store_word(V0, V1)
    if answer.count > 1:
        a.step(V1, 4)
        a.put(V1, f["items"])
        a.count_down(f["count"], "number", far=True)
    a.get(V0, f["list"])


def _integer(a: Calls, answer: Answer) -> None:
    """V2: the next number in steps."""
    f = FRAME
    if answer.count > 1:
        a.get(V4, f["at"])
    else:
        a.told(V4, "bytes")
    (a.word if answer.words else a.byte)(V2, V4)
    if answer.count > 1:
        a.step(V4, 4 if answer.words else 1)
        a.put(V4, f["at"])
    a.told(V3, "zero")
    a.minus(V2, V3)


def _object(a: Calls, answer: Answer) -> None:
    """V0: the number in V2 as an object, which is V0 if it is a float."""
    if answer.result == "floats":
        if isinstance(a, CallsVfp):
            a.vmov_to(0, V2)
            a.vcvt_from_int(0, 0)
            a.vldr(1, V7, place("bits"))
            a.vmul(0, 0, 1)
            a.vmov_from(V5, 0)
        else:
            a.told(V3, "exponent")
            if not answer.power:
                a.told(V6, "mantissa")
            if answer.words:
                long_product(a, FRAME["each"], answer.power)
            else:
                product(a, V1)
        a.told(V4, "float")
        a.store_word(V4, V0)
        a.store_word(V5, V0, 4)
        return
    a.left(V2, 1)
    a.step(V2, 1)
    if answer.result == "whole":
        a.copy(V0, V2)
        return
    a.told(V1, "step")
    a.number(V0, MULTIPLY)
    a.call("multiply")
