"""States in arrays with room to grow, and what sessions say of classes written by hand."""

from __future__ import annotations

from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import BackendError, EmberletError
from emberlet.model import Model
from emberlet.session.inputs import int_or_none, shape_of
from emberlet.session.room import LEAST, Growing, Room, copied, shares


@pytest.fixture(params=["numpy", "python"])
def home(request: pytest.FixtureRequest) -> Any:
    return get_backend(request.param)


def rows(home: Any, *numbers: int) -> Any:
    return F.asarray(np.array([[[n, n + 0.5]] for n in numbers], np.float32).reshape(1, len(numbers), 2), backend=home)


def test_a_room_begins_with_its_state_and_has_space(home: Any) -> None:
    x = rows(home, 1, 2)
    assert [Room.of(x, 1, capacity).length for capacity in (None, 5, 40)] == [LEAST, 5, 40]
    assert Room.of(rows(home, *range(LEAST)), 1, None).length == 2 * LEAST
    room = Room(x, 1, 5)
    assert (room.array.shape, room.array.dtype, room.axis, room.length) == ((1, 5, 2), x.dtype, 1, 5)
    assert room.view(2).tolist() == x.tolist() and room.view(2).shape == (1, 2, 2)
    assert shares(room.view(1), room.array) and not shares(room.array, x) and shares(x, x)
    assert (
        not shares(x, 3)
        and not shares(3, x)
        and not shares(x, F.asarray([1.0], backend="python" if home.name == "numpy" else "numpy"))
    )
    first = Room(F.permute_dims(x, (1, 0, 2)), 0, 4)
    assert first.view(2).tolist() == [[[1, 1.5]], [[2, 2.5]]]
    assert Room.of(F.asarray(["a"], backend=home), 0, 4) is None
    assert Room(rows(home), 1, 3).view(0).shape == (1, 0, 2)


def test_appending_writes_behind_the_state(home: Any) -> None:
    room = Room(rows(home, 1, 2), 1, 6)
    past = Growing(room, 2, None)
    found = F.concat([past, rows(home, 3), rows(home, 4, 5)], axis=1)
    assert found.tolist() == rows(home, 1, 2, 3, 4, 5).tolist() and found is past.grown
    assert past.room is room and shares(found, room.array) and past.tolist() == rows(home, 1, 2).tolist()
    again = F.concat([past, rows(home, 9)], axis=1)  # the place behind it is taken
    assert again.tolist() == rows(home, 1, 2, 9).tolist() and found.tolist() == rows(home, 1, 2, 3, 4, 5).tolist()
    other = Growing(room, 2, None)
    assert F.concat([other, other], axis=0).shape == (2, 2, 2) and other.grown is None
    assert F.concat([rows(home, 0), other], axis=1).tolist() == rows(home, 0, 1, 2).tolist() and other.grown is None


def test_a_room_that_is_full_doubles_unless_a_capacity_forbids_it(home: Any) -> None:
    room = Room(rows(home, 1, 2), 1, 3)
    exact = Growing(room, 2, None)
    assert F.concat([exact, rows(home, 3)], axis=1).shape == (1, 3, 2) and exact.room is room
    past = Growing(room, 3, None)
    assert F.concat([past, rows(home, 4)], axis=1).tolist() == rows(home, 1, 2, 3, 4).tolist()
    assert past.room is not room and past.room.length == 8
    limited = Growing(room, 3, 3)
    assert F.concat([limited, rows(home, 4)], axis=1).tolist() == rows(home, 1, 2, 3, 4).tolist()
    assert limited.grown is None and limited.room is room


def test_who_may_write_behind_a_state(home: Any) -> None:
    room, one, two = Room(rows(home, 1, 2), 1, 6), object(), object()
    assert not room.open(one, 2)
    room.belong(one)
    assert room.open(one, 2) and room.open(one, 0) and not room.open(two, 2)
    room.keep(2)
    room.keep(1)
    assert room.open(one, 2) and room.open(one, 3) and not room.open(one, 1)


class Counter(Model):
    """A number of positions, and the texts of all of them."""

    STATE = ((1, 1, "replace", None), (2, 2, "append", 0))

    def forward(self, x: Any, count: Any, seen: Any) -> Any:
        return x * 2, count + 1, F.concat([seen, x])


