"""The part of a model's module that finds its kernels and weights, and refuses files that are damaged or belong to
another build."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from zlib import crc32

from ..program import Program


@dataclass(frozen=True)
class Pack:
    """A burnpack of both blobs: its size, their offsets, and 8 bytes that identify the model."""

    data: bytes
    weights: int
    tables: int
    mark_at: int
    mark: bytes


@dataclass(frozen=True)
class Partition:
    """Where the burnpack is in flash. chip: "rp2" (start: counted from the file system's first byte) or "esp32"."""

    chip: str
    start: int = 0
    label: str = "model"

    def device(self, size: int) -> str:
        """MicroPython lines that set `device`, a block device of at least `size` bytes."""
        if self.chip == "rp2":
            return f"from rp2 import Flash\n\ndevice = Flash(start={self.start}, len={-(-size // 4096) * 4096})\n"
        return f"from esp32 import Partition\n\ndevice = Partition.find(Partition.TYPE_DATA, label={self.label!r})[0]\n"


@dataclass(frozen=True)
class Deployed:
    """What the compiled module knows of the files beside it. arch: the instruction set of the kernels, "" for bytecode;
    kernels: their .mpy file; moves: whether `emberlet micro deploy` renames the files into place."""

    arch: str
    kernels: bytes
    moves: bool


@dataclass(frozen=True)
class Frozen:
    """What a module in firmware knows of its kernels. arch: their instruction set; kernels: their .mpy file; constants:
    whether they hold the words T."""

    arch: str
    kernels: bytes
    constants: bool


READY = ".emberlet-{}"
"""The folder on a board from which a model's complete new files are renamed into place."""


def loading(
    program: Program, pack: Pack | None, partition: Partition | None, deployed: Deployed | Frozen | None
) -> str:
    """Lines that set `_kernels`, `_w` and `_t`.

    pack: the file of the weights; None if they are in a module. partition: the weights' location in flash, if they are
    not a file. deployed: None for the module as source.
    """
    name = program.name
    used, parts = ["_check"], [_CHECK]
    if isinstance(deployed, Frozen):
        parts += [_suits(program, deployed), _weights(program, not deployed.constants)]
        return "\n".join([*parts, "del _check, _suits\n"])
    if deployed is not None or (pack is not None and partition is None):
        used.append("_open")
        parts.append(_OPEN.format(name=name))
    if deployed is not None:
        if deployed.moves:
            used.append("_finish")
            parts.append(_FINISH.format(name=name, ready=READY.format(name)))
        used.append("_parts")
        file = f"{name}_{'kernels' if deployed.arch or program.is_float else 'bytecode'}.mpy"
        parts.append(_PARTS.format(file=file, crc=crc32(deployed.kernels)))
    parts.append(_kernels(program, deployed))
    if pack is None:
        parts.append(_weights(program, True))
    else:
        parts.append(_from_file(program, pack) if partition is None else _from_partition(program, pack, partition))
        used += ["_load"] if partition else ["_load", "_read"]
    return "\n".join([*parts, f"del {', '.join(sorted(used))}\n"])


def _weights(program: Program, words: bool) -> str:
    """Lines that take the weights, and the words if they are there too, from a module."""
    parts = [program.weight_bytes, program.word_bytes] if words else [program.weight_bytes]
    check = f'{crc32(b"".join(parts))}, "the module {program.name}_weights")\n'
    if words:
        return f"from {program.name}_weights import T as _t, W as _w\n\n_check((_w, _t), {check}"
    return f"from {program.name}_weights import W as _w\n\n_t = None\n_check((_w,), {check}"


ARMV6M, ARMV7EMDP = 4, 8
"""MicroPython's numbers for instruction sets of Cortex-M, each of which includes those of smaller numbers."""

# Firmware that loads no machine code from files does not say what it is for.
_SUITS = """\
def _suits():
    from sys import implementation

    found = getattr(implementation, "_mpy", 0) >> 8 & 63
    if found and (found & 3 != {version} or found >> 2 not in {archs}):
        raise ValueError(
            "{name}_kernels holds {arch} code of .mpy version 6.{version}, which this firmware does not run: build the "
            "model for this board (--board) and this MicroPython (--micropython), then the firmware again"
        )


_suits()
import {name}_kernels as _kernels
"""


def _suits(program: Program, frozen: Frozen) -> str:
    """Lines that import the kernels, unless the firmware is for another processor or release than their .mpy file,
    whose third byte says both."""
    version, own = frozen.kernels[2] & 3, frozen.kernels[2] >> 2 & 15
    archs = range(own, ARMV7EMDP + 1) if ARMV6M <= own <= ARMV7EMDP else (own,)
    return _SUITS.format(name=program.name, arch=frozen.arch, version=version, archs=(0, *archs))


# Ports without crc32 do without the check.
_CHECK = """\
def _check(parts, due, what):
    try:
        from binascii import crc32
    except ImportError:
        return
    found = 0
    for part in parts:
        found = crc32(part, found)
    if found != due:
        raise ValueError(what + " is damaged or belongs to another build; copy the model again")

"""

_OPEN = """\
def _open(name):
    import sys

    for folder in sys.path:
        try:
            return open((folder + "/" if folder else "") + name, "rb")
        except OSError:
            pass
    raise OSError(name + " is in no folder of sys.path; copy it beside {name}.py")

"""

# This module is the first that a deployment renames: where the others are still to come, it has been interrupted.
_FINISH = """\
def _finish():
    import os
    import sys

    for folder in sys.path:
        ready = folder + "/{ready}/"
        try:
            names = os.listdir(ready[:-1])
        except OSError:
            continue
        if "{name}.mpy" not in names:
            for name in names:
                os.rename(ready + name, folder + "/" + name)
            os.rmdir(ready[:-1])


_finish()
"""

_PARTS = """\
def _parts(name):
    with _open(name) as f:
        while True:
            part = f.read(512)
            if not part:
                return
            yield part


_check(_parts("{file}"), {crc}, "{file}")
"""


def _kernels(program: Program, deployed: Deployed | None) -> str:
    name = program.name
    if program.is_float:
        return f"import {name}_kernels as _kernels\n"
    if deployed is None:
        return (
            "try:\n"
            f"    import {name}_kernels as _kernels  # machine code\n"
            "except (ImportError, SyntaxError, ValueError):\n"
            f"    import {name}_bytecode as _kernels  # for ports that have none\n"
        )
    if not deployed.arch:
        return f"import {name}_bytecode as _kernels\n"
    return (
        "try:\n"
        f"    import {name}_kernels as _kernels  # machine code\n"
        "except ValueError as error:\n"
        "    try:\n"
        f"        import {name}_bytecode as _kernels  # somebody has copied it too\n"
        "    except ImportError:\n"
        f'        raise ValueError("{name}_kernels.mpy holds {deployed.arch} code, which this firmware does not load: '
        'build the model for this board ({})".format(error))\n'
    )


def _from_file(program: Program, pack: Pack) -> str:
    weights, tables = len(program.weight_bytes), len(program.word_bytes)
    return f'''\
def _read(f, start, size):
    f.seek(start)
    data = bytearray(size)
    if f.readinto(data) != size:
        raise ValueError("{program.name}.bpk is shorter than {len(pack.data)} bytes; copy it again")
    return data


def _load():
    with _open("{program.name}.bpk") as f:
        try:
            data = memoryview(f)  # ROMFS: the flash itself
        except TypeError:
            head = _read(f, 0, {_head(pack)})
            w, t = _read(f, {pack.weights}, {weights}), _read(f, {pack.tables}, {tables})
        else:
            head = data[:{_head(pack)}]
            w, t = data[{pack.weights}:{pack.weights + weights}], data[{pack.tables}:{pack.tables + tables}]
    if bytes(head[{pack.mark_at}:{pack.mark_at + 8}]) != {pack.mark!r}:
        raise ValueError("{program.name}.bpk belongs to another build; copy the one that came with {program.name}.py")
    _check((head, w, t), {_total(program, pack)}, "{program.name}.bpk")
    return w, t


_w, _t = _load()
'''


def _from_partition(program: Program, pack: Pack, partition: Partition) -> str:
    weights, tables = len(program.weight_bytes), len(program.word_bytes)
    return f"""\
def _load():
{textwrap.indent(partition.device(len(pack.data)), "    ")}    try:
        data = memoryview(device)  # the flash itself
    except TypeError:
        data = memoryview(bytearray({-(-len(pack.data) // 4096) * 4096}))
        device.readblocks(0, data)
    if bytes(data[{pack.mark_at}:{pack.mark_at + 8}]) != {pack.mark!r}:
        raise ValueError("the flash partition does not hold {program.name}.bpk; write it there: emberlet micro deploy")
    w, t = data[{pack.weights}:{pack.weights + weights}], data[{pack.tables}:{pack.tables + tables}]
    _check((data[:{_head(pack)}], w, t), {_total(program, pack)}, "{program.name}.bpk in the flash partition")
    return w, t


_w, _t = _load()
"""


def _head(pack: Pack) -> int:
    """The size of the burnpack's head: what precedes both blobs."""
    return min(pack.weights, pack.tables)


def _total(program: Program, pack: Pack) -> int:
    """The checksum of the burnpack's head, the weights and the tables."""
    return crc32(program.word_bytes, crc32(program.weight_bytes, crc32(pack.data[: _head(pack)])))
