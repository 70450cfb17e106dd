"""What sessions say of classes written by hand, and the names and shapes of what they are given."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import functional as F
from emberlet.errors import EmberletError
from emberlet.model import Model


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
