"""Commands that run out of memory, or are interrupted, end with one line that says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from support.processes import python
from support.rows import every

onnx = pytest.importorskip("onnx")

# Not PYTHONWARNDEFAULTENCODING, as `dev.py test` sets it: standard error is to hold what emberlet says, and nothing of
# other packages' warnings.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONWARNDEFAULTENCODING"}
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of a process's memory, nor SIGINT")
DIGITS = str(Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx")
# Leaves the process some MB beside what it has once it has loaded what every command uses.
LIMITED = """\
import resource, sys
import emberlet
from emberlet.codegen import load
digits = load({digits!r}, backend="numpy").compile(backend="numpy")
digits(emberlet.ones((1, 1, 8, 8), backend="numpy"))
pages = int(open("/proc/self/statm", encoding="utf-8").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (MEGABYTES << 20),) * 2)
from emberlet.__main__ import main
sys.exit(main())
""".replace("{digits!r}", repr(DIGITS))


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose output has a shape that is computed from 24 MB of weights."""
    from support.onnx_models import with_constants

    path = tmp_path_factory.mktemp("folded") / "folded.onnx"
    count = 6_000_000
    text = f"""folded (float[2, {count // 2}] x) => (float[] y) <int64 one = {{1}}, int64[1] axis = {{0}}> {{
        squares = Mul(w, w)  places = NonZero(squares)  sizes = Shape(places)  size = Gather(sizes, one)
        shape = Unsqueeze(size, axis)  y = Reshape(x, shape) }}"""
    onnx.save(with_constants(text, 17, w=np.arange(1, count + 1, dtype=np.float32)), path)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's size from /proc")
@pytest.mark.parametrize(
    ("megabytes", "words"),
    [
        (60, "codegen MODEL --out OUT"),
        (60, "run MODEL"),
        (60, "verify MODEL"),
        (60, "compile MODEL --out OUT.plan"),
        (60, "score MODEL ROWS --out OUT --input x=data"),
        (60, "micro build MODEL --name m --board unix --out OUT"),
        (20, "profile MODEL"),
        (200, "profile MODEL"),  # with so much it reaches the driver, which would end the process
        (800, "profile MODEL"),
        (20, "inspect MODEL"),
        (20, "graph MODEL --out OUT.svg"),
        (20, "convert MODEL OUT.npz"),
        (20, "diff MODEL MODEL"),
    ],
)
def test_memory_that_runs_out_is_said_as_memory(megabytes: int, words: str, folded: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.npy"
    np.save(rows, np.zeros((2, 3_000_000), np.float32))
    given = [
        word.replace("OUT", str(tmp_path / "out")).replace("MODEL", str(folded)).replace("ROWS", str(rows))
        for word in words.split()
    ]
    done = python("-c", LIMITED.replace("MEGABYTES", str(megabytes)), *given, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 2
    assert "out of memory" in done.stderr and "ulimit -v" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert "unknown" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["rows.npy"]


# command -> its words; OUT is what it writes. Those of deploy and score are refused, later than they are interrupted.
INTERRUPTED = {
    "codegen": "codegen MODEL --name digits --out OUT",
    "inspect": "inspect MODEL",
    "graph": "graph MODEL --out OUT.svg",
    "convert": "convert MODEL OUT.safetensors",
    "diff": "diff MODEL MODEL",
    "run": "run MODEL --input image=IMAGE --backend numpy --out OUT.npz",
    "score": "score MODEL IMAGE --out OUT --input image=0",
    "verify": "verify MODEL",
    "compile": "compile MODEL --out OUT.plan",
    "devices": "devices",
    "profile": "profile MODEL",
    "micro build": "micro build MODEL --name digits --out OUT --board unix",
    "micro deploy": "micro deploy OUT",
}
# Sends itself the signal after a number of imported modules, which passes through all of a command's beginning.
INTERRUPT = """\
import builtins, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
from emberlet.__main__ import main
left, original = int(sys.argv.pop(1)), builtins.__import__
def counted(*args, **keywords):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return original(*args, **keywords)
builtins.__import__ = counted
sys.exit(main())
"""


@every("after", [1, 400, 2000], share=3)
@pytest.mark.parametrize("command", INTERRUPTED)
def test_an_interrupt_ends_a_command_with_one_line(command: str, after: int, tmp_path: Path) -> None:
    image = tmp_path / "image.npy"
    np.save(image, np.zeros((1, 1, 8, 8), np.float32))
    words = [
        word.replace("OUT", str(tmp_path / "out")).replace("MODEL", DIGITS).replace("IMAGE", str(image))
        for word in INTERRUPTED[command].split()
    ]
    done = python("-c", INTERRUPT, after, *words, timeout=600, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode in (0, 2) and after == 2000:  # it had ended before
        assert "interrupted" not in done.stderr
        return
    assert (done.returncode, done.stderr) == (130, "emberlet: interrupted\n")
    assert [file.name for file in tmp_path.iterdir()] == ["image.npy"]  # nothing half written, nor left over


# A library that turns an interrupt into an error of its own, as NumPy's C modules do while they load.
SWALLOWED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from emberlet.host import cli
def loading(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("Importing the numpy C-extensions failed") from None
cli._run = loading
sys.exit(cli.main())
"""


def test_an_interrupt_that_a_library_makes_an_error_of_is_one() -> None:
    done = python("-c", SWALLOWED, "inspect", timeout=600, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (130, "emberlet: interrupted\n")


# Sends itself the signal at its end, after the command.
LATE = """\
import builtins, os, sys
import signal as signals
signals.signal(signals.SIGINT, signals.default_int_handler)
from emberlet.__main__ import main
original, left = builtins.__import__, 2  # the command's own import of it is the first
def watching(name, *args, **keywords):
    global left
    left -= name == "signal"
    if not left:
        builtins.__import__ = original
        os.kill(os.getpid(), signals.SIGINT)
    return original(name, *args, **keywords)
builtins.__import__ = watching
sys.exit(main())
"""


def test_an_interrupt_after_the_end_changes_nothing() -> None:
    done = python("-c", LATE, "--version", timeout=600, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, "")


# Ray's threads stand for what crashes while Python ends.
ENDS_BADLY = """\
import atexit, os, sys, types
from emberlet.host import cli
def shutdown(): print("ray is shut down")
sys.modules["ray"] = types.SimpleNamespace(shutdown=shutdown)
atexit.register(os.abort)
def interrupted(arguments): raise KeyboardInterrupt
cli._run = interrupted
sys.exit(cli.main())
"""


def test_an_interrupted_score_ends_before_threads_of_ray_can_crash_it() -> None:
    done = python("-c", ENDS_BADLY, "score", timeout=600, env=ENVIRONMENT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "ray is shut down\n", "emberlet: interrupted\n")
