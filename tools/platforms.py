"""`python3 dev.py platforms`: tries the command line and the digits on different systems, and writes the table in
docs/platforms.md.

The systems are the combinations of interpreter, oldest or newest packages, locale, and a home folder or none (neither
HOME nor an entry in the list of users). Each runs every command below in a folder whose name has blanks and letters of
other scripts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import environments
from .paths import CACHE, ROOT, python_of
from .steps import StepError, say

PAGE = ROOT / "docs" / "platforms.md"
BEGIN, END = "<!-- written by `python3 dev.py platforms` -->", "<!-- end -->"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
# Its usual name -> (LC_ALL, charmap and source of localedef)
LOCALES = {
    "UTF-8": ("C.UTF-8", None),
    "C": ("C", None),
    "Shift-JIS": ("ja_JP.SJIS", ("ja_JP", "SHIFT_JIS")),
    "CP1251": ("ru_RU.CP1251", ("ru_RU", "CP1251")),
}
# Ways to start the interpreter, tried with UTF-8 and a home.
FLAGS = ("-O", "-OO", "-W error", "-bb", "-X dev")
HOMES = ("HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA")
OLDEST = (3, 11)  # the interpreter that the oldest packages are tried with; for the newest there are none
EMBERLET = ["-m", "emberlet"]
COMMANDS = {
    "--version": [*EMBERLET, "--version"],
    "devices": [*EMBERLET, "devices"],
    "codegen": [*EMBERLET, "codegen", "digits.onnx", "--out", "a b"],
    "inspect": [*EMBERLET, "inspect", "digits.onnx"],
    "run": [*EMBERLET, "run", "digits.onnx", "--input", "image=x.npy", "--repeat", "3", "--out", "y.npz"],
    "verify": [*EMBERLET, "verify", "digits.onnx"],
    "compile": [*EMBERLET, "compile", "digits.onnx", "--out", "digits.plan"],
    "micro build": [*EMBERLET, "micro", "build", "digits.onnx", "--out", "board"],
    "profile": [*EMBERLET, "profile", "digits.onnx", "--runs", "1"],
    "digits on python": ["digits_on.py", "python"],
    "digits on numpy": ["digits_on.py", "numpy"],
    "digits on wgpu": ["digits_on.py", "wgpu"],
}
PROGRAM = """\
import sys
sys.path.insert(0, "a b")
import emberlet
from digits import Digits
backend = sys.argv[1]
model = Digits.default(backend)
print(model(emberlet.ones((1, 1, 8, 8), backend=backend)).argmax(1).item())
"""


def write(named: list[str]) -> bool:
    """Try everything with the named interpreters (such as 3.12), or with the supported ones that are installed, and
    write the table. Returns whether everything worked."""
    rows, failures = [], []
    for python, oldest in _environments(named):
        venv = _prepare(python, oldest)
        label = f"{environments.version(python)} | {'oldest' if oldest else 'newest'}"
        for locale in LOCALES:
            for home in (True, False):
                say(f"  {label.replace(' |', ',')}, {locale}, {'home' if home else 'no home'}")
                started = time.perf_counter()
                failed = _try(venv, locale, home)
                say(f"    {len(COMMANDS) - len(failed)} of {len(COMMANDS)} in {time.perf_counter() - started:.0f} s")
                failures += [f"{label} | {locale} | {name}: {why}" for name, why in failed.items()]
                said = f"all {len(COMMANDS)}" if not failed else "not " + ", ".join(failed)
                rows.append(f"| {label} | {locale} | {'yes' if home else 'none'} | {said} |")
        for flag in FLAGS:
            say(f"  {label.replace(' |', ',')}, {flag}")
            failed = _try(venv, "UTF-8", True, flag.split())
            failures += [f"{label} | {flag} | {name}: {why}" for name, why in failed.items()]
            said = f"all {len(COMMANDS)}" if not failed else "not " + ", ".join(failed)
            rows.append(f"| {label} | UTF-8, `python {flag}` | yes | {said} |")
        _write(rows)  # after each, since all of them take long
    for failure in failures:
        say(failure)
    return not failures


def _write(rows: Sequence[str]) -> None:
    """Put the rows into the page's table, replacing rows of the same interpreter and packages."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    tried_now = {_label(row) for row in rows}
    kept = [row for row in old.splitlines() if re.match(r"\| \d", row) and _label(row) not in tried_now]
    head = "| Python | packages | locale | home | what works |\n|---|---|---|---|---|\n"
    tried = "Tried in each row: " + ", ".join(f"`{name}`" for name in COMMANDS) + "."
    table = head + "\n".join(sorted([*kept, *rows], key=_order))
    PAGE.write_text(f"{before}{BEGIN}\n\n{tried}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def _label(row: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in row.split("|")[1:3])


def _order(row: str) -> tuple[list[int], bool]:
    python, packages = _label(row)
    return [int(n) for n in re.findall(r"\d+", python)], packages == "newest"


def _environments(named: list[str]) -> list[tuple[Path, bool]]:
    found = []
    for version in named or ["3.11", "3.12", "3.13", "3.14", "3.15"]:
        try:
            python = environments.interpreter(version)
        except StepError:
            if named:
                raise
            continue
        numbers = tuple(int(n) for n in environments.version(python).split(".")[:2])
        found += [(python, True)] if numbers == OLDEST else []
        found.append((python, False))
    return found


def _prepare(python: Path, oldest: bool) -> Path:
    """The Python of the environment for this interpreter and set of packages, which is made if it is missing."""
    variables = environments.variables(python, "oldest" if oldest else "")
    code = "from tools import install; install.ensure_venv()"
    subprocess.run([python, "-c", code], cwd=ROOT, env={**os.environ, **variables}, check=True)
    return python_of(Path(variables["EMBERLET_VENV"]))


def _try(python: Path, locale: str, home: bool, flags: Sequence[str] = ()) -> dict[str, str]:
    """Command -> the last line of its output, for those that failed."""
    name, source = LOCALES[locale]
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHON", "XDG_", "EMBERLET"))
    }
    environment |= {"LC_ALL": name, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LOCPATH": ""}
    if source:
        environment["LOCPATH"] = str(_locale(name, *source))
    else:
        del environment["LOCPATH"]
    prefix: list[str | Path] = []
    if not home:
        environment = {k: v for k, v in environment.items() if k not in HOMES}
        if shutil.which("unshare"):  # a user who is in no list
            prefix = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]
    failed = {}
    with tempfile.TemporaryDirectory(prefix="emberlet platforms ") as folder:
        shutil.copy(DIGITS, folder)
        Path(folder, "digits_on.py").write_text(PROGRAM, encoding="utf-8")
        _save_image(Path(folder, "x.npy"))
        for command, arguments in COMMANDS.items():
            done = subprocess.run(
                [*prefix, python, *flags, *arguments],
                cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=600, check=False,
            )  # fmt: skip
            said = (done.stdout + done.stderr).decode("utf-8", "replace")
            if done.returncode or "Traceback" in said:
                failed[command] = (said.strip().splitlines() or ["nothing"])[-1]
    return failed


def _save_image(file: Path) -> None:
    """An image of zeros, float32 (1, 1, 8, 8), as an .npy file of format 1.0."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }".ljust(117) + "\n"
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(256))


def _locale(name: str, source: str, charmap: str) -> Path:
    """The folder of a locale made by localedef, without installing it."""
    folder = CACHE / "locales"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists():
        # It warns, with status 1, that Shift-JIS has a yen sign in the place of the backslash.
        with suppress(FileNotFoundError):
            subprocess.run(["localedef", "-i", source, "-f", charmap, folder / name], capture_output=True, check=False)
        if not (folder / name).exists():
            raise StepError(f"localedef cannot make {name}: install Debian's package `locales`")
    return folder
