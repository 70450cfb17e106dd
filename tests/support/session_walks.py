"""Walks through sessions of models whose states grow, on a backend and on NumPy."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from emberlet.errors import ShapeError
from emberlet.model import Model
from models.index import HERE

LLAMA = HERE / "llama" / "model.onnx"


class Kept(Model):
    """States that grow along each of three axes, by rows that depend on the past, by two parts, in float16 and
    int32."""

    STATE = (
        ("a", 1, "append", 0),
        ("b", 2, "append", 1),
        ("c", 3, "append", 2),
        ("d", 4, "append", 0),
        ("e", 5, "append", 0),
        ("f", 6, "replace", None),
    )
    INPUTS = (
        ("x", "float32", ("new", 3)),
        ("a", "float32", ("past", 3)),
        ("b", "float32", (3, "past")),
        ("c", "float32", (2, 3, "past2")),
        ("d", "float16", ("past", 3)),
        ("e", "int32", ("past", 3)),
        ("f", "float32", (3,)),
    )

    def forward(self, x: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        a = F.concat((a, x * 0.5 + F.sum(a, axis=0, keepdims=True) * 0.1), axis=0)
        b = F.concat((b, F.tanh(x).permute(1, 0)), axis=1)
        twice = F.stack((x.permute(1, 0), F.exp(x * 0.1).permute(1, 0)), axis=0)
        c = F.concat((c, twice, twice * 2.0), axis=2)
        d = F.concat((d, x.astype(emberlet.float16)), axis=0)
        e = F.concat((e, F.round(x * 4.0).astype(emberlet.int32)), axis=0)
        f = f + F.sum(x, axis=0)
        y = F.softmax(a @ b, axis=1) @ (a + d.astype(emberlet.float32)) + e.astype(emberlet.float32)
        return F.sum(y, axis=0) + F.sum(c, axis=2)[0] + f, a, b, c, d, e, f


def _kept(backend: str, capacity: int | None) -> Any:
    return Kept().fork(backend).session(capacity=capacity)


def walk(backend: str, seed: int) -> None:
    """Random steps, forks, rewinds and resets of sessions on a backend, each compared with those on NumPy."""
    choose = random.Random(seed)
    capacity = choose.choice([None, 96])
    of_llama = seed % 2
    pairs: list[Any]
    if of_llama:
        pairs = [tuple(load(LLAMA, b).session(capacity=capacity) for b in (backend, "numpy"))]
    else:
        pairs = [(_kept(backend, capacity), _kept("numpy", capacity))]
    states = ["key0", "value1"] if of_llama else ["a", "b", "c", "d", "e", "f"]
    held: list[tuple[Any, Any]] = []
    for _ in range(24):
        at = choose.randrange(len(pairs))
        session, twin = pairs[at]
        what = choose.random()
        if what > 0.95:
            assert session.reset().length == twin.reset().length == 0
        if what < 0.12 and len(pairs) < 4:
            pairs.append((session.fork(), twin.fork()))
            continue
        if what < 0.3 and session.length:
            n = choose.randint(0, session.length)
            try:
                twin.rewind(n)
            except emberlet.errors.EmberletError:
                continue
            session.rewind(n)
        elif what < 0.4 and session._values is not None:
            name = choose.choice(states)
            held.append((session.state(name), np.asarray(twin.state(name)).copy()))
        new = choose.choice([1, 1, 1, 2, 5])
        x: Any = [[choose.randrange(80) for _ in range(new)]]
        if not of_llama:
            x = np.random.default_rng(choose.randrange(1 << 30)).standard_normal((new, 3)).astype(np.float32)
        try:
            want = twin.step(x)
        except ShapeError as error:
            with pytest.raises(ShapeError, match=str(error).partition(":")[0]):
                session.step(x)
            continue
        np.testing.assert_allclose(np.asarray(session.step(x)), np.asarray(want), rtol=2e-3, atol=2e-3)
        assert session.length == twin.length
    for got, want in held:
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-3, atol=2e-3)
    for session, twin in pairs:
        for name in states if session._values is not None else ():
            got, want = session.state(name), twin.state(name)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-3, atol=2e-3)
