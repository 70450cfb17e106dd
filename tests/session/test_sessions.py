"""Sessions compared with onnxruntime, whose states are passed on manually."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import onnx
import pytest
from emberlet import functional as F
from emberlet.codegen import load
from emberlet.errors import EmberletError, ShapeError
from emberlet.model import Model
from emberlet.session.room import shares
from hypothesis import given, settings
from hypothesis import strategies as st
from models.index import HERE
from support.draws import draw
from support.stateful_models import Reference, models, pairs

from tools import components

FAST = settings(max_examples=8)
BACKENDS = ["numpy", "python", *(["wgpu"] if components.get("gpu-driver").find() else [])]
LLAMA = HERE / "llama" / "model.onnx"


def follow(model: onnx.ModelProto, backend: str, data: st.DataObject, steps: int) -> None:
    """Draw steps, forks, rewinds, snapshots and resets, and compare each output and each state with onnxruntime's."""
    batch = data.draw(st.integers(1, 2), "batch")
    reference = Reference(model, batch)
    net = load(model, backend)
    assert {i: (o, axis) for i, o, _, axis in net.STATE} == pairs(model)
    replaces = any(axis is None for _, axis in reference.pairs.values())
    capacity = data.draw(st.sampled_from([None, 64]), "capacity")
    sessions: list[Any] = [net.session(capacity, dims={"batch": batch})]
    # For each session, its states by length, at every position that a rewind may return to.
    moments: list[dict[int, dict[str, np.ndarray]]] = [{0: reference.first}]
    returns: list[set[int]] = [{0}]
    kept: list[tuple[Any, list[np.ndarray]]] = []
    random = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    for _ in range(steps):
        k = data.draw(st.integers(0, len(sessions) - 1), "session")
        session, past = sessions[k], moments[k]
        what = data.draw(
            st.sampled_from(["step", "step", "step", "fork", "rewind", "rewind", "snapshot", "reset"]), "what"
        )
        if what == "step":
            new = data.draw(st.integers(1, 3), "new")
            x = random.standard_normal((batch, new, 4)).astype(np.float32)
            want, after = reference.step(x, past[session.length])
            got = session.step(x)
            kept.append((got if isinstance(got, tuple) else (got,), want))
            past[session.length] = after
            assert max(past) == session.length
            for name, (output, _) in reference.pairs.items():
                word = data.draw(st.sampled_from([name, output]), "name")
                np.testing.assert_allclose(np.asarray(session.state(word)), after[name], atol=2e-5)
        elif what == "fork":
            sessions.append(session.fork())
            moments.append(dict(past))
            returns.append(set(returns[k]))
        elif what == "snapshot":
            assert session.snapshot() == session.length
            returns[k].add(session.length)
        elif what == "reset":
            assert session.reset() is session
            moments[k], returns[k] = {0: reference.first}, {0}
        elif session.length:
            target = data.draw(st.sampled_from(sorted(past)), "target")
            if replaces and target != session.length and target not in returns[k]:
                with pytest.raises(EmberletError, match=r"snapshot\(\) or fork\(\)"):
                    session.rewind(session.length - target)
                continue
            session.rewind(session.length - target)
            assert session.length == target
            moments[k] = {n: states for n, states in past.items() if n <= target}
            returns[k] = {n for n in returns[k] if n <= target}
    for got, want in kept:  # nothing that a step returned changed afterwards
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(x), y, atol=2e-5)
    for session, past in zip(sessions, moments, strict=True):  # and no session changed another one
        for name, state in past[session.length].items():
            if session.length:
                np.testing.assert_allclose(np.asarray(session.state(name)), state, atol=2e-5)


# The contract (contract/kinds/sessions.py) draws sessions on every backend, beside NumPy.
@FAST
@given(model=models(), data=st.data())
def test_random_models_step_like_onnxruntime(model: onnx.ModelProto, data: st.DataObject) -> None:
    follow(model, "numpy", data, 16)


