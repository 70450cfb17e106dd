"""Open axes of a model's arguments: their names, the lengths that fit, and the sizes that a plan is made for."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from emberlet.backend.axes import Axes, argument_names, named, of_model
from emberlet.errors import BackendError, ShapeError
from emberlet.sizes.scope import HIGHEST

PARSED = {
    "past": (0, {"past": 1}),
    "past + new": (0, {"past": 1, "new": 1}),
    "2 * length + 1": (1, {"length": 2}),
    "length * 2 * 3 + 4 * 5 + 6": (26, {"length": 6}),
    "n + n + 2 * n": (0, {"n": 4}),
    "cache.0_k": (0, {"cache.0_k": 1}),
    "_x1": (0, {"_x1": 1}),
    "12": (12, {}),
    "3 * 4": (12, {}),
    "0 * n": (0, {"0 * n": 1}),
    "past - new": (0, {"past - new": 1}),
    "a * b": (0, {"a * b": 1}),
    "a+b": (0, {"a+b": 1}),
    "ceil(n / 2) + 1": (0, {"ceil(n / 2) + 1": 1}),
    "2x": (0, {"2x": 1}),
    "": (0, {"": 1}),
}


@pytest.mark.parametrize("text", PARSED)
def test_the_length_of_an_axis_is_a_sum_of_symbols_or_a_symbol_of_its_own(text: str) -> None:
    axes = Axes([(text, 7)], {})
    assert axes.templates == [(PARSED[text], (7, {}))]
    assert axes.symbols == list(PARSED[text][1])


# Templates, shapes, and the numbers of the symbols; None where they do not fit.
NUMBERS: list[tuple[list[Any], list[Any], Any]] = [
    ([("n", 4)], [(9, 4)], {"n": 9}),
    ([("n", 4)], [(9, 5)], None),
    ([("n", 4)], [(9,)], None),
    ([("n", 4)], [(9, 4, 1)], None),
    ([("n", "n")], [(3, 3)], {"n": 3}),
    ([("n", "n")], [(3, 4)], None),
    ([("n",)], [(0,)], {"n": 0}),
    ([("2 * n + 1",)], [(9,)], {"n": 4}),
    ([("2 * n + 1",)], [(8,)], None),
    ([("2 * n + 1",)], [(1,)], {"n": 0}),
    ([("n + 3",)], [(2,)], None),
    ([("past + new",), ("new",)], [(9,), (2,)], {"past": 7, "new": 2}),
    ([("past + new",), ("new",)], [(1,), (2,)], None),
    ([("past + 2 * new + 1",), ("past", "new")], [(8,), (3, 2)], {"past": 3, "new": 2}),
    ([("past + 2 * new + 1",), ("past", "new")], [(9,), (3, 2)], None),
    ([("a + b",)], [(9,)], None),
    ([("a + b",), ("b + c",), ("c",)], [(9,), (5,), (2,)], {"a": 6, "b": 3, "c": 2}),
    ([None, ("n",)], [(1, 2), (5,)], {"n": 5}),
    ([("n",), ("m",)], [(5,), None], None),  # nothing tells m
    ([("n", 2), ("n", 2)], [(5, 2), (5, 2)], {"n": 5}),
    ([("n", 2), ("n", 2)], [(5, 2), (6, 2)], None),
    ([("n", 2), ("m", 2), ("n", 2)], [(5, 2), (3, 2), (4, 2)], None),
    ([], [], {}),
]


@pytest.mark.parametrize(("templates", "shapes", "numbers"), NUMBERS)
def test_the_numbers_of_the_symbols_follow_from_the_shapes(templates: Any, shapes: Any, numbers: Any) -> None:
    assert Axes(templates, {}).numbers(shapes) == numbers


def test_limits_say_which_lengths_a_plan_serves() -> None:
    axes = Axes([("n", "m", "free")], {"n": (2, 10, 10, 1), "m": (8, 64, 64, 8)})
    assert [v for v in range(13) if axes.within("n", v)] == list(range(2, 11))
    assert [v for v in range(80) if axes.within("m", v)] == list(range(8, 65, 8))
    assert [axes.within("free", v) for v in (0, 1, HIGHEST, HIGHEST + 1)] == [False, True, True, False]
    assert [axes.capacity("n", v) for v in (3, 10, 12)] == [10, 10, 12]
    assert axes.capacity("free", 7) == 7
    with pytest.raises(BackendError, match=r"'k'.*'n', 'm', 'free'"):
        Axes([("n", "m", "free")], {"k": (1, 2, 2, 1)})
    with pytest.raises(BackendError, match="no open axis 'k'; it has none"):
        Axes([(3, 4)], {"k": (1, 2, 2, 1)})


def _example(dims: Any, inputs: Any = (), shapes: Any = ((2, 8), (4,), None)) -> Axes:
    return of_model(SimpleNamespace(INPUTS=inputs), ["x", "y", "flag"], shapes, dims)


def test_a_models_declared_inputs_name_its_open_axes() -> None:
    inputs = (("x", "float32", ("batch", None)), ("y", "float32", (4,)), ("flag", "bool", None))
    axes = _example(None, inputs)
    assert axes.templates == [((0, {"batch": 1}), (0, {"x[1]": 1})), ((4, {}),), None]
    assert axes.limits == {} and axes.symbols == ["batch", "x[1]"]
    assert _example(None, (("x", "float32", ("batch",)),)).templates[0] == ((2, {}), (8, {}))
    assert _example(None, (("x", "float32", None), ("y", "float32", (7,)))).templates[1] == ((4, {}),)
    assert of_model(SimpleNamespace(), ["x"], [(3,)], None).templates == [((3, {}),)]
    many = tuple((f"i{i}", "float32", ("n",)) for i in range(5))
    assert len(of_model(SimpleNamespace(INPUTS=many), ["a"], [(3,)], None).templates) == 1


LIMITS = {
    "512": (512, (1, 512, 512, 1)),
    "None": (None, (1, HIGHEST, None, 1)),
    "(3, 9)": ((3, 9), (3, 9, 9, 1)),
    "[3, 9]": ([3, 9], (3, 9, 9, 1)),
    "(0, 5)": ((0, 5), (0, 5, 5, 1)),
    "(1, 1)": ((1, 1), (1, 1, 1, 1)),
    "(4, None)": ((4, None), (4, HIGHEST, None, 1)),
    "(0, None)": ((0, None), (0, HIGHEST, None, 1)),
    "range(16, 65, 16)": (range(16, 65, 16), (16, 64, 64, 16)),
    "range(3, 20, 8)": (range(3, 20, 8), (3, 19, 19, 8)),
    "range(5, 6)": (range(5, 6), (5, 5, 5, 1)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_of_an_open_axis(name: str) -> None:
    given, expected = LIMITS[name]
    assert _example({"x": {0: ("n", given)}}).limits == {"n": expected}
    assert _example({"batch": given}, (("x", "float32", ("batch", 8)),)).limits == {"batch": expected}


def test_axes_are_opened_by_number_from_either_end() -> None:
    axes = _example({"x": {0: "n", -1: "m"}, "y": {-1: ("n", 9)}})
    assert axes.templates == [((0, {"n": 1}), (0, {"m": 1})), ((0, {"n": 1}),), None]
    assert named({"x": {0: "2 * n + m", 1: ("k", 4)}, "length": 8, "z": {0: "n"}}) == ["n", "m", "k", "length"]
    assert named(None) == []


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no dict": (7, BackendError, 'dims is a dict such as {"length": 512}, found 7'),
    "a number for a name": ({3: 4}, BackendError, "dims must name axes or inputs, found 3"),
    "an axis that is no number": ({"x": {"a": "n"}}, BackendError, "write an open axis of 'x' as"),
    "a label that is no text": ({"x": {0: 5}}, BackendError, "write an open axis of 'x' as"),
    "an empty label": ({"x": {0: ""}}, BackendError, "write an open axis of 'x' as"),
    "three in a pair": ({"x": {0: ("n", 1, 2)}}, BackendError, "write an open axis of 'x' as"),
    "another input": ({"z": {0: "n"}}, BackendError, "no input is named 'z'; the inputs are ['x', 'y', 'flag']"),
    "an input that is no tensor": ({"flag": {0: "n"}}, BackendError, "no input is named 'flag'"),
    "an axis too far": ({"x": {2: "n"}}, ShapeError, "'x' has no axis 2; its shape is (2, 8)"),
    "an axis too far back": ({"x": {-3: "n"}}, ShapeError, "'x' has no axis -3; its shape is (2, 8)"),
    "an unknown axis": ({"rows": 8}, BackendError, "the model has no open axis 'rows'"),
    "an empty range": ({"x": {0: ("n", range(5, 5))}}, BackendError, "the open axis 'n' has no length"),
    "a falling range": ({"x": {0: ("n", range(9, 1, -1))}}, BackendError, "the open axis 'n' has no length"),
    "a text": ({"x": {0: ("n", "many")}}, BackendError, "the limit of the open axis 'n' is a number"),
    "one in a pair": ({"x": {0: ("n", (1,))}}, BackendError, "the limit of the open axis 'n' is a number"),
    "a fraction": ({"x": {0: ("n", 2.5)}}, BackendError, "the limit of the open axis 'n' is a number"),
    "a fraction below": ({"x": {0: ("n", (0.5, 3))}}, BackendError, "the limit of the open axis 'n' is"),
    "a fraction above": ({"x": {0: ("n", (1, 3.5))}}, BackendError, "the limit of the open axis 'n' is"),
    "upside down": ({"x": {0: ("n", (9, 3))}}, BackendError, "cannot have a length of 9 to 3"),
    "negative": ({"x": {0: ("n", (-1, 3))}}, BackendError, "cannot have a length of -1 to 3"),
    "nothing": ({"x": {0: ("n", 0)}}, BackendError, "cannot have a length of 1 to 0"),
    "only nothing": ({"x": {0: ("n", (0, 0))}}, BackendError, "cannot have a length of 0 to 0"),
    "negative without end": ({"x": {0: ("n", (-1, None))}}, BackendError, "the limit of the open axis"),
    "too long without end": ({"x": {0: ("n", (HIGHEST + 1, None))}}, BackendError, "the limit of the open axis"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dims_that_no_axis_has_are_refused(name: str) -> None:
    dims, kind, words = REFUSED[name]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        _example(dims)
    assert type(caught.value) is kind


def test_the_arguments_of_a_function_have_its_names() -> None:
    class Layer:
        def forward(self, x: Any, scale: Any) -> None: ...

    class Cached:
        INPUTS = (("x", "float32", (1,)), ("past.0.key", "float32", (1,)), ("past-1", "float32", (1,)))

        def forward(self, x: Any, *past: Any) -> None: ...

    assert argument_names(Layer(), 2) == ["x", "scale"]
    assert argument_names(Layer(), 1) == ["x"]
    assert argument_names(Layer(), 4) == ["x", "scale", "input2", "input3"]
    assert argument_names(Cached(), 4) == ["x", "past_0_key", "past_1", "input3"]
    assert argument_names(lambda a, b: a, 2) == ["a", "b"]
    assert argument_names(lambda *a: a, 2) == ["input0", "input1"]
    assert argument_names(max, 2) == ["input0", "input1"]

    def late(a: Any, *, key: Any = None) -> Any:
        inside = a
        return inside

    assert argument_names(late, 2) == ["a", "input1"]
