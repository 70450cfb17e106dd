"""Copying a built model to a board with mpremote."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from emberlet.errors import UnsupportedError
from emberlet.host.extras import sentence
from emberlet.host.folders.journals import current

from .boards import ALIASES
from .emit.loading import READY, Partition
from .slots import REMOVE, scripts, without
from .written import including, read_about

Runner = Callable[[Sequence[str]], int]
"""Runs mpremote with these arguments and returns its exit status."""

HERE = Path(__file__).parent.parent

HELPERS = {
    "stream": ("stream",),
    "audio": ("audio", "frames", "audio_kernels_viper", "bytecode"),
    "mfcc": ("mfcc", "frames", "mfcc_kernels_thumb", "mfcc_kernels_viper", "bytecode"),
    "speech": ("speech", "frames", "speech_tables", "speech_kernels_viper", "bytecode"),
    "image": ("image", "image_kernels_viper", "bytecode"),
}
"""Helper -> the files of `emberlet.micro` that it consists of."""

# The folder on the board, in the one that is asked for, that new files are copied to. No model's name has a dot.
DRAFT = ".emberlet.new"

_MAKE_FOLDERS = """\
import os
for folder in {folders!r}:
    try:
        os.mkdir(folder)
    except OSError:
        pass
"""

# Runs on the board: makes folders, empties the draft of a deployment that was interrupted, and finishes one whose first
# file has been renamed.
_PREPARE = (
    _MAKE_FOLDERS
    + """\
REFUSEfor name in os.listdir({draft!r}):
    os.remove({draft!r} + "/" + name)
try:
    names = os.listdir({ready!r})
except OSError:
    names = None
if names is not None:
    for name in names:
        if {first!r} in names:
            os.remove({ready!r} + "/" + name)
        else:
            os.rename({ready!r} + "/" + name, {to!r} + name)
    os.rmdir({ready!r})
"""
)

_DELETE = (
    """\
try:
    os.remove({file!r})
except OSError:
    pass
for folder in {left!r}:
"""
    + REMOVE
)

# Runs on the board: compares what was copied with what was sent.
_CHECK = """\
import os
try:
    from binascii import crc32
except ImportError:
    crc32 = None
for name, size, due in {files!r}:
    whole = os.stat({draft!r} + "/" + name)[6] == size
    found = 0
    with open({draft!r} + "/" + name, "rb") as f:
        while whole and crc32:
            part = f.read(512)
            if not part:
                whole = found == due
                break
            found = crc32(part, found)
    if not whole:
        raise OSError(name + " did not arrive whole; deploy again")
"""

# Runs on the board, which finishes it whatever happens to the host. The model's module is renamed first: until then the
# old model is whole; from then on the new one is, whose module renames the rest if it has to (emit/loading.py).
_PUBLISH = """\
os.rename({draft!r}, {ready!r})
for name, size, due in {files!r}:
    os.rename({ready!r} + "/" + name, {to!r} + name)
os.rmdir({ready!r})
"""

# Runs on the board, with the built folder mounted: writes the burnpack into the partition, block by block. The first
# block is erased first and written last: a burnpack that is not complete is not a burnpack.
_WRITE = """\
{device}
with open("/remote/{file}", "rb") as f:
    block = bytearray(4096)
    device.ioctl(6, 0)
    for k in list(range(1, {blocks})) + [0]:
        f.seek(4096 * k)
        n = f.readinto(block)
        for i in range(n, 4096):
            block[i] = 255
        device.ioctl(6, k)
        device.writeblocks(k, block, 0)
