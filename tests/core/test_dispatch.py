"""SciPy and scikit-learn take tensors where they dispatch by the array API standard, and give the same as for arrays.

Both read their switch when they are imported, so the calls run in a process of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest
from support.rows import every

from .dispatched_calls import CALLS

SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import numpy as np, emberlet, sklearn
from dispatched_calls import CALLS, IMPORTS, arrays
sklearn.set_config(array_api_dispatch=True)
scope = arrays() | {"np": np}
exec(IMPORTS, scope)
said = {}
for call in CALLS.strip().splitlines():
    try:
        wanted = np.asarray(eval(call, scope | {"c": np.asarray}))
        found = eval(call, scope | {"c": lambda a: emberlet.asarray(a, backend="numpy")})
        kind = type(found).__name__
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-8)
        said[call] = "" if kind in ("Tensor", "float", "int") else "gives " + kind
    except Exception as error:
        said[call] = type(error).__name__ + ": " + str(error)
print(json.dumps(said))
"""


@cache
def outcomes() -> dict[str, str]:
    pytest.importorskip("scipy")
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, os.path.dirname(__file__)],
        capture_output=True, encoding="utf-8", check=True, env=os.environ | {"SCIPY_ARRAY_API": "1"},
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@every("call", CALLS.strip().splitlines())
def test_a_call_takes_tensors_and_gives_the_same(call: str) -> None:
    assert outcomes()[call] == ""


def test_at_least_48_calls_dispatch() -> None:
    said = list(outcomes().values())
    assert len(said) >= 53 and said.count("") >= 48
