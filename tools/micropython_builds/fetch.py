"""Fetches MicroPython's Unix port, and its source, without installing: Debian's packages, unpacked into the cache.

apt fetches them by its own signed indexes from the mirror that this machine already uses, but with separate lists,
status and sources: the system's configuration does not change, and root is not needed. The interpreter brings its own C
library and is started through that library's loader, so the system's may be of any age.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..paths import CACHE

FOLDER = CACHE / "micropython"
# Packages to fall back on.
LOCKED = Path(__file__).with_name("locked.txt")
# The release whose MicroPython is fetched, and the key that signs it (it comes with every Debian).
SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class FetchError(Exception):
    """MicroPython could not be fetched; the message says why."""


def launcher(architecture: str) -> Path:
    """The script that starts the port for `architecture` ("native" or "armhf"), whether it is there or not."""
    return FOLDER / architecture / "bin" / "micropython"


def possible() -> bool:
    """Whether this machine can fetch: a Debian whose apt knows a mirror."""
    if not (KEYRING.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return False
    try:
        return _mirror() is not None
    except FetchError:  # apt refuses its own configuration
        return False


def fetch(architecture: str) -> None:
    """Unpack the port for `architecture` ("native" or "armhf") and write its launcher.

    Raises:
        FetchError: apt, or the interpreter itself, failed.
    """
    debian = _run("dpkg", "--print-architecture").strip() if architecture == "native" else architecture
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        root = Path(scratch, "root")
        for package in _download(Path(scratch), debian):
            _run("dpkg-deb", "-x", str(package), str(root))
        _write_launcher(root, emulate=architecture == "armhf")
        shutil.rmtree(FOLDER / architecture, ignore_errors=True)
        root.replace(FOLDER / architecture)
    said = _run(str(launcher(architecture)), "-c", "import sys; print(sys.implementation.name)")
    if said.strip() != "micropython":
        raise FetchError(f"{launcher(architecture)} said {said!r} where 'micropython' was expected")


def fetch_source(folder: Path) -> Path:
    """Fetch MicroPython's source as Debian has it, unpacked below `folder`; where.

    Raises:
        FetchError: apt failed.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            options = _apt(Path(scratch), _run("dpkg", "--print-architecture").strip(), "deb-src")
            _run("apt-get", *options, "source", "--download-only", "micropython", cwd=Path(scratch))
            archive = next(Path(scratch).glob("micropython_*.orig.tar.xz"))
        except FetchError as error:
            (archive,) = _locked(Path(scratch), "source", error)
        _run("tar", "-xf", str(archive), "-C", str(folder))
    return next(folder.glob("micropython-*"))


def _download(scratch: Path, architecture: str) -> list[Path]:
    """Fetch micropython and all that it depends on into `scratch`."""
    try:
        options = _apt(scratch, architecture, "deb")
        tree = _run("apt-cache", *options, "depends", "--recurse", "--important", "micropython")
        names = sorted({line for line in tree.splitlines() if re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", line)})
        _run("apt-get", *options, "download", *names, cwd=scratch / "packages")
    except FetchError as error:
        return _locked(scratch, architecture, error)
    return sorted((scratch / "packages").glob("*.deb"))


def _locked(scratch: Path, architecture: str, error: FetchError) -> list[Path]:
    """The files of locked.txt, compared with their SHA-256: a mirror that is being updated may have all packages while
    its indexes contradict each other. Raises `error` where there are none, FetchError where one cannot be had."""
    rows = [line.split() for line in LOCKED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    files = []
    for _, digest, path in (row for row in rows if row[0] == architecture):
        files.append(scratch / path.rpartition("/")[2])
        address = f"{str(_mirror()).rstrip('/')}/{path}"
        try:
            _run("/usr/lib/apt/apt-helper", "download-file", address, str(files[-1]), f"SHA256:{digest}")
        except FetchError as missing:
            raise FetchError(f"{error}\n{missing}") from error
    if not files:
        raise error
    return files


def _apt(scratch: Path, architecture: str, kind: str) -> list[str]:
    """apt's options for lists and a status of its own in `scratch`, which it has read. kind: "deb" or "deb-src"."""
    sources = scratch / "sources"
    sources.mkdir()
    entry = f"Types: {kind}\nURIs: {_mirror()}\nSuites: {SUITE}\nComponents: main\nSigned-By: {KEYRING}\n"
    (sources / "debian.sources").write_text(entry, encoding="utf-8")
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    options = [
        f"-oDir::State::Lists={scratch}/lists",
        f"-oDir::State::status={scratch}/status",
        f"-oDir::Cache={scratch}/cache",
        "-oDir::Etc::SourceList=/dev/null",
        f"-oDir::Etc::SourceParts={sources}",
        f"-oAPT::Architecture={architecture}",
        f"-oAPT::Architectures={architecture}",
        "-oAPT::Sandbox::User=root",  # apt's own user may not write here
        "-oAcquire::Languages=none",
        "-oAcquire::Retries=3",
    ]
    _run("apt-get", *options, "update")
    return options


def _mirror() -> str | None:
    """The archive from which this machine's apt gets Debian's main component, or None."""
    release = dict(re.findall(r"^(\w+)=\"?([^\"\n]*)", _read("/etc/os-release"), re.MULTILINE))
    if release.get("ID") != "debian":
        return None
    listing = _run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    rows = [line.split() for line in listing.splitlines()]
    mains = [(uri, suite) for uri, suite, component in (row for row in rows if len(row) == 3) if component == "main"]
    wanted = (release.get("VERSION_CODENAME"), SUITE, "stable", "testing", "sid", "unstable")
    return next((uri for uri, suite in mains if suite in wanted), None)


def _write_launcher(root: Path, *, emulate: bool) -> None:
    """Write the script that starts the interpreter in `root`, wherever that folder is moved to."""
    loader = next(path for path in sorted(root.rglob("ld-linux*.so.*")) if path.is_file() and not path.is_symlink())
    emulator = shutil.which("qemu-arm-static") or shutil.which("qemu-arm") if emulate else None
    if emulate and emulator is None:
        raise FetchError("QEMU's user-mode emulator for ARM is missing (Debian's package qemu-user-static)")
    library = f'"$root"/{loader.parent.relative_to(root)}'
    words = [shlex.quote(emulator)] if emulator else []
    words += [f"{library}/{loader.name}", "--library-path", library, '"$root"/usr/bin/micropython', '"$@"']
    script = root / "bin" / "micropython"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"#!/bin/sh\nroot=${{0%/bin/micropython}}\nexec {' '.join(words)}\n", encoding="utf-8")
    script.chmod(0o755)


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _run(*command: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, encoding="utf-8"
    )
    if done.returncode != 0:
        raise FetchError(
            f"`{shlex.join(command)}` ended with status {done.returncode}:\n{(done.stderr or done.stdout)[-2000:]}"
        )
    return done.stdout
