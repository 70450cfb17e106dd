"""memcheck sees what native calls do: a call that goes beyond its arrays is reported, one that does not is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.components import require

from .under_valgrind import memcheck

# Adds arrays by machine code, then multiplies them beyond their ends.
PROGRAM = """\
import numpy as np
from emberlet.host.numpy_backend.compile.native import records
from emberlet.host.numpy_backend.compile.native.machine import machine
a, b, out = (np.zeros(1024, np.float32) for _ in range(3))
for ufunc, more in (np.add, 0), (np.multiply, 64):
    rows, held = records.of_step(machine(), ufunc, (a, b, out))
    held[3][0] += more  # elements
    ((run, args),) = records.joined(machine(), [(ufunc, (a, b, out), 0.0, (rows, held))])
    run(*args)
    print(ufunc.__name__)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="machine code calls NumPy's loops on Linux only")
def test_a_native_call_beyond_its_arrays_is_reported_and_no_other(tmp_path: Path) -> None:
    require("valgrind")
    done, found = memcheck(["-c", PROGRAM], tmp_path / "log.xml")
    assert done.stdout.split() == ["add", "multiply"], done.stderr
    ours = [str(report) for report in found if report.ours]
    assert ours
    assert all("Invalid" in said and "multiply" in said and "machine code" in said for said in ours), ours
