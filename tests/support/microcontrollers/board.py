"""A board simulated on MicroPython's Unix port; mpremote talks to it over standard input and output.

A raw REPL (the protocol's plain form, without raw paste), a file system in memory as in flash, a ROMFS partition, and
stand-ins for what firmware has and the Unix port has not: `machine.reset` (which runs main.py), `vfs.rom_ioctl`,
`esp32.Partition` and `rp2.Flash`. A reset forgets variables and modules and keeps the flash. Arguments: the size of the
ROMFS partition.
"""

# mypy: ignore-errors

import io
import os
import sys

import micropython
import vfs

BLOCK = 4096
ROM = bytearray(b"\xff" * int(sys.argv[1]))
PARTITION = bytearray(b"\xff" * 64 * BLOCK)
PROMPT = b"raw REPL; CTRL-B to exit\r\n>"
SOFT_RESET = b"MPY: soft reboot\r\n"


class Blocks:
    """A block device over bytes: erased to ones, in blocks of 4096."""

    def __init__(self, data):
        self.data = data

    def readblocks(self, block, buf, offset=0):
        at = block * BLOCK + offset
        buf[:] = self.data[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=None):
        if offset is None:
            self.ioctl(6, block)
            offset = 0
        at = block * BLOCK + offset
        for i in range(len(buf)):
            self.data[at + i] &= buf[i]  # as flash: ones become zeros, never the other way

    def ioctl(self, request, argument):
        if request == 4:
            return len(self.data) // BLOCK
        if request == 5:
            return BLOCK
        if request == 6:
            at = argument * BLOCK
            self.data[at : at + BLOCK] = b"\xff" * BLOCK
            return 0


class Partition(Blocks):
    TYPE_DATA = 1

    @staticmethod
    def find(kind, label):
        return [Partition(PARTITION)] if (kind, label) == (1, "model") else []


class Vfs:
    """The module `vfs` with the ROMFS partition of a board whose flash is memory."""

    def __getattr__(self, name):
        return getattr(vfs, name)

    def rom_ioctl(self, request, partition=0, *more):
        if request == 1:
            return 1
        if request == 2:
            return memoryview(ROM)
        if request == 3:
            start, size = more if len(more) == 2 else (0, more[0])
            ROM[start : start + size] = b"\xff" * size
            return 4  # the least that can be written
        if request == 4:
            ROM[more[0] : more[0] + len(more[1])] = more[1]
        return BLOCK if request == 6 else 0


class Reset(BaseException):
    """A board starts again."""


class Machine:
    def reset(self):
        raise Reset


class Esp32:
    Partition = Partition


class Rp2:
    @staticmethod
    def Flash(start, len):
        return Blocks(memoryview(PARTITION)[start : start + len])


FIRMWARE = {"machine": Machine(), "vfs": Vfs(), "esp32": Esp32, "rp2": Rp2}


def start():
    """Start as firmware does: nothing imported, the ROMFS mounted if there is one. Returns the variables of the
    REPL."""
    for name in list(sys.modules):
        del sys.modules[name]
    sys.modules.update(FIRMWARE)
    sys.path[:] = ["", "/lib"]
    os.chdir("/")
    if "rom" in [entry[0] for entry in os.ilistdir("/")]:
        vfs.umount("/rom")
    if ROM[:3] == b"\xd2\xcd\x31":
        vfs.mount(vfs.VfsRom(memoryview(ROM)), "/rom")
        sys.path.extend(["/rom", "/rom/lib"])
    return {"__name__": "__main__"}


def put(data):
    sys.stdout.buffer.write(data)


def command(code, names):
    """Run the received code, and print its output between the protocol's marks."""
    put(b"OK")
    error = b""
    try:
        exec(code.decode(), names)
    except Reset:
        raise
    except BaseException as e:
        text = io.StringIO()
        sys.print_exception(e, text)
        error = text.getvalue().encode()
    put(b"\x04" + error + b"\x04>")


def main():
    flash = Blocks(bytearray(b"\xff" * 128 * BLOCK))
    vfs.umount("/")
    vfs.VfsLfs2.mkfs(flash)
    vfs.mount(vfs.VfsLfs2(flash), "/")
    micropython.kbd_intr(-1)
    names, line = start(), bytearray()
    read = sys.stdin.buffer.read
    while True:
        byte = read(1)
        if not byte:
            return
        if byte == b"\x04" and line:
            try:
                command(line, names)
            except Reset:
                names = start()
                with open("main.py", encoding="utf-8") as f:
                    exec(f.read(), names)
            line = bytearray()
        elif byte == b"\x04":
            for value in names.values():
                if hasattr(value, "close") and not isinstance(value, type):
                    value.close()  # as firmware does with files that were left open
            names = start()
            put(b"OK\r\n" + SOFT_RESET + PROMPT)
        elif byte == b"\x01":
            line = bytearray()
            put(PROMPT)
        elif byte == b"\x05":
            read(2)
            put(b"R\x00")  # raw paste is known and not supported
        elif byte in b"\x02\x03":
            line = bytearray()
        elif line or byte != b"\r":
            line += byte


main()
