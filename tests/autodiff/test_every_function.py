"""Gradients of every function and layer: the calls of tests/core/calls, against finite differences in float64.

A function that is new has a call there (tests/core/test_neighboring_calls.py), and needs a gradient or an entry here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import emberlet
import pytest
from emberlet.backend import set_default_backend
from emberlet.errors import EmberletError

from tools.paths import ROOT

from .calls import TOPICS, as_function, rows

# Calls whose gradient is not the slope that finite differences see, with the reason.
NO_SLOPE = {
    "rounds to fewer bits, which the gradient passes by": (
        "cast(V([1000.0", "cast(V([1.0, 3.0", "to_full_precision(X(2, dtype=\"float16\"))", "from_full_precision(",
        "quantize_linear(X(4), 0.001", "dequantize_linear(X(3, 2, dtype=\"int8\"), P(3), axis=0, dtype=\"float16\")",
    ),
    "cuts the gradient on purpose": ("detach(",),
    "steps from one number to the next": (
        "floor_divide(X(2, 3), X(3))", "trunc_divide(X(3), X(3))", "one_hot(V([1.0", "nextafter(", "max_roi_pool(",
        "tree_ensemble(",
    ),
    "lies on a kink": (
        "softmax_zero(", "clip(X(2, 2), X(2), 3)", "copysign(X(3), V([1.0, -1.0, -0.0]))",
    ),
    "is NaN": (
        "maximum(V([1.0, nan])", "sort(V([1.0, nan", "unique_values(V([2.0, nan", "nll_loss(X(1, 2), V([0]), None, 0)",
    ),
    "is computed in Python from values that are read back": ("probit(", "pairwise_coupling("),
}  # fmt: skip
_EXEMPT = tuple(start for starts in NO_SLOPE.values() for start in starts)


# Calls on a kink of the gradient: equal elements, or a difference at the bound.
NO_CURVATURE = (
    "maximum(X(2, 3), X(3))", "minimum(X(2, 3), X(3))", "hypot(X(3), X(3))", "nn.HuberLoss(0.5)(X(2, 3), P(2, 3)",
    "dynamic_quantize_linear(V([0.0, 0.0]))", "logsumexp(X(2, 3, dtype=\"float16\")",
)  # fmt: skip


def failures(topic: str, exempt: tuple[str, ...], check: Callable[[Any, Any], None]) -> list[str]:
    out = []
    for text in rows(topic):
        if text.startswith(exempt):
            continue
        try:
            f, args = as_function(text, "float64")
        except EmberletError:  # a call that is refused
            continue
        try:
            if any(a.dtype.is_float for a in args):
                check(f, args)
        except Exception as error:  # a failure names all that differ
            out.append(f"{text}: {type(error).__name__} {error}")
    return out


def wave(y: Any) -> Any:
    """Numbers in [-1, 1] of y's dtype and shape."""
    return y.backend.from_list([math.cos(1.7 * i + 0.3) for i in range(y.size)], y.dtype, y.shape)


def second(f: Callable[..., Any], args: list[Any]) -> None:
    """Check the gradient of f's gradient."""

    def gradient(*inputs: Any) -> list[Any]:
        found, pull = emberlet.vjp(f, *inputs)
        return [g for g in pull([wave(y) if y.dtype.is_float else y for y in found]) if g is not None]

    emberlet.check_grads(gradient, args, rtol=1e-3, atol=1e-4)


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    set_default_backend("numpy")
    yield
    set_default_backend(None)


@pytest.mark.parametrize("topic", TOPICS)
def test_gradients_are_the_slopes_that_finite_differences_see(topic: str) -> None:
    found = failures(topic, _EXEMPT, emberlet.check_grads)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)


@pytest.mark.parametrize("topic", TOPICS)
def test_gradients_of_gradients_are_too(topic: str) -> None:
    found = failures(topic, _EXEMPT + NO_CURVATURE, second)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)


# Functions whose results are floats without a gradient, although they take floats; docs/training.md names them.
NO_GRADIENT = {
    "do not depend on the elements": "detach random_like zeros_like",
    "step from one number to the next": "cast hardmax norm one_against_one one_hot tree_ensemble",
    "are computed in Python from values that are read back": "pairwise_coupling probit",
}


def test_the_functions_without_a_gradient_are_those_that_the_document_names() -> None:
    backend, found = emberlet.autodiff("numpy"), set()
    for text in [text for topic in TOPICS for text in rows(topic)]:
        try:
            f, args = as_function(text, "float64")
        except EmberletError:  # a call that is refused
            continue
        given = [backend.from_inner(a) for a in args]
        given = [x.require_grad() if x.dtype.is_float else x for x in given]
        results = [y for y in f(*given) if y.dtype.is_float and y.backend is backend] if given else []
        if any(x.dtype.is_float for x in given) and results and all(y.data.node is None for y in results):
            found.add(text.partition("(")[0])
    assert found == set(" ".join(NO_GRADIENT.values()).split())
    said = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert [name for name in found if f"`{name}`" not in said] == []


def test_no_exception_is_left_over() -> None:
    every = [text for topic in TOPICS for text in rows(topic)]
    assert not [start for start in _EXEMPT + NO_CURVATURE if not any(text.startswith(start) for text in every)]
