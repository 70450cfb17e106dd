"""The kernels as code for aarch64, run by qemu's emulator of a process, beside NumPy.

The steps of a plan become one program without a system's libraries: the plan's memory is a part of its file, and it
writes the memory to its output when the steps have run (System V Application Binary Interface for AArch64).
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.wgpu_backend.llvm import backend as native
from emberlet.wgpu_backend.llvm import engine, linking, processor, render

from .test_threads import network

Array = np.ndarray[Any, Any]
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
CODE, MEMORY = 0x10000000, 0x40000000  # where the program's two parts lie
WRITE, EXIT = 64, 93  # the numbers of Linux's calls
# A call of the system: mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc 0; ret
CALL = (0xAA0003E8, 0xAA0103E0, 0xAA0203E1, 0xAA0303E2, 0xD4000001, 0xD65F03C0)
# Kinds of relocations: pages, lower bits, jumps, distances.
PAGE, LOW, JUMPS, RELATIVE = 275, {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}, (282, 283), 261


class Emulated:
    """In place of engine.Steps."""

    threads = 1
    nbytes = 0
    folder: Path

    def __init__(self, each: list[tuple[Any, list[int]]], *_: Any) -> None:
        binding = processor.llvm()
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        self.each = each

    def run(self, memory: int) -> None:
        data = ctypes.string_at(memory, self.nbytes)
        done = subprocess.run([str(EMULATOR), self.program(data)], capture_output=True)
        assert done.returncode == 0 and len(done.stdout) == len(data), done
        ctypes.memmove(memory, done.stdout, len(data))

    def program(self, data: bytes) -> str:
        code = self.code(len(data))
        parts = [(code, CODE), (data, MEMORY)]
        head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 183, 1, CODE, 64, 0, 0, 64, 56, 2, 0, 0, 0)
        at, body = 4096, b""
        for part, place in parts:
            head += struct.pack("<IIQQQQQQ", 1, 7, at, place, place, len(part), len(part), 4096)
            body += part.ljust((len(part) + 4095) // 4096 * 4096, b"\0")
            at = 4096 + len(body)
        path = self.folder / "program"
        path.write_bytes(head.ljust(4096, b"\0") + body)
        path.chmod(0o700)
        return str(path)

    def code(self, nbytes: int) -> bytes:
        """Machine code that runs the steps on the memory, writes it and ends; it begins with its first instruction."""
        llvm = processor.llvm()
        functions: dict[int, str] = {}
        whole = llvm.parse_assembly("")
        lines, tables = [], []
        for n, (function, given) in enumerate(self.each):
            name = functions.get(id(function))
            if name is None:
                name = functions[id(function)] = f"kernel{n}"
                text = render.kernel(function).replace("define void @kernel(", f"define void @{name}(")
                whole.link_in(llvm.parse_assembly(text))
                tables.append(f"declare void @{name}(ptr, ptr, i32, i32, i32)")
            words = ", ".join(f"i32 {word}" for word in given)
            tables.append(f"@table{n} = internal constant [{len(given)} x i32] [{words}]")
            lines.append(f"call void @{name}(ptr inttoptr (i64 {MEMORY} to ptr), ptr @table{n}, i32 0, i32 1, i32 0)")
        lines.append(f"%a = call i64 @system(i64 {WRITE}, i64 1, i64 {MEMORY}, i64 {nbytes})")
        lines.append(f"%b = call i64 @system(i64 {EXIT}, i64 0, i64 0, i64 0)")
        main = "\n".join(["declare i64 @system(i64, i64, i64, i64)", *tables, "define void @main() {", *lines])
        whole.link_in(llvm.parse_assembly(main + "\nret void\n}"))
        machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(
            opt=2, reloc="static", codemodel="small"
        )
        return _linked(machine.emit_object(engine._optimized(machine, str(whole))))


def _linked(data: bytes) -> bytes:
    sections = linking._sections(data)
    laid, places = linking._laid_out(data, sections)
    start = 4096
    code = bytearray(struct.pack("<7I", 0, *CALL).ljust(start, b"\0") + laid)
    (symbols,) = [linking._symbols(data, sections, s) for s in sections if s[0] == 2]
    at = {name: start + places[section] + value for name, section, value in symbols if section in places}
    at["system"] = 4

    def patch(place: int, kind: int, target: int) -> None:
        (word,) = struct.unpack_from("<I", code, place)
        if kind in JUMPS:
            word |= ((target - place) >> 2) & 0x3FFFFFF
        elif kind == PAGE:
            pages = ((CODE + target) >> 12) - ((CODE + place) >> 12)
            word |= (pages & 3) << 29 | ((pages >> 2) & 0x7FFFF) << 5
        elif kind == RELATIVE:
            word = (target - place) & 0xFFFFFFFF
        else:
            word |= (((CODE + target) & 0xFFF) >> LOW[kind]) << 10
        struct.pack_into("<I", code, place, word)

    struct.pack_into("<I", code, 0, 0x94000000)
    patch(0, JUMPS[1], at["main"])
    for type, _, offset, size, _, info, _ in sections:
        if type == 4 and info in places:
            for entry in range(offset, offset + size, 24):
                where, kind, number, addend = struct.unpack_from("<QIIq", data, entry)
                name, section, value = symbols[number]
                target = start + places[section] + value if section in places else at[name]
                patch(start + places[info] + where, kind, target + addend)
    return bytes(code)


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if EMULATOR is None:
        pytest.skip("qemu's emulator of aarch64 is not installed")
    made = native.Compiled.instance

    def instance(self: Any) -> Any:
        self.steps.nbytes = self.nbytes
        return made(self)

    monkeypatch.setenv("EMBERLET_CACHE", "off")
    monkeypatch.setattr(Emulated, "folder", tmp_path, raising=False)
    monkeypatch.setattr(engine, "Steps", Emulated)
    monkeypatch.setattr(native.Compiled, "instance", instance)
    monkeypatch.setattr(processor, "current", lambda: processor.Processor("generic", None, 4, True, 0))


def eight_bits(x: Any) -> Any:
    rng = np.random.default_rng(3)
    w = emberlet.asarray(rng.integers(-128, 128, (24, 5, 3, 3)).astype(np.int8), backend=x.backend)
    deep = emberlet.asarray(rng.integers(-128, 128, (5, 1, 3, 3)).astype(np.int8), backend=x.backend)
    levels = F.quantize_linear(x, 0.05, 3, dtype=emberlet.int8)
    return F.conv_integer(levels, w, 3), F.conv_integer(levels, deep, 3, groups=5), levels


def functions(x: Any) -> Any:
    flat = x.reshape((-1,))
    return F.exp(flat), F.tanh(flat), F.erf(flat), F.log(F.abs(flat)), F.sort(flat), F.layer_norm(x, (37,)), flat > 0.5


@pytest.mark.parametrize("function", [network, eight_bits, functions])
def test_code_for_aarch64_gives_numpys_results(function: Any) -> None:
    pictures = np.random.default_rng(0).standard_normal((2, 5, 23, 37)).astype(np.float32)
    backend = native.NativeBackend()
    found = function(emberlet.asarray(pictures, backend=backend))
    want = function(emberlet.asarray(pictures, backend="numpy"))
    for a, b in zip(found, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * np.abs(b).max())
        else:
            np.testing.assert_array_equal(a, b)
