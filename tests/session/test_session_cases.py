"""What STATE may say, the inputs of a step, and the first values of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emberlet.errors import EmberletError, ShapeError
from emberlet.model import Model
from emberlet.session.table import entries
from support.session_models import PYTHON, ROW, Free, Joins, session, tensor

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
    with pytest.raises(ShapeError, match=r"int64 \(5, 1, 3\).*1"):
        made.step(ROW, [1.0])
    made = Joins().session()
    with pytest.raises(EmberletError, match=r"'b'.*'count'.*session\(dims="):
        made.step(ROW, ROW)
    made = Sized().session()
    with pytest.raises(EmberletError, match=r"'new'.*'count'"):
        made.step([1.0, 2.0], [1.0])  # of another rank


def test_a_state_of_unknown_shape_needs_a_first_value() -> None:
    class Unknown(Joins):
        INPUTS: Any = (*Joins.INPUTS[:2], ("count", "int64", None), Joins.INPUTS[3])

    made = Unknown().session()
    with pytest.raises(EmberletError, match="'count'"):
        made.step(ROW, ROW)
    made = Unknown().session(initial={"count": [5]})
    made.step(ROW, ROW)
    assert made.state("count").tolist() == [6]
    with pytest.raises(EmberletError, match="'past'"):
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
    with pytest.raises(EmberletError, match="'past'"):
        made.state("past")
    with pytest.raises(EmberletError, match=r"'x'.*'past', 'count'"):
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
    with pytest.raises(ShapeError, match=r"'past'.*axis 0.*\(\)"):
        session(initial={"past": 1.0}).step(ROW, ROW)
    rows = tensor([[0.0, 0.0]] * 3)
    with pytest.raises(ShapeError, match=r"hold 3.*2"):
        session(initial={"past": rows}, capacity=2).step(ROW, ROW)
    made = session(initial={"past": rows}, capacity=4)
    made.step(ROW, ROW)
    assert made.length == 4
    with pytest.raises(ShapeError, match=r"hold 5.*4"):
        made.step(ROW, ROW)
    assert made.length == 4 and made.state("past").shape == (4, 2)