class Cache(Model):
    """A handwritten model with a cache that grows and a count that is replaced, without INPUTS or parameters."""

    STATE = ((1, 0, "append", 0), ("count", 2, "replace"))

    def __init__(self, backend: Any = None) -> None:
        self.backend = emberlet.backend.get_backend(backend)

    def forward(self, x: Any, past: Any, count: Any) -> Any:
        joined = F.concat((past, x))
        return joined, F.sum(joined), count + 1


def cache(backend: str, capacity: int | None = None) -> Any:
    return Cache(backend).session(capacity, initial={"past": np.zeros((0, 2), np.float32), "count": 0.0})


def rows(*numbers: float) -> Any:
    return np.float32([[n, n] for n in numbers])


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_step_appends_in_place(backend: str) -> None:
    """The memory of the state stays where it is, with a capacity from the first step on."""
    session = load(LLAMA, backend).session(capacity=32)
    places = set()
    for _ in range(16):
        session.step([[7, 3]])
        places.add(tuple(id(room.array.data if backend == "numpy" else room.array.data[0]) for room in session._rooms))
    assert len(places) == 1
    for room, value in zip(session._rooms, session._values, strict=True):
        assert shares(value, room.array)


@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_session_that_goes_back_writes_nothing_into_its_fork(backend: str) -> None:
    session = load(LLAMA, backend).session(capacity=16)
    session.step([[1, 2, 3, 4]])
    fork = session.fork()
    wanted = [np.array(fork.state(name)) for name in ("key0", "value1")]
    session.rewind(2)
    session.step([[9, 9]])
    for name, state in zip(("key0", "value1"), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(fork.state(name)), state)


def test_without_a_capacity_the_memory_doubles() -> None:
    session = load(LLAMA, "numpy").session()
    lengths = []
    for _ in range(100):
        session.step([[7]])
        lengths.append(session._rooms[0].length)
    assert len(set(lengths)) <= 4


def test_what_does_not_fit_is_refused_and_nothing_is_lost() -> None:
    session = load(LLAMA, "numpy").session(capacity=5)
    session.step([[1, 2, 3, 4]])
    before = np.asarray(session.state("key0"))
    with pytest.raises(ShapeError, match=r"would hold 6 positions, and its capacity is 5.*capacity="):
        session.step([[5, 6]])
    assert session.length == 4
    assert np.array_equal(session.state("key0"), before)
    session.step([[5]])
    fresh = load(LLAMA, "numpy").session()
    fresh.step([[1, 2, 3, 4, 5]])
    np.testing.assert_allclose(np.asarray(session.state("value1")), np.asarray(fresh.state("value1")), atol=1e-5)


def test_states_can_be_given_at_the_beginning() -> None:
    net = load(LLAMA, "numpy")
    whole = net.session()
    first = whole.step([[1, 2, 3]])
    held = {name: whole.state(name) for name, *_ in net.STATE}
    wanted = whole.step([[4]])
    session = net.session(capacity=4, initial=held)
    assert session.state("key0").shape == (1, 4, 3, 4)
    np.testing.assert_allclose(np.asarray(session.step(tokens=[[4]])), np.asarray(wanted), atol=1e-5)
    assert session.length == 4
    session.rewind(1)
    session.reset()
    np.testing.assert_allclose(np.asarray(session.step({"tokens": [[4]]}["tokens"])), np.asarray(wanted), atol=1e-5)
    assert first.shape == (1, 3, 80)


def test_numbers_of_numpy_are_numbers() -> None:
    session = load(LLAMA, "numpy").session(np.int64(4))
    session.step([[1, 2, 3]])
    assert session.rewind(np.int32(1)).length == 2
    assert session.positions(np.int64(1)).tolist() == [[2]]


