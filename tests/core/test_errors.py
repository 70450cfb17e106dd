"""Errors belong to emberlet's family on every backend, and also to Python's own class where the array API standard
names one."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import functional as F
from emberlet.errors import AxisError, DTypeError, EmberletError, IndexingError, ShapeError, UnsupportedError
from support.rows import every


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


CALLS = {
    "mask_fill": (lambda x: x.mask_fill(F.zeros((4,), dtype="bool"), 1), ShapeError),
    "mask_where": (lambda x: x.mask_where(F.zeros((2, 3), dtype="bool"), F.zeros((5,))), ShapeError),
    "layer_norm weight": (lambda x: F.layer_norm(x, F.ones((2,))), ShapeError),
    "layer_norm bias": (lambda x: F.layer_norm(x, F.ones((3,)), F.ones((4, 3))), ShapeError),
    "rms_norm weight": (lambda x: F.rms_norm(x, F.ones((4,))), ShapeError),
    "group_norm weight": (lambda x: F.group_norm(x, 1, F.ones((4,))), ShapeError),
    "group_norm groups": (lambda x: F.group_norm(x, 2), ShapeError),
    "batch_norm mean": (lambda x: F.batch_norm(x, F.zeros((2,)), F.ones((3,))), ShapeError),
    "batch_norm weight": (lambda x: F.batch_norm(x, F.zeros((3,)), F.ones((3,)), F.ones((1,))), ShapeError),
    "cross_entropy target": (lambda x: F.cross_entropy(x, F.asarray([0, 3])), IndexingError),
    "cross_entropy below": (lambda x: F.cross_entropy(x, F.asarray([0, -1])), IndexingError),
    "cross_entropy shape": (lambda x: F.cross_entropy(x, F.asarray([0, 1, 2])), ShapeError),
    "cross_entropy weight": (lambda x: F.cross_entropy(x, F.asarray([0, 1]), F.ones((2,))), ShapeError),
    "nll_loss target": (lambda x: F.nll_loss(x, F.asarray([7, 1])), IndexingError),
    "nll_loss ignored": (lambda x: F.nll_loss(x, F.asarray([7, -100]), ignore_index=-100), IndexingError),
    "embedding": (lambda x: F.embedding(F.asarray([2]), x), IndexingError),
    "take": (lambda x: F.take(x, F.asarray([3]), axis=1), IndexingError),
    "take_along_axis": (lambda x: F.take_along_axis(x, F.asarray([[3], [0]]), axis=1), IndexingError),
    "gather": (lambda x: F.gather(x, 1, F.asarray([[-4]])), IndexingError),
    "scatter": (lambda x: F.scatter(x, 1, F.asarray([[3]]), F.ones((1, 1))), IndexingError),
    "where": (lambda x: F.where(F.zeros((4,), dtype="bool"), x, x), ShapeError),
    "reshape": (lambda x: x.reshape((4, 2)), ShapeError),
    "concat": (lambda x: F.concat([x, F.zeros((2, 3, 1))]), ShapeError),
    "stack": (lambda x: F.stack([x, F.zeros((3, 2))]), ShapeError),
    "matmul": (lambda x: x @ x, ShapeError),
    "add": (lambda x: x + F.zeros((4,)), ShapeError),
    "permute_dims": (lambda x: F.permute_dims(x, (0, 0)), ShapeError),
    "roll": (lambda x: F.roll(x, 1, 2), AxisError),
    "sort": (lambda x: F.sort(x, 2), AxisError),
    "softmax": (lambda x: F.softmax(x, 2), AxisError),
    "cumulative_sum": (lambda x: F.cumulative_sum(x, axis=-3), AxisError),
    "bitwise_and": (lambda x: F.bitwise_and(x, x), DTypeError),
    "asarray text": (lambda x: F.asarray("1.5", dtype="float32"), DTypeError),
    "asarray text as integer": (lambda x: F.asarray("a", dtype="int64"), DTypeError),
    "asarray texts": (lambda x: F.asarray([["1.5"]], dtype="float32"), DTypeError),
    "asarray texts as bools": (lambda x: F.asarray(["a"], dtype="bool"), DTypeError),
    "quantize mode": (lambda x: x.quantize("wavelet"), UnsupportedError),
    "quantize dtype": (lambda x: x.quantize("float32"), DTypeError),
}


@every("name", CALLS)
def test_a_bad_call_says_what_is_wrong(backend: Any, name: str) -> None:
    call, kind = CALLS[name]
    with pytest.raises(EmberletError) as caught:
        call(F.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert type(caught.value) is kind
    assert len(str(caught.value)) > 15


def test_a_target_that_does_not_count_may_be_anything(backend: Any) -> None:
    x = F.asarray([[0.0, 1.0], [2.0, 0.5]])
    loss = F.cross_entropy(x, F.asarray([1, -100]), ignore_index=-100)
    assert abs(loss.item() - F.cross_entropy(x[:1], F.asarray([1])).item()) < 1e-6
