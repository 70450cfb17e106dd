"""einsum against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.backends import tensor
from support.every_backend import EVERY
from support.rows import every

CASES = [
    ("i->i", (3,)),
    ("ij->ji", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->ij", (3, 3, 2)),
    ("iji->j", (3, 2, 3)),
    ("iii->i", (2, 2, 2)),
    ("ij->", (2, 3)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bhij,bjhd->bihd", (2, 3, 4, 5), (2, 5, 3, 6)),
    ("i,i", (4,), (4,)),
    ("bi,bi->b", (3, 4), (3, 4)),
    ("i,j->ij", (4,), (3,)),
    ("ij,j->i", (2, 3), (3,)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...i,i", (2, 3, 4), (4,)),
    ("i...,i...->i...", (3, 2), (3, 2)),
    ("...ii->...i", (2, 3, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("i,ij,j->", (2,), (2, 3), (3,)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,ij->ij", (2, 3), (1, 3)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("a,b,c->abc", (2,), (3,), (4,)),
    ("ij , jk -> ik", (2, 3), (3, 4)),
    (",ij->ij", (), (2, 3)),
]


@pytest.mark.parametrize("backend", EVERY)
@every("case", CASES)
def test_equals_numpy(case: tuple[Any, ...], backend: str) -> None:
    equation, *shapes = case
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    found = F.einsum(equation, *[tensor(a, backend) for a in arrays])
    # NumPy does not broadcast a length of 1 that a letter names.
    axes: dict[str, int] = {}
    for term, shape in zip(equation.replace(" ", "").split("->")[0].split(","), shapes, strict=True):
        for letter, n in zip(term, shape, strict=False) if "." not in term else ():
            axes[letter] = max(n, axes.get(letter, 1))
    wide = []
    for term, array in zip(equation.replace(" ", "").split("->")[0].split(","), arrays, strict=True):
        wide.append(array if "." in term else np.broadcast_to(array, [axes[letter] for letter in term]))
    np.testing.assert_allclose(np.asarray(found), np.einsum(equation, *wide), rtol=1e-5, atol=1e-5)


@settings(max_examples=60)
@given(st.data())
def test_equals_numpy_on_random_equations(data: st.DataObject) -> None:
    sizes = {letter: data.draw(st.integers(1, 4), letter) for letter in "abcde"}
    count = data.draw(st.integers(1, 3))
    terms = [data.draw(st.lists(st.sampled_from("abcde"), min_size=0, max_size=3)) for _ in range(count)]
    letters = sorted({letter for term in terms for letter in term})
    result = data.draw(st.permutations(letters))[: data.draw(st.integers(0, len(letters)))]
    equation = ",".join("".join(t) for t in terms) + "->" + "".join(result)
    arrays = [np.arange(1, 1 + np.prod([sizes[c] for c in t], dtype=int)).reshape([sizes[c] for c in t]) for t in terms]
    found = F.einsum(equation, *[tensor(a, "numpy") for a in arrays])
    np.testing.assert_array_equal(np.asarray(found), np.einsum(equation, *arrays))
