"""Drawn models with states, drawn uses of their sessions, and every way of running them.

What is expected comes from calling the model itself on the python backend, with the states passed on as lists.

`python -m support.drawn_sessions 1000` in tests/ draws that many and prints those that differ.
"""

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections import Counter
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import EmberletError
from emberlet.host.numpy_backend import resident as numpy_resident
from emberlet.model import Model
from emberlet.wgpu_backend.wasm import resident as wasm_resident

from .every_backend import NATIVE

WIDTH = 3
WAYS = ("python", "numpy eager", "numpy plan", "wgpu eager", "wgpu plan", "wasm eager", "wasm plan", "native plan")
MARKED = [  # as parameters of tests
    pytest.param(w, marks=pytest.mark.needs("gpu-driver") if "wgpu" in w else NATIVE.marks if "native" in w else ())
    for w in WAYS
]
APPENDED = {"float32": 3, "int32": 1, "float16": 1}  # dtypes of growing states, with weights
OPERATIONS = ["step"] * 6 + ["fork", "rewind", "rewind", "reset", "snapshot", "save", "copy", "fail", "state"]


class Drawn(Model):
    """plan: how each state is computed, and what else is returned; all drawn by `drawn_model`."""

    def __init__(self, states: list[dict[str, Any]], shown: list[tuple[str, int]], backend: Any = None) -> None:
        self.backend = get_backend(backend)
        self.states = states
        self.shown = shown
        self.INPUTS = (("x", "float32", ("new", WIDTH)), *((s["name"], s["dtype"], s["shape"]) for s in states))
        count = len(shown)
        self.OUTPUTS = tuple((f"y{k}", "float32", None) for k in range(count)) + tuple(
            (f"{s['name']}_out", s["dtype"], None) for s in states
        )
        self.STATE = tuple(
            (s["name"], f"{s['feeds']}_out", "replace" if s["axis"] is None else "append", s["axis"]) for s in states
        )

    def forward(self, x: Any, *past: Any) -> Any:
        after = [_after(s, x, p) for s, p in zip(self.states, past, strict=True)]
        return (*(_shown(kind, x, past[k], after[k]) for kind, k in self.shown), *after)


def _after(state: dict[str, Any], x: Any, past: Any) -> Any:
    """The next value of a state."""
    kind = state["kind"]
    if kind == "append":
        rows = F.round(x * 2.0).astype(past.dtype)
        return F.concat((past, rows if state["axis"] == 0 else rows.permute(1, 0)), axis=state["axis"])
    if kind == "append after":  # depends on the past
        rows = x * 0.5 + F.sum(past, axis=0, keepdims=True) * 0.125
        return F.concat((past, rows), axis=0)
    if kind == "same":
        return past
    if kind == "input":  # the caller's own memory
        return x[-1]
    if kind == "turned":
        return F.flip(past, 0)
    if kind == "count":
        return past + 1
    if kind == "constant":
        return F.full(past.shape, 2.0, dtype=past.dtype, backend=past.backend)
    return past * 0.5 + F.sum(x, axis=0)  # "sum"


def _shown(kind: str, x: Any, before: Any, after: Any) -> Any:
    """An output beside the states."""
    if kind == "before":
        return before
    if kind == "after":
        return after
    if kind == "reshaped":
        return F.reshape(after, (-1,))
    if kind == "x":
        return x
    if kind == "part":
        return after[:1]
    return F.sum(after.astype(emberlet.float32)) + F.sum(x)  # "computed"


