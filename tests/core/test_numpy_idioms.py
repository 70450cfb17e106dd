"""What people write in NumPy without thinking works here, as it stands or as numpy_idioms.txt says, on all backends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from support.every_backend import WGPU
from support.rows import every

from tools.paths import ROOT

FILE = Path(__file__).parent / "numpy_idioms.txt"
# What NumPy has and emberlet does not.
MISSING: set[str] = {
    "np.lexsort((v, v))", "np.roots([1.0, -3.0, 2.0])",
}  # fmt: skip


def idioms() -> dict[str, str]:
    """NumPy's expression -> ours."""
    found: dict[str, str] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if (line and line[0] != "#" and not line.startswith("[")) or line.startswith("[float"):
            theirs, _, ours = line.partition(" -> ")
            assert theirs not in found, theirs
            found[theirs] = ours or theirs
    return found


def arrays() -> dict[str, Any]:
    r = np.random.RandomState(3)
    return {
        "a": r.randn(3, 4), "b": r.randn(3, 4), "v": r.randn(5), "n": np.arange(12).reshape(3, 4),
        "m": r.rand(3, 4) > 0.5, "s": r.randn(3, 3), "k": np.array([2, 0, 1]),
    }  # fmt: skip


def parts(value: Any) -> list[Any]:
    return [p for v in value for p in parts(v)] if isinstance(value, (list, tuple)) else [np.asarray(value)]


@pytest.mark.parametrize("backend", ["numpy", "python", WGPU])
@every("theirs", [i for i in idioms() if i not in MISSING])
def test_an_idiom_gives_what_numpy_gives(theirs: str, backend: str) -> None:
    given = arrays()
    if backend == "wgpu" and ".fft" in theirs:
        return  # complex numbers are on numpy and python (test_complex.py)
    wanted = parts(eval(theirs, {"np": np, **given}))
    emberlet.set_default_backend(backend)
    try:
        ours = {k: emberlet.asarray(v) for k, v in given.items()}
        found = parts(eval(idioms()[theirs], {"np": emberlet, **ours}))
    finally:
        emberlet.set_default_backend(None)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        if other.dtype.kind in "OSU":
            assert one.tolist() == other.tolist()
        elif ".empty" not in theirs:
            np.testing.assert_allclose(one.astype(complex), other.astype(complex), rtol=1e-5, atol=1e-6)


def test_nearly_all_of_them_work_and_the_document_counts_them() -> None:
    found = idioms()
    assert len(found) >= 330 and len(MISSING) <= 10
    typed = [i for i, ours in found.items() if ours == i and i not in MISSING]
    assert len(typed) >= 300
    text = (ROOT / "docs" / "tensors.md").read_text(encoding="utf-8")
    said = re.search(
        r"of (\d+) idioms (\d+) give NumPy's results on `numpy`, `python` and `wgpu`,\n(\d+) of them", text
    )
    assert said and tuple(map(int, said.groups())) == (len(found), len(found) - len(MISSING), len(typed))
