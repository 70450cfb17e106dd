"""Sessions step by step: what STATE may say, first values, what is kept and copied, engines, rewinding."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import EmberletError, ShapeError
from emberlet.model import Model
from emberlet.session import Session, copied, entries
from emberlet.tensor import Tensor

PYTHON = get_backend("python")


def tensor(values: Any, backend: Any = PYTHON) -> Any:
    return emberlet.asarray(values, dtype="float32", device=backend)


class Here(Model):
    backend = PYTHON


class Joins(Here):
    """A growing state, a replaced one, and outputs before, between and after them."""

    INPUTS: Any = (
        ("x", "float32", ("new", 2)), ("past", "float32", ("past", 2)), ("count", "int64", ("b",)),
        ("y", "float32", None),
    )  # fmt: skip
    OUTPUTS: Any = (("a", "float32", None), ("now", "float32", None), ("count_out", "int64", None))
    STATE: Any = (("past", "now", "append", 0), ("count", "count_out", "replace"))

    def forward(self, x: Any, past: Any, count: Any, y: Any) -> Any:
        return y, F.concat([past, x], axis=0), count + 1


class Free(Here):
    """The same without INPUTS."""

    STATE: Any = ((2, 0, "append", 1), (0, 2, "replace"))

    def forward(self, count: Any, x: Any, past: Any, y: Any = 0) -> Any:
        return F.concat([past, x], axis=1), y, count + 1


def session(**options: Any) -> Session:
    made: Session = Joins().session(**{"dims": {"b": 1}, **options})
    return made


ROW = tensor([[1.0, 2.0]])


# -- STATE


class Plain(Model):
    INPUTS: Any = (("a", "float32", (1, 2)), ("b", "float32", ("n",)), ("c", "float32", None))
    OUTPUTS: Any = (("x", "float32", (1, 2)), ("y", "float32", ("n",)), ("z", "float32", None))

    def forward(self, a: Any, b: Any, c: Any) -> Any:
        return a, b, c


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (("a", "x", "append", 1), (0, 0, 1, "a", "x")), (("a", "x", "append", -1), (0, 0, 1, "a", "x")),
        (("a", "x", "append", -2), (0, 0, 0, "a", "x")), (["b", "y", "replace"], (1, 1, None, "b", "y")),
        (("b", "y", "replace", None), (1, 1, None, "b", "y")), ((2, 1, "replace"), (2, 1, None, "c", "y")),
        ((3, 4, "append", 0), (3, 4, 0, 3, 4)), ((2, 2, "append", 0), (2, 2, 0, "c", "z")),
    ],
)  # fmt: skip
def test_an_entry_names_an_input_an_output_and_an_axis(row: Any, found: Any) -> None:
    (e,) = entries(Plain(), [row])
    assert (e.input, e.output, e.axis, e.name, e.result) == found


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([("a", "x")], "an entry of STATE is"), ([("a", "x", "append")], "an entry of STATE is"),
        ([("a", "x", "replace", 1)], "an entry of STATE is"), ([("a", "x", "append", "1")], "an entry of STATE is"),
        ([("a", "x", "grow", 1)], "an entry of STATE is"), ([("a", "x", "append", 1, 2)], "an entry of STATE is"),
        ([("q", "x", "replace")], "STATE names an unknown input 'q'; there are a, b, c"),
        ([("a", "q", "replace")], "STATE names an unknown output 'q'; there are x, y, z"),
        ([("a", "x", "replace"), ("a", "y", "replace")], "STATE names 'a' or 'y' twice"),
        ([("a", "x", "replace"), ("b", "x", "replace")], "STATE names 'b' or 'x' twice"),
        ([("c", "z", "append", -1)], "count the axis of state 'c' from the front"), ([], "Plain has no STATE"),
    ],
)  # fmt: skip
def test_an_entry_that_does_not_match_the_model_is_refused(table: Any, said: str) -> None:
    with pytest.raises(EmberletError, match=f"^{said}"):
        entries(Plain(), table)


def test_another_table_takes_the_place_of_the_classs() -> None:
    assert [e.name for e in entries(Joins())] == ["past", "count"]
    assert [e.name for e in entries(Joins(), [("count", "count_out", "replace")])] == ["count"]


# -- making one


@pytest.mark.parametrize("capacity", [0, -1, True, 1.5, "3"])
def test_a_capacity_is_a_number_of_one_or_more(capacity: Any) -> None:
    with pytest.raises(EmberletError, match="capacity is a number of positions, 1 or more"):
        session(capacity=capacity)
    assert session(capacity=1).capacity == 1
    assert session().capacity is None


@pytest.mark.parametrize("word", ["initial", "dims"])
def test_initial_and_dims_are_dicts(word: str) -> None:
    with pytest.raises(EmberletError, match=f"^{word} is a dict, by name; found 3$"):
        session(**{word: 3})
    assert session(**{word: {}}) is not None


# -- the inputs of a step


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((ROW, ROW, ROW), {}, "a step takes x, y; found 3 inputs"), ((ROW,), {"x": ROW}, "'x' is given twice"),
        ((ROW,), {"y": ROW, "z": ROW}, "a step takes x, y; there is no input 'z'"),
        ((ROW,), {}, "a step takes x, y; 'y' is missing"), ((), {"y": ROW}, "a step takes x, y; 'x' is missing"),
        ((ROW, ROW), {"past": ROW}, "'past' is a state, which the session keeps; initial= sets it"),
    ],
)  # fmt: skip
def test_inputs_that_are_too_many_unknown_or_missing(args: Any, kwargs: Any, said: str) -> None:
    made = session()
    for _ in range(2):
        with pytest.raises(EmberletError) as found:
            made.step(*args, **kwargs)
        assert str(found.value) == said
        assert (made.length, made._values) == (0, None)
    assert made.step(ROW, ROW).tolist() == ROW.tolist()
    assert made.step(y=ROW, x=ROW).tolist() == ROW.tolist()
    assert made.state("now").shape == (2, 2)


def test_inputs_without_names_stand_between_the_states() -> None:
    made = Free().session(initial={"past": tensor([[0.0]]), "count": tensor([0.0])})
    assert made.step(tensor([[5.0]])) == 0
    assert made.step(tensor([[6.0]]), 7) == 7
    assert made._values[0].tolist() == [[0.0, 5.0, 6.0]]
    assert made._values[1].tolist() == [2.0]
    assert made.length == 3
    for args, kwargs, said in (
        ((), {}, "a step got 0 inputs, too few for the states after them"),
        ((1, 2, 3), {}, "a step of Free got 3 inputs besides its states: too many positional arguments"),
        ((1,), {"y": 2}, "inputs can be given by name only if the model's class has INPUTS"),
    ):  # fmt: skip
        with pytest.raises(EmberletError) as found:
            made.step(*args, **kwargs)
        assert str(found.value) == said


# -- first values


def test_first_values_are_zeros_with_no_positions() -> None:
    made = session()
    assert made.step(ROW, ROW) is not None
    assert made.state("past").tolist() == ROW.tolist()
    assert made.state("count").tolist() == [1]
    assert made.state("count").dtype.name == "int64"
    assert made.state("past").backend is PYTHON


def test_sizes_come_from_dims_else_from_the_inputs() -> None:
    class Sized(Joins):
        INPUTS: Any = (
            ("x", "float32", ("new", 2)), ("past", "float32", ("past", 2)), ("count", "int64", ("new", None, 3)),
            ("y", "float32", ("q",)),
        )  # fmt: skip

    made = Sized().session()
    made.step(tensor([[1.0, 2.0]] * 4), tensor([1.0]))
    assert made.state("count").shape == (4, 1, 3)
    made = Sized().session(dims={"new": 5})
    with pytest.raises(ShapeError, match=r"found int64 \(5, 1, 3\); new is 1 in x"):
        made.step(ROW, [1.0])
    made = Joins().session()
    with pytest.raises(EmberletError, match=r"the size 'b' of state 'count' is not known: session\(dims="):
        made.step(ROW, ROW)
    made = Sized().session()
    with pytest.raises(EmberletError, match="the size 'new' of state 'count' is not known"):
        made.step([1.0, 2.0], [1.0])  # of another rank


def test_a_state_of_unknown_shape_needs_a_first_value() -> None:
    class Unknown(Joins):
        INPUTS: Any = (*Joins.INPUTS[:2], ("count", "int64", None), Joins.INPUTS[3])

    made = Unknown().session()
    with pytest.raises(EmberletError, match="INPUTS does not say the shape of state 'count'; give its first value"):
        made.step(ROW, ROW)
    made = Unknown().session(initial={"count": [5]})
    made.step(ROW, ROW)
    assert made.state("count").tolist() == [6]
    with pytest.raises(EmberletError, match="INPUTS does not say the shape of state 'past'"):
        Free().session().step(tensor([[1.0]]))


def test_given_values_have_the_dtype_of_the_input_or_their_own() -> None:
    for value, dtype in (
        ([1], "int64"),
        (np.int32([1]), "int32"),
        (np.int64([1]), "int64"),
        (tensor([1.0]), "float32"),
    ):
        made = session(initial={"count_out": value})
        assert made.state("count").dtype.name == dtype
        assert made.state("count_out").tolist() == [1]
    with pytest.raises(EmberletError, match="state 'past' has no value before the first step"):
        made.state("past")
    with pytest.raises(EmberletError, match="there is no state 'x'; the model has 'past', 'count'"):
        made.state("x")


def test_given_values_are_copied_and_come_to_the_models_backend() -> None:
    mine = np.int64([3])
    made = session(initial={"count": mine})
    mine[0] = 9
    assert made.state("count").tolist() == [3]
    given = tensor([[7.0, 7.0]])
    made = session(initial={"past": given})
    given[...] = 1.0
    assert made.state("past").tolist() == [[7.0, 7.0]]
    made = session(initial={"past": tensor([[7.0, 7.0]], "numpy")})
    made.step(ROW, ROW)
    assert made.state("past").backend is PYTHON
    assert made.state("past").tolist() == [[7.0, 7.0], [1.0, 2.0]]
    assert made.length == 2


def test_a_first_value_has_the_axis_that_grows_and_fits_the_capacity() -> None:
    with pytest.raises(ShapeError, match=r"state 'past' grows along axis 0, and its first value has the shape \(\)"):
        session(initial={"past": 1.0}).step(ROW, ROW)
    rows = tensor([[0.0, 0.0]] * 3)
    with pytest.raises(ShapeError, match="the session would hold 3 positions, and its capacity is 2"):
        session(initial={"past": rows}, capacity=2).step(ROW, ROW)
    made = session(initial={"past": rows}, capacity=4)
    made.step(ROW, ROW)
    assert made.length == 4
    with pytest.raises(ShapeError, match="the session would hold 5 positions, and its capacity is 4"):
        made.step(ROW, ROW)
    assert made.length == 4 and made.state("past").shape == (4, 2)


# -- what is kept


def of(forward: Any, state: Any, **initial: Any) -> Session:
    made = type("Made", (Here,), {"forward": lambda self, *args: forward(*args), "STATE": state})()
    found: Session = made.session(initial={int(k[1:]): v for k, v in initial.items()})
    return found


def test_an_appended_state_does_not_shrink() -> None:
    made = of(lambda past, x: x, ((0, 0, "append", 0),), s0=tensor([1.0, 2.0]))
    for x in ([1.0, 2.0], [1.0, 2.0, 3.0]):
        assert made.step(tensor(x)) == ()
    assert made.length == 3
    with pytest.raises(ShapeError, match="state 0 has 2 positions along axis 0 after a step, 3 before"):
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
    with pytest.raises(EmberletError, match="STATE names output 1, and the model returned 1"):
        made.step()


def test_a_replaced_state_that_is_the_callers_memory_is_copied() -> None:
    made = of(lambda a, x: (x, a), ((0, 0, "replace"),), s0=tensor([1.0]))
    frame = tensor([5.0])
    made.step(frame)
    frame[0] = 9.0
    assert made.step(tensor([6.0])).tolist() == [5.0]
    kept = of(lambda a: a, ((0, 0, "replace"),), s0=tensor([1.0]))
    kept.step()
    before = kept._values[0]
    kept.step()
    assert kept._values[0].data is before.data  # the state itself is not copied


def test_outputs_share_no_memory_with_states() -> None:
    made = of(lambda a, x: (a + x, a + x, x), ((0, 0, "replace"),), s0=tensor([1.0]))
    one, two = made.step(tensor([1.0]))
    assert (one.tolist(), two.tolist()) == ([2.0], [1.0])

    def twice(a: Any, x: Any) -> Any:
        total = a + x
        return total, total

    made = of(twice, ((0, 0, "replace"),), s0=tensor([1.0]))
    out = made.step(tensor([1.0]))
    out[0] = 99.0
    assert made.step(tensor([1.0])).tolist() == [3.0]

    def grown(past: Any, x: Any) -> Any:
        total = F.concat([past, x])
        return total, total, total[:1], 7

    made = of(grown, ((0, 0, "append", 0),), s0=tensor([1.0]))
    whole, first, number = made.step(tensor([2.0]))
    whole[0] = first[0] = 99.0
    assert number == 7
    assert made.state(0).tolist() == [1.0, 2.0]
    again, first, _ = made.step(tensor([3.0]))
    assert (again.tolist(), first.tolist()) == ([1.0, 2.0, 3.0], [1.0])


def test_a_step_returns_one_value_or_a_tuple() -> None:
    state = ((0, 0, "replace"),)
    for results, wanted in (((), ()), ((5,), 5), ((5, 6), (5, 6))):
        made = of(lambda a, results=results: (a, *results), state, s0=tensor([1.0]))
        assert made.step() == wanted


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
    made._enter()
    for call in (lambda: made.step(ROW), made.reset, made.fork, lambda: made.rewind(0)):
        with pytest.raises(EmberletError, match="a step of this session is under way"):
            call()
    made._leave()
    made.step(tensor([1.0]))
    assert made.length == 1


# -- rewinding


def test_a_growing_state_is_rewound_to_any_length() -> None:
    made = of(lambda past, x: F.concat([past, x]), ((0, 0, "append", 0),), s0=tensor([1.0]))
    for x in (2.0, 3.0, 4.0):
        made.step(tensor([x]))
    assert made.rewind(0) is made and made.length == 4
    assert made.rewind(1).length == 3 and made.state(0).tolist() == [1.0, 2.0, 3.0]
    made.step(tensor([9.0]))
    assert made.state(0).tolist() == [1.0, 2.0, 3.0, 9.0]
    for n in (5, -1, 1.5, True, None):
        with pytest.raises(EmberletError, match="rewind needs 0 to 4 positions, found"):
            made.rewind(n)
    assert made.rewind(4).length == 0 and made.state(0).shape == (0,)


def test_a_state_with_fewer_positions_is_not_rewound() -> None:
    made = of(lambda a, b, x: (F.concat([a, x]), b), ((0, 0, "append", 0), (1, 1, "append", 0)),
              s0=tensor([1.0]), s1=tensor([1.0]))  # fmt: skip
    made.step(tensor([2.0]))
    with pytest.raises(EmberletError, match="state 1 has fewer than 2 positions"):
        made.rewind(2)


def test_a_replaced_state_is_rewound_to_its_snapshots() -> None:
    made = of(lambda a, x: a + x, ((0, 0, "replace"),), s0=tensor([1.0]))
    one = tensor([1.0])
    assert made.snapshot() == 0
    for n in range(5):
        made.step(one)
        if n in (1, 3):
            assert made.snapshot() == n + 1
    with pytest.raises(EmberletError, match="cannot rewind to length 3: each step replaces 0, and the value it had is"):
        made.rewind(2)
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
    with pytest.raises(EmberletError, match="each step replaces 0, and"):
        made.rewind(1)


# -- forks, pickles, helpers


def test_a_fork_and_its_origin_go_on_by_themselves() -> None:
    made = of(lambda past, x: F.concat([past, x]), ((0, 0, "append", 0),), s0=tensor([1.0]))
    empty = made.fork()
    made.step(tensor([2.0]))
    other = made.fork()
    assert other.length == 2 and other._table is made._table
    made.step(tensor([3.0]))
    other.step(tensor([4.0]))
    other.step(tensor([5.0]))
    empty.step(tensor([6.0]))
    assert made.state(0).tolist() == [1.0, 2.0, 3.0]
    assert other.state(0).tolist() == [1.0, 2.0, 4.0, 5.0]
    assert empty.state(0).tolist() == [1.0, 6.0]


def test_a_pickled_session_has_room_again() -> None:
    made = session(capacity=5)
    made.step(ROW, ROW)
    made._engine = Engine(None)
    kept = made.__getstate__()
    assert kept["_engine"] is None and kept["_rooms"] == [None, None] and kept["_stepping"] is False
    made._engine = None
    other = pickle.loads(pickle.dumps(made))
    assert other._rooms[0].length == 5 and other._rooms[1] is None
    other.step(ROW, ROW)
    assert (other.length, made.length) == (2, 1)
    fresh = pickle.loads(pickle.dumps(session()))
    fresh.step(ROW, ROW)
    assert fresh.length == 1


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
