"""Copying a built model to a board with mpremote."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from emberlet.errors import FormatError, UnsupportedError
from emberlet.host.extras import sentence

from .boards import ALIASES

Runner = Callable[[Sequence[str]], int]
"""Runs mpremote with these arguments and returns its exit status."""

HERE = Path(__file__).parent.parent

HELPERS = {
    "stream": ("stream",),
    "audio": ("audio", "audio_kernels_viper", "audio_kernels_bytecode"),
    "image": ("image", "image_kernels_viper", "image_kernels_bytecode"),
}
"""Helper -> the files of `emberlet.micro` that it consists of."""

_MAKE_FOLDERS = """\
import os
for folder in ("/lib", "/lib/emberlet", "/lib/emberlet/micro"):
    try:
        os.mkdir(folder)
    except OSError:
        pass
"""

# Runs on the board, with the built folder mounted: writes the burnpack into the partition, block by block.
_WRITE = """\
{device}
with open("/remote/{file}", "rb") as f:
    block = bytearray(4096)
    for k in range({blocks}):
        n = f.readinto(block)
        for i in range(n, 4096):
            block[i] = 255
        device.ioctl(6, k)
        device.writeblocks(k, block, 0)
print("{file} written")
"""


def commands(out: Path, board: str | None = None, port: str | None = None, to: str = "/") -> list[list[str]]:
    """The mpremote commands, as argument lists, that copy the build in `out` to a board.

    board: one of the boards it was built for; port: an argument of mpremote's `connect`; to: the folder on the board.
    Raises FormatError if `out` is not a build, UnsupportedError if it was built for other boards or to be frozen.
    """
    about = read_about(out)
    target = _target(about, board)
    folder, name, weights = out / target, about["name"], about["weights"]
    first = ["connect", port] if port else []
    if weights == "frozen":
        raise UnsupportedError(
            f"{name} was built to be frozen: build the board's firmware with "
            f"FROZEN_MANIFEST={out}/manifest.py and flash it"
        )
    if weights == "romfs":
        return [[*first, "romfs", "deploy", str(folder / f"{name}.romfs")]]
    files: list[str] = about["targets"][target]["files"]
    steps: list[list[str]] = []
    if weights == "partition":
        pack = f"{name}.bpk"
        files = [f for f in files if f != pack]
        steps.append([*first, "mount", str(folder), "exec", _writer(about, folder, pack)])
    to = to.rstrip("/") + "/"
    made = [*first, "fs", "cp", *(str(folder / f) for f in files), f":{to}"]
    if to != "/":
        steps.append([*first, "exec", f"import os\ntry:\n os.mkdir({to.rstrip('/')!r})\nexcept OSError:\n pass"])
    return [*steps, made]


def helper_commands(names: Sequence[str], port: str | None = None) -> list[list[str]]:
    """The mpremote commands that copy helpers ("stream", "audio", "image") to /lib/emberlet/micro on a board.

    Raises UnsupportedError for an unknown name.
    """
    unknown = [name for name in names if name not in HELPERS]
    if unknown:
        raise UnsupportedError(f"unknown helper {unknown[0]!r}; known helpers: {', '.join(HELPERS)}")
    if not names:
        return []
    first = ["connect", port] if port else []
    files = [str(HERE / f"{file}.py") for name in names for file in HELPERS[name]]
    return [[*first, "exec", _MAKE_FOLDERS], [*first, "fs", "cp", *files, ":/lib/emberlet/micro/"]]


def read_about(out: Path) -> dict[str, Any]:
    """The description that `micro build` wrote. Raises FormatError."""
    try:
        about = json.loads((out / "build.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{out}: expected a folder that `emberlet micro build` wrote: {error}") from None
    if not isinstance(about, dict) or not {"name", "weights", "targets", "boards"} <= set(about):
        raise FormatError(f"{out / 'build.json'}: not written by `emberlet micro build`")
    return about


def _target(about: dict[str, Any], board: str | None) -> str:
    boards, targets = about["boards"], list(about["targets"])
    if board is not None:
        board = ALIASES.get(board.lower(), board.lower())
        if board not in boards:
            raise UnsupportedError(
                f"the model was built for {', '.join(boards) or 'no board'}, not for {board!r}; build it again"
            )
        return str(boards[board])
    if len(targets) > 1:
        raise UnsupportedError(f"the model was built for {', '.join(boards)}; choose one with --board")
    return str(targets[0])


def _writer(about: dict[str, Any], folder: Path, pack: str) -> str:
    from .emit.model import Partition

    size = (folder / pack).stat().st_size
    device = Partition(**about["partition"]).device(size)
    return _WRITE.format(device=device, file=pack, blocks=-(-size // 4096))


def run_mpremote(arguments: Sequence[str]) -> int:
    """Run mpremote in its own process. Raises UnsupportedError if it is not installed."""
    try:
        import mpremote  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"{sentence('deploying', ['mpremote'])} ({error})") from None
    return subprocess.run([sys.executable, "-m", "mpremote", *arguments], check=False).returncode


def deploy(steps: Sequence[Sequence[str]], run: Runner = run_mpremote) -> int:
    """Run the commands in order until one fails; returns its exit status, or 0."""
    for step in steps:
        status = run(step)
        if status:
            return status
    return 0
