"""Which errors are explained by the arguments of a call, and which are kept as they are."""

from __future__ import annotations

from functools import partial

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import DTypeError, ShapeError
from emberlet.host.interface import wrong_arguments
from emberlet.host.interface.guarding import guarded
from emberlet.host.interface.wrong_arguments import explained
from emberlet.host.numpy_backend import NumpyBackend

T = emberlet.asarray([1.0, 2.0], device="python")


def raised(error: Exception) -> Exception:
    """The error as raised by code of the library."""
    exec(compile("def fail(e):\n    raise e\n", "x", "exec"), space := {"__name__": "emberlet.made"})
    try:
        partial(space["fail"], error)()
    except Exception as found:
        found.__traceback__ = found.__traceback__.tb_next  # type: ignore[union-attr]
        return found
    raise AssertionError


def test_errors_of_other_kinds_and_of_foreign_code_are_kept() -> None:
    call = F.softmax.__wrapped__ if hasattr(F.softmax, "__wrapped__") else F.softmax
    assert explained(call, (T,), {}, raised(MemoryError())) is None
    assert explained(call, (T,), {}, raised(OSError())) is None
    assert explained(call, (T,), {}, raised(ShapeError("x"))) is None  # its own message is better
    try:
        raise ValueError("of the caller")
    except ValueError as error:
        assert explained(call, (T,), {}, error) is None
    found = explained(call, (T,), {}, raised(ValueError("bad")))
    assert type(found) is ShapeError
    assert str(found) == "softmax cannot compute this (ValueError: bad): x is a tensor float32 (2,)"
    found = explained(call, (T, 1, 2, 3, 4), {}, raised(TypeError("bad")))
    assert type(found) is DTypeError and str(found).startswith(
        "softmax: too many positional arguments; it is called as"
    )
    found = explained(call, ("a",), {}, raised(ValueError("bad")))
    assert str(found) == "softmax: x is the str 'a'; it takes a tensor"
    found = explained(call, (1.5,), {}, raised(TypeError("bad")))
    assert str(found) == "softmax: x is 1.5; it takes a tensor; emberlet.asarray(…) makes one"
    found = explained(call, (1.5,), {}, raised(ValueError("bad")))
    assert str(found) == "softmax cannot compute this (ValueError: bad): x is 1.5"
    found = explained(call, ("a",), {}, raised(DTypeError("own")))
    assert str(found) == "softmax: x is the str 'a'; it takes a tensor"
    assert explained(call, ([1.0],), {}, raised(DTypeError("own"))) is None
    assert explained(call, (T,), {"axis": "a"}, raised(ShapeError("own"))) is None


def test_a_lack_of_memory_is_not_explained_which_would_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(x: object) -> object:
        raise MemoryError

    asked: list[object] = []
    monkeypatch.setattr(wrong_arguments, "explained", lambda *given: asked.append(given))
    with pytest.raises(MemoryError):
        guarded(full)(np.int64(1))
    assert not asked


@pytest.mark.parametrize("looked_up", [False, True])
def test_errors_inside_of_layers_do_not_depend_on_which_functions_were_looked_up_before(
    looked_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x = nn.Rnn(3, 2, backend="numpy"), emberlet.ones((1, 2, 3), device="numpy")
    monkeypatch.setattr("emberlet.nn.rnn.rnn", F.rnn if looked_up else F.rnn.__wrapped__)
    monkeypatch.setattr(NumpyBackend, "reshape", None)  # called by a function that the layer calls
    with pytest.raises(TypeError, match="not callable"):
        layer(x)