def drawn_model(choose: random.Random) -> tuple[list[dict[str, Any]], list[tuple[str, int]]]:
    """The arguments of Drawn."""
    states = []
    for k in range(choose.randint(1, 3)):
        kind = choose.choice(
            ["append"] * 3 + ["append after", "same", "input", "turned", "count", "constant", "sum", "sum"]
        )
        dtype: str = "float32"
        axis: int | None = None
        shape: tuple[Any, ...] = (WIDTH,)
        if kind.startswith("append"):
            axis = choose.randrange(2) if kind == "append" else 0
            shape = ("past", WIDTH) if axis == 0 else (WIDTH, "past")
            if kind == "append":
                dtype = choose.choices(list(APPENDED), list(APPENDED.values()))[0]
        elif kind == "count":
            dtype = choose.choice(["int64", "int32", "float32"])
        states.append({"name": f"s{k}", "kind": kind, "dtype": dtype, "axis": axis, "shape": shape, "feeds": f"s{k}"})
    replaced = [s for s in states if s["axis"] is None and s["dtype"] == "float32"]
    if len(replaced) > 1 and choose.random() < 0.3:  # two states that take each other's place
        replaced[0]["feeds"], replaced[1]["feeds"] = replaced[1]["feeds"], replaced[0]["feeds"]
    kinds = ["before", "after", "reshaped", "x", "part", "computed", "computed"]
    shown = [(choose.choice(kinds), choose.randrange(len(states))) for _ in range(choose.randint(1, 3))]
    return states, shown


class Expected:
    """A session by hand: the states are arrays, and the python backend calls the model."""

    def __init__(self, model: Drawn) -> None:
        self.model = model
        self.reset()

    def reset(self) -> None:
        self.length = 0
        self.states = [
            np.zeros([d if isinstance(d, int) else 0 for d in s["shape"]], s["dtype"]) for s in self.model.states
        ]
        self.kept = {0: self.states}

    def step(self, x: np.ndarray) -> list[np.ndarray]:
        given = [emberlet.asarray(a, device="python", copy=True) for a in (x, *self.states)]
        found = [np.array(y) for y in self.model.forward(*given)]
        names = [o[0] for o in self.model.OUTPUTS or ()]
        self.states = [found[names.index(row[1])] for row in self.model.STATE]
        grows = any(s["axis"] is not None for s in self.model.states)
        self.length += len(x) if grows else 1
        return found[: len(self.model.shown)]

    def can_rewind(self, target: int) -> bool:
        return target in self.kept or all(s["axis"] is not None for s in self.model.states)

    def rewind(self, n: int) -> None:
        if not n:
            return
        self.length -= n
        kept = self.kept.get(self.length)
        for i, s in enumerate(self.model.states):
            if s["axis"] is None:
                assert kept is not None
                self.states[i] = kept[i]
            else:
                self.states[i] = np.take(self.states[i], range(self.length), axis=s["axis"])
        self.kept = {k: v for k, v in self.kept.items() if k <= self.length}

    def fork(self) -> Expected:
        other = copy.copy(self)
        other.states, other.kept = list(self.states), dict(self.kept)
        return other


class _Broken:
    """A model whose forward raises after computing."""

    def __init__(self, forward: Any) -> None:
        self.forward = forward

    def __call__(self, *args: Any) -> Any:
        self.forward(*args)
        raise KeyboardInterrupt


def session_on(way: str, plan: tuple[list[dict[str, Any]], list[tuple[str, int]]], capacity: int | None) -> Any:
    """A session of a drawn model by a way."""
    name, _, how = way.partition(" ")
    states, shown = plan
    session: Any = Drawn(states, shown, name).session(capacity=capacity)
    if how == "eager":
        session._engine = False
    return session


def _eager(way: str, session: Any) -> Any:
    if way.endswith("eager"):
        session._engine = False
    return session


def _close(got: Any, want: np.ndarray) -> bool:
    got = np.asarray(got)
    return got.shape == want.shape and np.allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=1e-3, atol=1e-4
    )


def differences(seed: int, ways: tuple[str, ...] = WAYS, steps: int = 14) -> list[tuple[str, str]]:
    """Draw a model and a use of its sessions; returns (way, what differs). In every other drawing, NumPy and
    WebAssembly make plans for the first step that can have one."""
    found = []
    waits = numpy_resident.AFTER, wasm_resident.AFTER
    if seed % 2:
        numpy_resident.AFTER = wasm_resident.AFTER = 1
    try:
        for way in ways:
            try:
                wrong = _follow(seed, way, steps)
            except (Exception, KeyboardInterrupt) as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong:
                found.append((way, wrong))
    finally:
        numpy_resident.AFTER, wasm_resident.AFTER = waits
    return found


