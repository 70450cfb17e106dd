"""Runs programs on boards emulated by QEMU, and counts their instructions.

    board = EmulatedBoard("m7")
    print(board.run("print(1 + 1)"))                     # "2\\n"
    board.run("import model", {"model.mpy": data})        # files lie in a ROMFS, as in a board's flash

QEMU runs with `-icount shift=0`: an instruction takes a nanosecond of virtual time, so a board's timer counts
instructions. A program reads them with `count()`: instructions since the start, in steps of the timer's (40 on the
MPS2 boards, 62.5 on the micro:bit, 100 on RISC-V).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from emberlet.micro.builder.romfs import romfs_image

from . import components
from .micropython_builds import firmware

_HEAD = """
import machine, sys, uctypes, vfs
vfs.mount(vfs.VfsRom(uctypes.bytearray_at({payload}, {size})), "/rom")
sys.path[:] = ["/rom", ".frozen"]
"""

_SYSTICK = """
machine.mem32[0xE000E014] = 0xFFFFFF
machine.mem32[0xE000E018] = 0
machine.mem32[0xE000E010] = 5
_last = [0xFFFFFF, 0]
def count():
    now = machine.mem32[0xE000E018]
    _last[1] += (_last[0] - now) & 0xFFFFFF
    _last[0] = now
    return int(_last[1] * {clock})
"""

_TIMER = """
def count():
    return machine.mem32[0x0200BFF8] * {clock}
"""

_STARTED = b"\r\nraw REPL; CTRL-B to exit\r\n>"
_ENDED = b"\x04\x04>"
_FAILED = b"exception caught"


class EmulatedBoard:
    """One of firmware.EVERY.

    Args:
        frozen: A manifest.py and .mpy files, which are frozen into its firmware.

    Raises:
        Missing: QEMU, or the board's firmware, is not there.
        StepError: The firmware does not compile with these modules.
    """

    def __init__(self, name: str, frozen: Mapping[str, bytes] | None = None) -> None:
        self.board = firmware.EVERY[name]
        components.get("emulated-boards").found()
        self.has_frozen = frozen is not None
        self.elf = self.board.elf if frozen is None else firmware.frozen(self.board, frozen)

    @property
    def arch(self) -> str:
        return self.board.arch

    def run(
        self,
        script: str,
        files: Mapping[str, bytes] | None = None,
        timeout: float = 600,
        options: Sequence[str] = (),
    ) -> str:
        """Run a script and return its output. files: the contents of "/rom", which is also its import path; options: of
        QEMU.

        Raises:
            AssertionError: it raised, the processor faulted, or it took too long.
        """
        head = (_SYSTICK if self.board.counts_down else _TIMER).format(clock=self.board.clock)
        image = romfs_image(files) if files else b""
        text = (head + script).encode()
        start = (_HEAD if files else "import machine, uctypes\n").format(payload=self.board.payload, size=len(image))
        start += f"exec(uctypes.bytearray_at({self.board.payload + len(image)}, {len(text)}))"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "payload").write_bytes(image + text)
            payload = f"loader,file={folder}/payload,addr={self.board.payload:#x},force-raw=on"
            return self._run(start, [*options, "-device", payload], timeout)

    def _run(self, script: str, options: list[str], timeout: float) -> str:
        command = [*self.board.command, *options, "-kernel", str(self.elf)]
        command += ["-nographic", "-monitor", "null", "-semihosting", "-serial", "stdio"]
        command += ["-icount", "shift=0,sleep=off"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as qemu:
            try:
                assert qemu.stdin
                until = time.monotonic() + timeout
                qemu.stdin.write(b"\x01")
                qemu.stdin.flush()
                self._read(qemu, _STARTED, until)
                qemu.stdin.write(script.encode() + b"\x04")
                qemu.stdin.flush()
                out = self._read(qemu, _ENDED, until, b"\x04>", started=True)
            finally:
                qemu.kill()
        said, _, failed = out.removeprefix(b"OK").partition(b"\x04")
        text, failure = (part.decode("utf-8", "replace").replace("\r\n", "\n") for part in (said, failed))
        failure = failure.removesuffix("\x04>")
        if failure:
            raise AssertionError(f"{self.board.title}: {failure}\n{text[-4000:]}")
        return text

    def _read(
        self,
        qemu: subprocess.Popen[bytes],
        mark: bytes,
        until: float,
        also: bytes | None = None,
        *,
        started: bool = False,
    ) -> bytes:
        """The output up to a mark; `also` ends it too, after a `\\x04`.

        QEMU looks once in a second whether its UART can take more, and a board spins that long; a signal makes it look.
        Before the board has started, so while QEMU does, a signal would end it.
        """
        assert qemu.stdout
        out = b""
        with selectors.DefaultSelector() as selector:
            selector.register(qemu.stdout, selectors.EVENT_READ)
            while True:
                if out.endswith(mark) or (also and out.endswith(also) and out.count(b"\x04") >= 2):
                    return out
                if (_FAILED in out and out.count(b"xPSR")) or time.monotonic() > until:
                    raise AssertionError(f"{self.board.title} stopped: {out[-2000:].decode('utf-8', 'replace')}")
                unread = not out if started else bool(out)
                if unread:
                    qemu.send_signal(signal.SIGIO)
                if selector.select(0.01 if unread else 1):
                    part = os.read(qemu.stdout.fileno(), 65536)
                    if not part:
                        raise AssertionError(f"QEMU ended: {out[-2000:].decode('utf-8', 'replace')}")
                    out += part