print("{file} written")
"""


def commands(
    out: Path,
    board: str | None = None,
    port: str | None = None,
    to: str = "/",
    in_place: bool = False,
    slots: bool = False,
) -> list[list[str]]:
    """The mpremote commands, as argument lists, that copy the build in `out` to a board.

    board: one of the boards it was built for; port: an argument of mpremote's `connect`; to: the folder on the board;
    in_place: copy over the old files, one by one; the module to import is deleted first and renamed last, so that an
    interruption leaves none. Otherwise the board renames all new files once they are there, so that an interruption
    leaves the old ones or the new ones. slots: keep the previous model as a fallback (slots.py).
    Raises FormatError if `out` is not a build, UnsupportedError if it was built for other boards or to be frozen, or
    for slots if its weights are not files.
    """
    about = read_about(out)
    target = _target(about, board)
    folder, name, weights = out / target, about["name"], about["weights"]
    first = ["connect", port] if port else []
    if weights == "frozen":
        raise UnsupportedError(
            f"{name} was built to be frozen: build the board's firmware with a manifest.py that has the line "
            f"{including(out, target)}, and flash it"
        )
    if slots and (in_place or weights not in ("file", "module")):
        raise UnsupportedError("two slots need weights that are files (--weights file or module), and no --in-place")
    before = [[*first, "exec", "import os\n" + "".join(without(name, to.rstrip("/") + "/"))]]
    if weights == "romfs":
        return [*before, [*first, "romfs", "deploy", current(folder / f"{name}.romfs")]]
    files: list[str] = about["targets"][target]["files"]
    steps: list[list[str]] = before if in_place else []
    if weights == "partition":
        pack = f"{name}.bpk"
        files = [f for f in files if f != pack]
        held = Path(current(folder / pack))
        steps.append([*first, "mount", str(held.parent), "exec", _writer(about, held)])
    folders = [to] if to.strip("/") else []
    return [*steps, *_copied([folder / f for f in files], folders, to, first, in_place, slots)]


def _copied(
    files: Sequence[Path], folders: list[str], to: str, first: list[str], in_place: bool, slots: bool = False
) -> list[list[str]]:
    """The commands that copy files to a folder of the board. folders: those to make first."""
    to = to.rstrip("/") + "/"
    folders = [folder.rstrip("/") for folder in folders]
    if in_place:
        return _over(files, folders, to, first)
    sources = [current(file) for file in files]
    draft, first_file = to + DRAFT, files[0]
    ready = to + READY.format(first_file.stem)
    sizes = _sizes(files)
    if slots:
        prepare, publish = scripts(first_file.stem, to, draft, folders, sizes)
    else:
        places = {"draft": draft, "ready": ready, "to": to}
        refuse, clean = without(first_file.stem, to)
        prepare = _PREPARE.format(folders=[*folders, draft], first=first_file.name, **places).replace("REFUSE", refuse)
        publish = _PUBLISH.format(files=sizes, **places) + clean
    return [
        [*first, "exec", prepare],
        [*first, "fs", "cp", *sources, f":{draft}/"],
        [*first, "exec", _CHECK.format(files=sizes, draft=draft) + publish],
    ]


def _sizes(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    """The name, size and CRC-32 of each."""
    sizes = []
    for file in files:
        data = Path(current(file)).read_bytes()
        sizes.append((file.name, len(data), crc32(data)))
    return sizes


def _over(files: Sequence[Path], folders: list[str], to: str, first: list[str]) -> list[list[str]]:
    """The commands that copy files over old ones. The first file, a model's module or one of several helpers, is
    deleted before and renamed when all have arrived: MicroPython may hang on a `.mpy` file that ends too early. What a
    deployment left that was interrupted is deleted, or the next import would put it in place."""
    (name, size, crc), *others = _sizes(files)
    draft = f".{name}"
    sizes = [(draft, size, crc), *others]
    copies = [[*map(current, files[1:]), f":{to}"]] if others else []
    copies.append([current(files[0]), f":{to}{draft}"])
    left = to + DRAFT, to + READY.format(files[0].stem)
    prepare = _MAKE_FOLDERS.format(folders=folders) + _DELETE.format(file=to + name, left=left)
    return [
        [*first, "exec", prepare],
        *([*first, "fs", "cp", *copy] for copy in copies),
        [*first, "exec", _CHECK.format(files=sizes, draft=to[:-1]) + f"os.rename({to + draft!r}, {to + name!r})\n"],
    ]


def helper_commands(names: Sequence[str], port: str | None = None, in_place: bool = False) -> list[list[str]]:
    """The mpremote commands that copy helpers (those of HELPERS) to /lib/emberlet/micro on a board. in_place: as in
    `commands`.

    Raises UnsupportedError for an unknown name.
    """
    unknown = [name for name in names if name not in HELPERS]
    if unknown:
        raise UnsupportedError(f"unknown helper {unknown[0]!r}; known helpers: {', '.join(HELPERS)}")
    if not names:
        return []
    files = [HERE / f"{file}.py" for file in dict.fromkeys(file for name in names for file in HELPERS[name])]
    folders = ["/lib", "/lib/emberlet", "/lib/emberlet/micro"]
    return _copied(files, folders, folders[-1], ["connect", port] if port else [], in_place)


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


def _writer(about: dict[str, Any], pack: Path) -> str:
    size = pack.stat().st_size
    device = Partition(**about["partition"]).device(size)
    return _WRITE.format(device=device, file=pack.name, blocks=-(-size // 4096))


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
