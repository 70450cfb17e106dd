"""Positions of sessions, engines that run their steps, what is rewound and to where, and helpers."""

from __future__ import annotations

import asyncio
from typing import Any

import emberlet
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import EmberletError, ShapeError
from emberlet.session import Session
from emberlet.session.room import copied
from emberlet.tensor import Tensor
from support.session_models import PYTHON, ROW, Free, of, session, tensor

# -- what is kept


def test_an_appended_state_does_not_shrink() -> None:
    made = of(lambda past, x: x, ((0, 0, "append", 0),), s0=tensor([1.0, 2.0]))
    for x in ([1.0, 2.0], [1.0, 2.0, 3.0]):
        assert made.step(tensor(x)) == ()
    assert made.length == 3
    with pytest.raises(ShapeError, match=r"state 0.*2.*axis 0.*step, 3"):
        made.step(tensor([1.0, 2.0]))
    assert made.length == 3


def test_positions_are_those_that_the_first_growing_state_got_else_steps() -> None:
    made = of(lambda a, b, x: (F.concat([a, x]), F.concat([b, x, x])), ((0, 0, "append", 0), (1, 1, "append", 0)),
              s0=tensor([1.0]), s1=tensor([1.0]))  # fmt: skip
    made.step(tensor([1.0, 2.0]))
    assert made.length == 3
    still = of(lambda a, b, x: (a, F.concat([b, x])), ((0, 0, "append", 0), (1, 1, "append", 0)),
               s0=tensor([1.0]), s1=tensor([1.0]))  # fmt: skip
    still.step(tensor([1.0, 2.0]))
    assert still.length == 3  # the second grew
    counted = of(lambda a, x: (a + x, x), ((0, 0, "replace"),), s0=tensor([1.0]))
    for n in (1, 2, 3):
        assert counted.step(tensor([1.0])).tolist() == [1.0]
        assert counted.length == n


def test_an_output_that_does_not_exist_is_an_error() -> None:
    made = of(lambda a: a, ((0, 1, "replace"),), s0=tensor([1.0]))
    with pytest.raises(EmberletError, match=r"output 1.*returned 1"):
        made.step()


# -- engines


class Engine:
    """Runs steps itself, and notes what it is told."""

    def __init__(self, answer: Any, asynchronous: bool = True) -> None:
        self.answer, self.told = answer, []  # type: ignore[var-annotated]
        if asynchronous:
            self.step_async = self._step_async

    def step(self, arguments: Any, check: Any) -> Any:
        self.told.append("step")
        return self.answer(*arguments) if self.answer else None

    async def _step_async(self, arguments: Any, check: Any) -> Any:
        self.told.append("step_async")
        return self.answer(*arguments) if self.answer else None

    def release(self, *states: Any) -> None:
        self.told.append("release")

    def share(self, *states: Any) -> None:
        self.told.append("share")


def engined(answer: Any, **options: Any) -> tuple[Session, Engine]:
    made = of(lambda a, x: (a + x, x), ((0, 0, "replace"),), s0=tensor([1.0]))
    engine = Engine(answer, **options)
    made._engine = engine
    return made, engine


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_engine_runs_the_steps_that_it_can(asynchronous: bool) -> None:
    def step(made: Session, x: Any) -> Any:
        return asyncio.run(made.step_async(x)) if asynchronous else made.step(x)

    one = tensor([1.0])
    made, engine = engined(lambda a, x: [a + x * 10.0, x])
    assert step(made, one).tolist() == [1.0]
    assert made.state(0).tolist() == [11.0]
    assert engine.told == ["step_async" if asynchronous else "step", "release"]
    made, engine = engined(None)  # it cannot
    assert step(made, one).tolist() == [1.0]
    assert made.state(0).tolist() == [2.0]
    assert engine.told == (["step_async", "step", "release"] if asynchronous else ["step", "release"])
    made, engine = engined(lambda a, x: [a + x * 10.0, x], asynchronous=False)
    step(made, one)
    assert made.state(0).tolist() == [11.0] and engine.told == ["step", "release"]


def test_an_engine_is_told_of_forks_snapshots_and_resets() -> None:
    made, engine = engined(None)
    made.snapshot()
    made.step(tensor([1.0]))
    engine.told.clear()
    assert made.fork()._engine is engine
    assert made.snapshot() == 1
    made.reset()
    assert engine.told == ["share", "share", "release"]
    made._engine = None
    made.reset().fork()
    assert engine.told == ["share", "share", "release"]


def test_a_backend_makes_its_engine_once() -> None:
    made = of(lambda a, x: (a + x, x), ((0, 0, "replace"),), s0=tensor([1.0]))
    asked = []

    class Own(type(PYTHON)):  # type: ignore[misc]
        name = "own"

        def resident(self, *args: Any) -> Any:
            asked.append(args)
            return None

    backend = Own()
    value = tensor([1.0])
    made._values = [Tensor(value.data, value.dtype, value.shape, backend)]
    assert made._on_engine() is False and made._engine is False
    assert made._on_engine() is False
    assert asked == [(made.model, made._entries, None)]
    plain = of(lambda a: a, ((0, 0, "replace"),), s0=value)
    plain._values = [value]
    assert plain._resident() is None


