"""A graph that differs in one place from a pass's pattern still gives the results of no passes at all.

Each pattern is changed in one place at a time in the ways of `support.near_misses`, of which a run takes one of
SHARE parts, another one each time: whichever condition of a pass the change violates, the result must stay. Changes
that make a model invalid are skipped, but not all of a kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen.passes import run_passes
from emberlet.codegen.reader import read_model
from emberlet.errors import EmberletError
from onnx import helper, numpy_helper
from support import near_misses
from support.draws import draw, share
from support.more_pass_patterns import MORE_PATTERNS
from support.onnx_models import generated, parse
from support.pass_patterns import PATTERNS as FIRST_PATTERNS
from support.pass_patterns import floats
from support.rows import every

PATTERNS = {**FIRST_PATTERNS, **MORE_PATTERNS}
SHARE = 24


def left(model: onnx.ModelProto) -> list[str]:
    return [n.op() for n in run_passes(read_model(model).graph)[0].nodes]


def added(model: onnx.ModelProto, arrays: list[np.ndarray], before: onnx.ModelProto) -> list[np.ndarray]:
    """The arrays of a model's inputs: those of the model it was made from, and of constants that became inputs."""
    held = {t.name: numpy_helper.to_array(t) for t in before.graph.initializer}
    more = [held[i.name] for i in model.graph.input if i.name in held]
    types = [helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in model.graph.input]
    return [a.astype(t) for a, t in zip([*arrays, *more], types, strict=True)]


def same(label: str, model: onnx.ModelProto, inputs: list[np.ndarray]) -> bool:
    """Assert that all passes leave the outputs as they were; False where the model is not valid."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = generated(model, inputs, passes=[])
        except EmberletError:
            return False
        got = generated(model, inputs)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), label
        if w.dtype.kind == "f":  # a query that sees no key: NaN in parts, 0 in attention; the ends of float32 overflow
            g = np.where((np.isnan(w) & (g == 0)) | (np.abs(w) > 1e37), w, g)
        np.testing.assert_allclose(g, w, atol=2e-5, rtol=2e-4, err_msg=label)
    return True


@every("name", PATTERNS)
def test_a_pattern_is_found_whatever_the_order_of_operands(name: str) -> None:
    pattern = PATTERNS[name]
    model, arrays = pattern.model(), pattern.arrays()
    for label, made in (("as it is", model), *near_misses.turned(model, True)):
        assert sorted(left(made)) == sorted(pattern.becomes.split()), label
        assert same(label, made, arrays), label


def unchanged(changes: Callable[[str, onnx.ModelProto], Iterable[tuple[str, onnx.ModelProto]]], what: str) -> None:
    """Assert that a share of the changes of each pattern leave the outputs as they were, and that some are valid."""
    step = share(SHARE)

    def tried(name: str, first: int, step: int) -> Iterator[bool]:
        pattern = PATTERNS[name]
        model, arrays = pattern.model(), pattern.arrays()
        return (same(label, m, added(m, arrays, model)) for label, m in islice(changes(name, model), first, None, step))

    @every("name", PATTERNS)
    def test(name: str) -> None:
        valid.extend(tried(name, draw(what, name).randrange(step), step))

    valid: list[bool] = []
    test()
    assert any(valid) or any(any(tried(name, 0, 1)) for name in PATTERNS)  # a share may hold none


@pytest.mark.parametrize("kind", near_misses.KINDS)
def test_near_misses_of_a_pattern_compute_the_same_as_before(kind: str) -> None:
    of_kind: Any = near_misses.KINDS[kind]
    unchanged(lambda _, model: of_kind(model), kind)


def test_permutations_of_an_input_of_unknown_rank_are_joined() -> None:
    model = parse("""g (float[2, 3, 4] x) => (float[4, 2, 3] y) {
        a = Transpose<perm = [1, 2, 0]>(x)  y = Transpose<perm = [1, 2, 0]>(a) }""")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert left(model) == ["Transpose"]
    assert same("", model, [floats(2, 3, 4)])


def test_two_changes_of_a_pattern_compute_the_same_as_before() -> None:
    unchanged(lambda name, model: near_misses.drawn_pairs(model, 12, sum(map(ord, name))), "pairs")
