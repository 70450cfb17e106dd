"""The assembler writes modules that two engines accept, and that do what their expressions say."""

from __future__ import annotations

import random

import pytest
import wasmtime
from emberlet.wgpu_backend.wasm import assembler, library
from emberlet.wgpu_backend.wasm.opcodes import OPCODES, signed, unsigned
from support.rows import every


def read_signed(data: bytes) -> int:
    """A signed LEB128 number, by the definition."""
    out = 0
    for at, byte in enumerate(data):
        out |= (byte & 0x7F) << (7 * at)
    return out - (1 << (7 * len(data))) if data[-1] & 0x40 else out


def test_leb128_is_the_shortest_that_reads_back() -> None:
    choose = random.Random(0)
    numbers = [choose.randrange(-(1 << bits), 1 << bits) for bits in range(1, 64) for _ in range(20)]
    for n in numbers:
        data = signed(n)
        assert read_signed(data) == n
        assert all(byte & 0x80 for byte in data[:-1])
        assert not data[-1] & 0x80
        assert len(data) == 1 or read_signed(data[:-1]) != n
        if n >= 0:
            assert sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(unsigned(n))) == n


def whole_library() -> bytes:
    functions = [(name, library.function(name)) for name in library._FUNCTIONS]
    return assembler.module(functions, ["exp64"], 1)


def test_wasmtime_accepts_the_whole_library() -> None:
    wasmtime.Module(wasmtime.Engine(), whole_library())


IMMEDIATES = ("", " 0", " 0 0", " " + " ".join(["0"] * 16))  # none, a lane or index, two of them, those of a shuffle


def translated(instruction: str) -> bytes:
    """The bytes of an instruction, as wasmtime translates its text."""
    for immediates in IMMEDIATES:
        try:
            text = f"(module (memory 1 1 shared) (func {instruction}{immediates}))"
            return body(bytes(wasmtime.wat2wasm(text)))
        except wasmtime.WasmtimeError:
            continue
    raise AssertionError(f"{instruction} is no instruction")


def body(module: bytes) -> bytes:
    """The code of a module's only function, which has no locals."""
    at = 8
    while True:
        section, size, at = module[at], module[at + 1], at + 2  # all sections are shorter than 128 bytes
        if section == 10:
            return module[at + 3 : at + size - 1]
        at += size


@every("name", list(OPCODES))
def test_an_instruction_has_the_bytes_of_its_name(name: str) -> None:
    code, _, align = OPCODES[name]
    found = translated(name)
    assert found.startswith(code)
    if align is not None:
        assert found[len(code)] == align


def test_an_instruction_leaves_a_value_of_its_type() -> None:
    config = wasmtime.Config()
    config.wasm_threads = True
    engine = wasmtime.Engine(config)

    def leaves(instruction: str, type: str) -> bool:
        result = f"(result {type})" if type else ""
        for immediates in IMMEDIATES:
            text = f"(module (memory 1 1 shared) (func {result} unreachable {instruction}{immediates}))"
            try:
                wasmtime.Module.validate(engine, wasmtime.wat2wasm(text))
                return True
            except wasmtime.WasmtimeError:
                continue
        return False

    for name, (_, type, _) in OPCODES.items():
        if name != "select":  # of the type of its operands
            assert leaves(name, type), name
            assert not type or not leaves(name, "i64" if type == "f32" else "f32"), name


def test_a_negative_number_has_no_unsigned_bytes():
    with pytest.raises(ValueError, match="-1 is negative"):
        unsigned(-1)
