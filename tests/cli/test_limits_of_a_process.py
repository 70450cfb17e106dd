"""Commands that run out of memory, or are interrupted, end with one line that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of a process's memory, nor SIGINT")
DIGITS = str(Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx")
# Leaves the process 60 MB beside what it has once it has loaded everything.
LIMITED = """\
import resource, sys
import emberlet
from emberlet.codegen import load
digits = load({digits!r}, backend="numpy").compile(backend="numpy")
digits(emberlet.ones((1, 1, 8, 8), backend="numpy"))
pages = int(open("/proc/self/statm", encoding="utf-8").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (60 << 20),) * 2)
from emberlet.__main__ import main
sys.exit(main())
""".replace("{digits!r}", repr(DIGITS))


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose output has a shape that is computed from 24 MB of weights."""
    from onnx import TensorProto, helper, numpy_helper

    path = tmp_path_factory.mktemp("folded") / "folded.onnx"
    count = 6_000_000
    constants = {
        "w": np.arange(1, count + 1, dtype=np.float32),
        "one": np.array(1, np.int64),
        "axis": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("Mul", ["w", "w"], ["squares"]),
        helper.make_node("NonZero", ["squares"], ["places"]),
        helper.make_node("Shape", ["places"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["size"]),
        helper.make_node("Unsqueeze", ["size", "axis"], ["shape"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, count // 2])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "folded", [given], [result], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's size from /proc")
@pytest.mark.parametrize("command", ["codegen", "run", "verify", "compile"])
def test_memory_that_runs_out_is_said_as_memory(command: str, folded: Path, tmp_path: Path) -> None:
    out = (
        ["--out", str(tmp_path / ("out.plan" if command == "compile" else "out"))]
        if command in ("codegen", "compile")
        else []
    )
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, command, str(folded), *out],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "out of memory" in done.stderr and "ulimit -v" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert "unknown" not in done.stderr


@pytest.mark.parametrize("command", ["convert", "graph", "inspect"])
def test_an_interrupt_ends_a_command_with_one_line(command: str, tmp_path: Path) -> None:
    out = {"convert": [str(tmp_path / "x.safetensors")], "graph": ["--out", str(tmp_path / "x.svg")], "inspect": []}
    # Sends itself the signal while modules load, which is most of the time that these commands take.
    script = (
        "import os, signal, sys, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background process ignores it
        "from emberlet.__main__ import main\n"
        "threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "sys.setswitchinterval(1e-4)\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, command, DIGITS, *out[command]],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "emberlet: interrupted\n")
