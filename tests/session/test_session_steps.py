"""Positions of sessions, engines that run their steps, what is rewound and to where, and helpers."""

from __future__ import annotations

import pytest
from emberlet import functional as F
from emberlet.errors import EmberletError, ShapeError
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