def _follow(seed: int, way: str, steps: int) -> str | None:
    choose = random.Random(seed)
    plan = drawn_model(choose)
    capacity = choose.choice([None, 64])
    model = Drawn(*plan, backend="python")
    pairs: list[tuple[Any, Expected]] = [(session_on(way, plan, capacity), Expected(model))]
    held: list[tuple[str, Any, np.ndarray]] = []
    new = 1
    for at in range(steps):
        k = choose.randrange(len(pairs))
        session, twin = pairs[k]
        what = choose.choice(OPERATIONS)
        where = f"operation {at}, {what}"
        if what in ("step", "fail"):
            new = choose.choice([new, new, 1, 2, 3])
            x = np.round(np.array([[choose.uniform(-4, 4) for _ in range(WIDTH)] for _ in range(new)], np.float32), 2)
            given = x.copy()
            if what == "fail":
                wrong = _fails(session, given, choose.random() < 0.5)
                if wrong:
                    return f"{where}: {wrong}"
                continue
            want = twin.step(x)
            got = session.step(given)
            given[...] = 77.0  # the input belongs to the caller
            got = got if isinstance(got, tuple) else (got,)
            for n in range(len(want)):
                if not _close(got[n], want[n]):
                    return f"{where}: output {n} {plan[1][n]} is {np.asarray(got[n]).tolist()}, not {want[n].tolist()}"
                if got[n].size and choose.random() < 0.5:
                    got[n][...] = 99  # and so does a result
                else:
                    held.append((f"{where}: output {n} {plan[1][n]}", got[n], want[n]))
        elif what == "fork" or what == "copy":
            pairs.append((_eager(way, session.fork() if what == "fork" else copy.deepcopy(session)), twin.fork()))
        elif what == "save":
            pairs[k] = (_eager(way, pickle.loads(pickle.dumps(session))), twin)
        elif what == "reset":
            session.reset()
            twin.reset()
        elif what == "snapshot":
            session.snapshot()
            twin.kept[twin.length] = list(twin.states)
        elif what == "state" and session._values is not None:
            value = session.state("s0")
            held.append((f"{where}", value, twin.states[0]))
        elif what == "rewind":
            n = choose.randint(0, twin.length)
            target = choose.choice([twin.length - n, *sorted(twin.kept)])
            if twin.can_rewind(target) or target == twin.length:
                session.rewind(twin.length - target)
                twin.rewind(twin.length - target)
        wrong = _states_differ(session, twin)
        if wrong:
            return f"{where}: {wrong}"
    for said, kept, first in held:
        if not _close(kept, first):
            return f"{said} changed later: {np.asarray(kept).tolist()}, not {first.tolist()}"
    return next((w for w in (_states_differ(s, t) for s, t in pairs) if w), None)


def _fails(session: Any, x: np.ndarray, interrupted: bool) -> str | None:
    """A step that fails: before the model runs, or in it."""
    if not interrupted:
        try:
            session.step(x[:, :0] if session.length else "nonsense")
        except EmberletError:
            return None
        return "a wrong input was taken"
    engine, session._engine = session._engine, False
    session.model.forward = _Broken(session.model.forward)
    try:
        session.step(x)
    except KeyboardInterrupt:
        return None
    finally:
        del session.model.forward
        if session._engine is False:
            session._engine = engine
    return "an interrupt was lost"


def _states_differ(session: Any, twin: Expected) -> str | None:
    if session.length != twin.length:
        return f"the length is {session.length}, not {twin.length}"
    for s, want in zip(twin.model.states, twin.states, strict=True):
        if session._values is not None and not _close(session.state(s["name"]), want):
            return f"state {s} is {np.asarray(session.state(s['name'])).tolist()}, not {want.tolist()}"
    return None


def main(count: int, first: int = 0) -> None:
    """Draw `count` sessions and print what differs."""
    failed: Counter[str] = Counter()
    for seed in range(first, first + count):
        for way, wrong in differences(seed):
            failed[way] += 1
            print(f"{seed} {way}: {wrong[:300]}", flush=True)
    print(f"{count} drawn on {len(WAYS)} ways; differing: {dict(failed) or 'none'}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
