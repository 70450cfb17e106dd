"""Two slots on a board: a deployment goes to the one whose model does not answer, and a small module imports the model
from the slot that was deployed last, or from the other one.

Beside that module are the folders `.NAME-0` and `.NAME-1`, each with a list of its files, and the file `.NAME-slot`:
the slot's number, then `?` until its model has been imported once, and `!` while that is tried. A power cut, a damaged
file, an exception, and a board that hangs or resets during the first import all lead to the other slot.
"""

from __future__ import annotations

POINTER = ".{}-slot"
"""The file that says which slot is used, by the model's name."""

SLOT = ".{}-"
"""The slots' folders, without their numbers."""

LIST = "slot.txt"
"""The list of a slot's files, which is written last: a name, a size and a checksum in each line, then a line `end`."""

LAUNCHER = '''\
"""{name}, from the slot that was deployed last if its files are whole and it can be imported, else from the other one;
`slot` is which. Written by emberlet: deploy with --slots."""

import os
import sys

slot = ""


def _whole(folder):
    """Whether a slot's files are those that were deployed."""
    try:
        from binascii import crc32
    except ImportError:
        crc32 = None
    with open(folder + "/{list}") as f:
        lines = f.read().split("\\n")
    for line in lines[:-1]:
        name, size, due = line.split(" ")
        if os.stat(folder + "/" + name)[6] != int(size):
            return False
        found = 0
        with open(folder + "/" + name, "rb") as f:
            while crc32:
                part = f.read(512)
                if not part:
                    if found != int(due):
                        return False
                    break
                found = crc32(part, found)
    return lines[-1] == "end"


def _note(text):
    with open("{pointer}.new", "w") as f:
        f.write(text)
    os.rename("{pointer}.new", "{pointer}")


def _load():
    global slot
    try:
        with open("{pointer}") as f:
            state = f.read()
    except OSError:
        state = ""
    first, second = ("1", "0") if state[:1] == "1" else ("0", "1")
    trial = state[1:]
    error = None
    for k in (second, first) if trial == "!" else (first, second):
        folder = "{slot}" + k
        try:
            if not _whole(folder):
                raise ValueError("files of {name} are damaged; deploy it again")
            if trial and k == first:
                _note(k + "!")
            sys.path.insert(0, folder)
            sys.modules.pop("{name}", None)
            module = __import__("{name}")
            if trial:
                _note(k)
        except Exception as problem:  # also what a damaged list raises
            error = error or problem
            sys.path[:] = [path for path in sys.path if path != folder]
            for name in list(sys.modules):
                if name == "{name}" or name.startswith("{name}_"):
                    del sys.modules[name]
        else:
            for name in dir(module):
                if name[:2] != "__":
                    globals()[name] = getattr(module, name)
            slot = module.slot = k
            return
    raise error


_load()
'''

_STATE = """\
try:
    with open({pointer!r}) as f:
        state = f.read()
except OSError:
    state = "1"
free = state[0] if state[1:] else "1" if state == "0" else "0"
"""

# Runs on the board: empties the draft of a deployment that was interrupted, and the slot that is not used.
PREPARE = (
    """\
import os
"""
    + _STATE
    + """\
for folder in {folders!r} + [{draft!r}]:
    try:
        os.mkdir(folder)
    except OSError:
        pass
for folder in ({slot!r} + free, {draft!r}):
    try:
        names = os.listdir(folder)
    except OSError:
        continue
    for name in names:
        os.remove(folder + "/" + name)
    if folder != {draft!r}:
        os.rmdir(folder)
"""
)

# Runs on the board, after it has checked what arrived.
PUBLISH = (
    _STATE
    + """\
with open({draft!r} + "/{list}", "w") as f:
    for name, size, due in {files!r}:
        f.write("%s %d %d\\n" % (name, size, due))
    f.write("end")
os.rename({draft!r}, {slot!r} + free)
for name, text in (({pointer!r}, free + "?"), ({to!r} + "{name}.py", {launcher!r})):
    try:
        with open(name) as f:
            same = f.read() == text
    except OSError:
        same = False
    if not same:
        with open(name + ".new", "w") as f:
            f.write(text)
        os.rename(name + ".new", name)
"""
)


def scripts(name: str, to: str, draft: str, folders: list[str], files: list[tuple[str, int, int]]) -> tuple[str, str]:
    """What the board runs before the files are copied to `draft`, and after it has checked them. to: the folder on the
    board, with a slash at its end; files: name, size and CRC-32 of each."""
    places = {"name": name, "pointer": to + POINTER.format(name), "slot": to + SLOT.format(name), "list": LIST}
    launcher = LAUNCHER.format(**places)
    prepare = PREPARE.format(**places, folders=folders, draft=draft)
    return prepare, PUBLISH.format(**places, to=to, draft=draft, files=files, launcher=launcher)