def test_only_one_step_is_under_way() -> None:
    made = of(lambda a, x: (a + x, x), ((0, 0, "replace"),), s0=tensor([1.0]))
    made._stepping = True
    for call in (lambda: made.step(ROW), made.reset, made.fork, lambda: made.rewind(0)):
        with pytest.raises(EmberletError, match="a step of this session is under way"):
            call()
    made._stepping = False
    made.step(tensor([1.0]))
    assert made.length == 1


# -- rewinding


def test_a_state_with_fewer_positions_is_not_rewound() -> None:
    made = of(lambda a, b, x: (F.concat([a, x]), b), ((0, 0, "append", 0), (1, 1, "append", 0)),
              s0=tensor([1.0]), s1=tensor([1.0]))  # fmt: skip
    made.step(tensor([2.0]))
    with pytest.raises(EmberletError, match=r"state 1.*2"):
        made.rewind(2)


def test_a_replaced_state_is_rewound_to_its_snapshots() -> None:
    made = of(lambda a, x: a + x, ((0, 0, "replace"),), s0=tensor([1.0]))
    one = tensor([1.0])
    assert made.snapshot() == 0
    for n in range(5):
        made.step(one)
        if n in (1, 3):
            assert made.snapshot() == n + 1
    with pytest.raises(EmberletError, match=r"length 3.*replaces 0"):
        made.rewind(2)
    assert made.rewind(0).state(0).tolist() == [6.0]  # nothing to forget, so no snapshot is needed
    assert made.rewind(1).state(0).tolist() == [5.0]
    made.step(one)
    assert made.rewind(3).length == 2 and made.state(0).tolist() == [3.0]
    assert sorted(made._snapshots) == [0, 2]  # those of lengths that are gone are forgotten
    assert made.rewind(2).state(0).tolist() == [1.0]


def test_states_without_names_are_numbers_in_messages() -> None:
    made = of(lambda a, x: a + x, ((0, 0, "replace"),), s0=tensor([1.0]))
    assert repr(made) == "Session(Made, length 0, states 0)"
    made.step(tensor([1.0]))
    made.step(tensor([1.0]))
    with pytest.raises(EmberletError, match="replaces 0"):
        made.rewind(1)


# -- forks, pickles, helpers


def test_positions_and_masks_go_on_from_the_length() -> None:
    made = session()
    made.step(tensor([[1.0, 2.0]] * 3), ROW)
    assert made.positions(2).tolist() == [[3, 4]]
    assert made.positions(2, 3).tolist() == [[3, 4]] * 3
    assert made.positions(0).shape == (1, 0)
    assert made.attention_mask(2, 2).tolist() == [[1] * 5] * 2
    assert made.attention_mask(0).tolist() == [[1] * 3]
    assert made.positions(1).backend is PYTHON and made.positions(1).dtype.name == "int64"
    for new, batch in ((-1, 1), (1, 0), (1.5, 1), (1, None), (True, 1)):
        for call in (made.positions, made.attention_mask):
            with pytest.raises(EmberletError, match="new positions are 0 or more, of a batch of 1 or more"):
                call(new, batch)
    assert Free().session(initial={}).positions(1).tolist() == [[0]]


def test_texts_are_copied_too() -> None:
    texts = emberlet.asarray([["a", "b"]], device=PYTHON)
    other = copied(texts)
    assert other.tolist() == [["a", "b"]] and other.shape == (1, 2) and other.data is not texts.data


def test_numpys_plans_run_the_steps_of_models_on_numpy() -> None:
    from emberlet.host.numpy_backend.resident import Resident

    for backend, kind in ((PYTHON, bool), (get_backend("numpy"), Resident)):
        made = of(lambda a, x: (a + x, x), ((0, 0, "replace"),), s0=tensor([1.0], backend))
        made.model.backend = backend
        made.step(tensor([1.0], backend))
        assert type(made._engine) is kind


@pytest.mark.parametrize("done", [False, True])
def test_what_a_backend_records_is_computed_at_the_end_of_a_step(done: bool) -> None:
    realized: list[Any] = []

    class Own(type(PYTHON)):  # type: ignore[misc]
        def realize(self, *tensors: Any) -> None:
            realized.append([t.tolist() for t in tensors])

    backend = Own()
    one = tensor([1.0], backend)
    made = of(lambda a, x: (a + x, x + 5.0, 3), ((0, 0, "replace"),), s0=tensor([1.0]))
    made.model.backend = backend
    made._values = [one]
    made._engine = Engine(lambda a, x: [a + x, x + 5.0, 3]) if done else False
    assert made.step(one)[1] == 3
    assert realized == ([] if done else [[[6.0], [2.0]]])
