"""Backends in a sub-interpreter work, or say that it is the sub-interpreter that does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs a text in a sub-interpreter of a process that has imported NumPy, which loads once per process.
PROGRAM = """\
import numpy
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
import emberlet
from emberlet.errors import EmberletError
try:
    print(emberlet.ones((2,), backend="{backend}").sum().item())
except EmberletError as error:
    print("refused:", error)
'''
run = getattr(interpreters, "run_string", None) or interpreters.exec
said = run(interpreters.create(), code)
assert said is None, said
"""


@pytest.mark.parametrize(
    "backend, expected",
    [
        ("python", "2.0"),
        (
            "numpy",
            "refused: backend 'numpy' needs numpy, which does not load in this sub-interpreter: use it in the main",
        ),
    ],
)
def test_a_backend_in_a_sub_interpreter(backend: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(backend=backend)],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.stdout.startswith(expected), done.stdout + done.stderr
    assert "install the extra" not in done.stdout