def test_a_class_without_names_numbers_its_states() -> None:
    session = Counter().session(initial={"count": 0, "seen": [[7.0]]}, capacity=9)
    assert repr(session) == "Session(Counter, length 0 of 9, states count, seen)"
    assert session.step(F.asarray([[1.0]])).tolist() == [[2.0]]
    assert repr(session) == "Session(Counter, length 2 of 9, states count, seen)"
    assert session.state("count").item() == 1 and session.state("seen").tolist() == [[7.0], [1.0]]
    assert repr(Counter().session(initial={"count": 0, "seen": [[7.0]]})).startswith(
        "Session(Counter, length 0, states"
    )
    with pytest.raises(EmberletError, match="STATE names an unknown output 'sum'; use its number"):
        Counter().session(state=((1, "sum", "replace", None),))
    with pytest.raises(EmberletError, match="'seen'"):
        Counter().session(state=((2, 2, "append", -1),))
    with pytest.raises(EmberletError, match=r"output 5.*returned 3"):
        Counter().session(state=((1, 5, "replace", None),), initial={"count": 0}).step(
            F.asarray([[1.0]]), F.asarray([[2.0]])
        )


class Held(Model):
    """A state that a step returns and leaves as it is."""

    STATE = ((1, 1, "replace", None),)

    def forward(self, x: Any, kept: Any) -> Any:
        return x + kept, kept


@pytest.mark.parametrize("backend", ["python", "numpy", "wasm", "native", "wgpu"])
def test_an_initial_state_stays_although_the_callers_tensor_is_assigned_to(backend: str) -> None:
    try:
        given = F.asarray([[7.0]], backend=backend)
    except BackendError as error:
        pytest.skip(str(error))
    session = Held().session(initial={"kept": given})
    given[...] = 113
    assert session.step(F.asarray([[1.0]], backend=backend)).tolist() == [[8.0]]


class Named(Model):
    """Inputs whose names are no identifiers, and a state of unknown length."""

    INPUTS = (("x.in", "float32", ("n", 2)), ("state.0", "float32", (None, 2)))
    OUTPUTS = (("y", "float32", ("n", 2)), ("state.1", "float32", (None, 2)))
    STATE = (("state.0", "state.1", "replace"),)

    def forward(self, x_in: Any, state_0: Any) -> Any:
        return x_in + state_0, state_0 + 1


def test_inputs_may_be_given_by_the_names_of_parameters() -> None:
    session = Named().session()
    assert session.step(x_in=[[1.0, 2.0]]).tolist() == [[1.0, 2.0]]
    assert session.step(**{"x.in": [[1.0, 2.0]]}).tolist() == [[2.0, 3.0]]
    assert session.state("state.0").tolist() == session.state("state.1").tolist() == [[2.0, 2.0]]
    with pytest.raises(EmberletError, match=r"'x\.in'"):
        session.step([[1.0, 2.0]], x_in=[[1.0, 2.0]])
    with pytest.raises(EmberletError, match=r"'state\.0'"):
        session.step([[1.0, 2.0]], state_0=[[1.0, 2.0]])
    assert session.length == 2 and session.attention_mask(1, 2).shape == (2, 3)


def test_numbers_and_shapes_of_what_is_given() -> None:
    assert [int_or_none(n) for n in (3, np.int8(4), True, 2.0, "a", None, np.array([1, 2]), np.array(5))] == [
        3, 4, None, None, None, None, None, 5
    ]  # fmt: skip
    assert shape_of([[1, 2, 3], [4, 5, 6]]) == (2, 3) and shape_of(np.zeros((4, 0))) == (4, 0) and shape_of(3) == ()
    assert shape_of([]) == (0,) and shape_of(None) is None and shape_of(([],)) == (1, 0)


def test_a_copy_has_memory_of_its_own(home: Any) -> None:
    for x in (rows(home, 1, 2), F.asarray(["a", "b"], backend=home)):
        y = copied(x)
        assert y.tolist() == x.tolist() and y.dtype is x.dtype and not shares(x, y)
        y[...] = "c" if y.dtype is emberlet.string else 9.0
        assert x.tolist() != y.tolist()