def mistakes() -> list[tuple[Any, str]]:
    def stepped() -> Any:
        session = load(HERE / "lstm_step" / "model.onnx", "numpy").session()
        session.step(np.zeros((1, 1, 12), np.float32))
        session.step(np.zeros((1, 1, 12), np.float32))
        return session

    llama = load(LLAMA, "numpy")
    return [
        (lambda: llama.session(0), "capacity is a number of positions, 1 or more, found 0"),
        (lambda: llama.session(initial={"past": 1}), "there is no state 'past'; the model has 'key0', 'value0'"),
        (lambda: llama.session().state("key0"), "state 'key0' has no value before the first step"),
        (lambda: llama.session().step([["a"]]), "found a text"),
        (lambda: llama.session([3]), "capacity is a number of positions, 1 or more, found [3]"),
        (lambda: llama.session(True), "capacity is a number of positions, 1 or more, found True"),
        (lambda: llama.session(1.5), "capacity is a number of positions, 1 or more, found 1.5"),
        (lambda: llama.session(initial=[1]), "initial is a dict, by name; found [1]"),
        (lambda: llama.session(dims=2), "dims is a dict, by name; found 2"),
        (lambda: llama.session(initial={"key0": 1.0}).step([[1]]), "grows along axis 2, and its first value has"),
        (lambda: llama.session().rewind(0.5), "rewind needs 0 to 0 positions, found 0.5"),
        (lambda: llama.session().rewind(1), "rewind needs 0 to 0 positions, found 1"),
        (lambda: stepped().rewind(1), "each step replaces h, c, and the value it had is gone; call snapshot()"),
    ]


@pytest.mark.parametrize("number", range(13))
def test_mistakes_are_said(number: int) -> None:
    call, says = mistakes()[number]
    with pytest.raises(EmberletError) as caught:
        call()
    assert says in str(caught.value)


def test_an_unknown_size_is_asked_for() -> None:
    class Net(Cache):
        INPUTS = (("x", "float32", (None, 2)), ("past", "float32", ("past", 2)), ("count", "float32", ("n",)))
        OUTPUTS = (("joined", "float32", ("total", 2)), ("sum", "float32", ()), ("count_out", "float32", ("n",)))
        STATE = (("past", "joined", "append", -2), ("count", "count_out", "replace", None))

    with pytest.raises(EmberletError, match=r"size 'n' of state 'count' is not known: session\(dims={'n': ...}\)"):
        Net("numpy").session().step(rows(1))
    session = Net("numpy").session(dims={"n": 3})
    session.step(rows(1))
    assert session.state("count").tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["llama", "llama_opset23", "lstm_step", "gru_stack", "transformer_decoder"])
def test_committed_models_in_several_steps(name: str) -> None:
    """They give onnxruntime's results for the whole input, on a backend that is drawn for each model."""
    import onnxruntime

    path = HERE / name / "model.onnx"
    net = load(path, draw(name).choice(BACKENDS))
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    sizes = {"batch": 2, "new": 1, "past": 0, "length": 1, "time": 1, "source": 3}
    states = {row[0]: row[1] for row in net.STATE}
    outputs = [o.name for o in run.get_outputs()]
    held = {}
    for i in run.get_inputs():
        if i.name in states:
            held[i.name] = np.zeros([sizes.get(d, d) for d in i.shape], np.float32)
    session = net.session(capacity=16)
    for new in (3, 1, 2):
        given = {}
        for i in run.get_inputs():
            if i.name in states:
                continue
            shape = [{**sizes, "new": new, "length": new, "time": new}.get(d, d) for d in i.shape]
            given[i.name] = random.integers(0, 50, shape) if "int" in i.type else random.random(shape, np.float32)
        want = dict(zip(outputs, run.run(None, {**given, **held}), strict=True))
        got = session.step(**given)
        held = {name: want.pop(output) for name, output in states.items()}
        for x, y in zip(got if isinstance(got, tuple) else (got,), want.values(), strict=True):
            np.testing.assert_allclose(np.asarray(x), y, atol=1e-4)
        for state, x in held.items():
            np.testing.assert_allclose(np.asarray(session.state(state)), x, atol=1e-4)
