"""Two slots on a board: a deployment goes to the one whose model does not answer, and a small module imports the model
from the slot that was deployed last, or from the other one.

Beside that module are the folders `.NAME-0` and `.NAME-1`, each with a list of its files, and the file `.NAME-slot`:
the slot's number, then `?` until its model has been imported once, and `!` while that is tried. A power cut, a damaged
file, an exception, Ctrl-C, and a board that hangs or resets during the first import all lead to the other slot.
"""

from __future__ import annotations

POINTER = ".{}-slot"
"""The file that says which slot is used, by the model's name."""

SLOT = ".{}-"
"""The slots' folders, without their numbers."""

MARK = "Written by emberlet: deploy with --slots."
"""What the launcher's first lines say, so that it is known from a module of the user's."""

LIST = "slot.txt"
"""The list of a slot's files, which is written last: a name, a size and a checksum in each line, then a line `end`."""

LAUNCHER = '''\
"""{name}, from the slot that was deployed last if its files are whole and it can be imported, else from the other one;
`slot` is which, and `refused` what was wrong with the last one. {mark}"""

import os
import sys

slot, refused = "", None


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
    global slot, refused
    try:
        with open("{pointer}") as f:
            state = f.read()
    except OSError:
        state = ""
    first, second = ("1", "0") if state[:1] == "1" else ("0", "1")
    trial, before = state[1:], list(sys.modules)
    error = "its first import did not end" if trial == "!" else None
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
            if trial or k != first:
                try:
                    _note(k)
                except OSError:  # of a full flash; the model answers all the same
                    pass
        except Exception as problem:  # also what a damaged list raises
            error = problem if k == first or not error else error
            sys.path[:] = [path for path in sys.path if path != folder]
            for name in list(sys.modules):
                if name == "{name}" or name.startswith("{name}_") and name not in before:
                    del sys.modules[name]
        else:
            for name in dir(module):
                if name[:2] != "__":
                    globals()[name] = getattr(module, name)
            slot = module.slot = k
            if k != first:
                refused = module.refused = error
                print("{name}: slot", k, "is used instead of slot", first, "-", repr(error))
            return
    raise error


_load()
'''

_STATE = """\
try:
    with open({pointer!r}) as f:
        state = f.read()
except OSError:
    state = ""
if state[:1] not in ("0", "1"):
    try:
        os.stat({slot!r} + "0/{list}")  # which the launcher takes then
        state = "0"
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
try:
    os.stat({slot!r} + ("0" if free == "1" else "1") + "/{list}")
except OSError:
    print("{name}: slot", free, "has no fallback until the next deployment with --slots")
"""
)

# In a loop over folders: removes one, if it is there.
REMOVE = """\
    try:
        names = os.listdir(folder)
    except OSError:
        continue
    for name in names:
        os.remove(folder + "/" + name)
    os.rmdir(folder)
"""

# Runs on the board before a deployment without slots.
_REFUSE = """\
try:
    os.stat({pointer!r})
except OSError:
    pass
else:
    raise OSError("this model is deployed in two slots: deploy with --slots, or delete " + {pointer!r})
"""

# Runs on the board once one is whole: the launcher would be imported in its place.
_CLEAN = (
    """\
try:
    with open({launcher!r}, "r") as f:
        written = {mark!r} in f.read(400)
except OSError:
    written = False
if written:
    os.remove({launcher!r})
for folder in ({slot!r} + "0", {slot!r} + "1"):
"""
    + REMOVE
)


def _places(name: str, to: str) -> dict[str, str]:
    return {"name": name, "pointer": to + POINTER.format(name), "slot": to + SLOT.format(name)}


def without(name: str, to: str) -> tuple[str, str]:
    """What the board runs before and after a deployment without slots: refuses while the model is deployed in two, and
    removes what is left of them."""
    places = _places(name, to)
    return _REFUSE.format(**places), _CLEAN.format(**places, launcher=f"{to}{name}.py", mark=MARK)


def scripts(name: str, to: str, draft: str, folders: list[str], files: list[tuple[str, int, int]]) -> tuple[str, str]:
    """What the board runs before the files are copied to `draft`, and after it has checked them. to: the folder on the
    board, with a slash at its end; files: name, size and CRC-32 of each."""
    places = {**_places(name, to), "list": LIST}
    launcher = LAUNCHER.format(**places, mark=MARK)
    prepare = PREPARE.format(**places, folders=folders, draft=draft)
    return prepare, PUBLISH.format(**places, to=to, draft=draft, files=files, launcher=launcher)
