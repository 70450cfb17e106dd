"""Calls as PyTorch's documentation writes them give PyTorch 2.13's answers or are refused (torch_calls.py)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.errors import EmberletError
from emberlet.host.interface.declarations import read
from support.rows import every

from .torch_calls import arrays, calls

FIXTURE = Path(__file__).parent / "fixtures" / "torch_calls.npz"


@cache
def answers() -> dict[str, Any]:
    with np.load(FIXTURE) as file:
        return {str(call): file[str(i)] for i, call in enumerate(file["calls"])}


def scope(name: str) -> dict[str, Any]:
    backend = get_backend(name)
    return {"F": F, "nn": nn} | {
        k: emberlet.asarray(np.ascontiguousarray(v), backend=backend) for k, v in arrays().items()
    }


@every("call", [call for call, refused in calls() if not refused])
def test_a_call_gives_pytorchs_answer(call: str) -> None:
    found = np.asarray(eval(call, scope("numpy")))
    assert found.shape == answers()[call].shape
    np.testing.assert_allclose(found.astype(np.float64), answers()[call].astype(np.float64), rtol=1e-5, atol=1e-5)


@every("call", [call for call, refused in calls() if refused])
def test_a_call_that_means_something_else_is_refused(call: str) -> None:
    for name in ("numpy", "python"):
        with pytest.raises(EmberletError):
            eval(call, scope(name))


def test_every_function_that_names_pytorch_is_called() -> None:
    called = set(re.findall(r"\.(\w+)\(", " ".join(call for call, _ in calls())))
    named = {s.split(" ")[1] for d in read() for s in d.standards if s.startswith("PyTorch ")}
    # A seed has no answer, and `to` takes the names of our backends.
    assert named - called == {"manual_seed", "to"}
