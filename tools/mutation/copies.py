"""A copy of the tree in which a bug can be seeded and the tests run; the person's own files are never touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .bugs import Bug

LINKED = (".cache/micropython", ".cache/mpy-cross", "web/node_modules")
MEMORY = 12 << 30  # bytes of address space: a bug may ask for all there is


@dataclass
class Outcome:
    """What one start of pytest said."""

    failed: str = ""  # the first test that failed, or the file that could not be collected
    seconds: dict[str, float] = field(default_factory=dict)  # of each file that ran to its end


class Copy:
    """The files that git knows or would add, with links to what is installed."""

    def __init__(self, root: Path, folder: Path, packages: dict[str, Path]) -> None:
        self.root, self.folder = root, folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for name in listed.decode().split("\0"):
            if name and (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        for name in LINKED:
            if (root / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(root / name)
        shared = folder.parent / "shared"
        if (root.parent / "shared").exists() and not shared.is_symlink():
            shared.symlink_to(root.parent / "shared")
        self._link_imports(packages)
        self.mtime = time.time_ns()
        self.sound = b""  # what the file that has a bug holds without it

    def _link_imports(self, packages: dict[str, Path]) -> None:
        """A folder for PYTHONPATH, which comes before an editable installation of the tree itself."""
        for name, source in packages.items():
            package = self.folder / ".cache" / "imports" / Path(*name.split("."))
            package.mkdir(parents=True, exist_ok=True)
            for entry in (self.folder / source.relative_to(self.root)).iterdir():
                if entry.name != "__pycache__":
                    (package / entry.name).symlink_to(entry)

    def seed(self, bug: Bug) -> None:
        file = self.folder / bug.file.relative_to(self.root)
        self.sound = file.read_bytes()
        file.write_bytes(bug.apply(self.sound))
        self._touch(file)

    def mend(self, bug: Bug) -> None:
        file = self.folder / bug.file.relative_to(self.root)
        file.write_bytes(self.sound)  # the person's own file may have changed since
        self._touch(file)

    def _touch(self, file: Path) -> None:
        """Python trusts its bytecode where a file's size and whole second are the same: no two mutants share one."""
        self.mtime += 2_000_000_000
        os.utime(file, ns=(self.mtime, self.mtime))

    def run(self, tests: list[str], seconds: float) -> Outcome:
        """Run test files in their order up to the first failure; a run that takes longer than `seconds` is cut off."""
        log = self.folder / ".cache" / "junit.xml"
        log.unlink(missing_ok=True)
        known = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder / ".cache" / "imports"), *([known] if known else [])]),
            "EMBERLET_VENV": sys.prefix,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".cache" / "hypothesis"),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", "--timeout=60"]
        command += [f"--junitxml={log}", "-o", "junit_family=xunit1", *tests]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_limit_memory if os.name == "posix" else None,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if os.name == "posix":
                with suppress(ProcessLookupError):  # the tests' own processes too
                    os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        if status is None:
            return Outcome()
        return read(log, tests, status)


def read(log: Path, tests: list[str], status: int) -> Outcome:
    """What pytest's report says; a process that ended without one was taken down by its tests."""
    if status in (0, 5) and not log.exists():
        return Outcome()
    if not log.exists():
        return Outcome(failed=f"{tests[0]} (pytest ended with status {status})")
    outcome = Outcome()
    for case in ElementTree.parse(log).iter("testcase"):
        file = case.get("file") or case.get("name", "").replace(".", "/") + ".py"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed = f"{file}::{case.get('name')}"
            outcome.seconds.pop(file, None)
            return outcome
        outcome.seconds[file] = outcome.seconds.get(file, 0.0) + float(case.get("time", 0))
    if status not in (0, 5):
        outcome.failed = f"{tests[0]} (pytest ended with status {status})"
    return outcome


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
