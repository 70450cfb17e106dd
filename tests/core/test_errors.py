"""Errors belong to emberlet's family on every backend, and also to Python's own class where the array API standard
names one."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import functional as F
from emberlet.errors import AxisError


def test_errors_are_of_the_kind_that_the_standard_names(backend: Any) -> None:
    x = F.zeros((2, 3))
    with pytest.raises(ValueError, match="only 1 can be squeezed"):
        F.squeeze(x, 0)
    for axis in (3, -4):
        with pytest.raises(IndexError, match="axis"):
            F.expand_dims(x, axis)
    with pytest.raises(AxisError):
        F.sum(x, 2)
    with pytest.raises(IndexError, match="outside axis 0"):
        x[2]


def test_micropython_has_the_same_family(unix_port: Any) -> None:
    script = """
import emberlet
from emberlet import errors
for build, kind in ((lambda: emberlet.zeros((2, 3)).sum(5), errors.AxisError), (lambda: emberlet.zeros((2,))[3],
        errors.IndexingError), (lambda: emberlet.zeros((2, 3)).squeeze(0), errors.ShapeError)):
    try:
        build()
    except emberlet.EmberletError as error:
        print(type(error) is kind)
"""
    assert unix_port.run(script, heap="1M").check().stdout.split() == ["True"] * 3


def test_micropython_tells_which_input_a_models_control_flow_depends_on(unix_port: Any) -> None:
    script = """
from emberlet.backend.tracing import ValueNeeded
error = ValueNeeded("it depends on input 1", (1,))
print(error, error.inputs)
"""
    assert unix_port.run(script, heap="1M").check().stdout.strip() == "it depends on input 1 (1,)"


def test_a_target_that_does_not_count_may_be_anything(backend: Any) -> None:
    x = F.asarray([[0.0, 1.0], [2.0, 0.5]])
    loss = F.cross_entropy(x, F.asarray([1, -100]), ignore_index=-100)
    assert abs(loss.item() - F.cross_entropy(x[:1], F.asarray([1])).item()) < 1e-6
