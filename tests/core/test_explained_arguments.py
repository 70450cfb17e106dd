"""Whether a value fits a declared type, and how types and values are said, one by one."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes, nn
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import DTypeError, IndexingError, ShapeError
from emberlet.host.interface import wrong_arguments
from emberlet.host.interface.guarding import guarded
from emberlet.host.interface.wrong_arguments import _fits, _in_words, _kind, _misfit, explained, shown
from emberlet.host.numpy_backend import NumpyBackend
from support.rows import every

T = emberlet.asarray([1.0, 2.0], device="python")
NUMBER = emberlet.asarray(3, device="python")


class JsProxy:
    """Named as Pyodide's."""


class OfDlpack:
    def __dlpack__(self) -> None: ...


def declared(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


FITS: list[tuple[str, list[Any], list[Any]]] = [
    ("TensorLike", [T, 1, 1.5, True, np.zeros(2), OfDlpack()], [None, "a", [1], (1,), {}]),
    ("Tensor", [T], [1, np.zeros(2), None, [T]]),
    ("int", [1, True, np.int64(3), NUMBER], [1.0, "1", None, T, [1], np.array([1, 2])]),
    ("float", [1, 1.5, True, np.float32(2), NUMBER], ["1", "x", None, T, [1.0]]),
    ("bool", [True, 0, 1, np.True_], [None, "a", 1.5, [True]]),
    ("str", ["a", ""], [1, None, b"a", ["a"]]),
    ("slice", [slice(1)], [1, None]),
    ("DType", ["float32", dtypes.float32, 7], [None]),
    ("Backend", [get_backend("python"), "numpy"], [None, 1]),
    ("Any", [None, 1, "a"], []),
    ("Unheard", [None, 1], []),
    ("None", [None], [0, False, ""]),
    ("int | None", [1, None], [1.5, "a"]),
    ("int | str | None", [1, None, "a"], [1.5, []]),
    ("Callable[[int], int]", [len, lambda x: x], [1, None]),
    ("Mapping[str, int]", [{}, {"a": 1}], [[], None, "a"]),
    ("Sequence[int]", [[], [1, 2], (1,), range(3), np.array([1, 2])],
     [1, "12", b"12", {1: 2}, [1.5], [1, None], NUMBER]),
    ("Sequence[Sequence[int]]", [[[1], (2, 3)], []], [[1], [[1.5]]]),
    ("tuple[int, str]", [(1, "a"), [1, "a"]], [(1,), (1, "a", 2), ("a", 1), 1]),
    ("Sequence[int] | int", [[1], 1], [None, [None]]),
]  # fmt: skip


@every(
    ("said", "value", "fits"),
    [(said, v, fits) for said, good, bad in FITS for values, fits in ((good, True), (bad, False)) for v in values],
)
def test_a_value_fits_its_declared_type(said: str, value: Any, fits: bool) -> None:
    assert _fits(value, declared(said)) is fits
    if said != "TensorLike":
        assert bool(_misfit(value, said, False)) is not fits


def test_only_the_first_thousand_elements_are_looked_at() -> None:
    assert _fits([1] * 1000 + [None], declared("Sequence[int]"))
    assert not _fits([1] * 999 + [None], declared("Sequence[int]"))
    assert shown([1] * 1000 + [T]).startswith("a list, [1, 1,")
    assert shown([1] * 999 + [T]).startswith("a list of 1, 1, 1, 1, …")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("int", "an int"), ("TensorLike", "a tensor"), ("float", "a number"), ("DType", "a dtype"), ("Any", "anything"),
        ("str", "a str"),
        ("int | None", "an int or None"), ("int | Sequence[int] | None", "an int, a list of ints or None"),
        ("Sequence[float]", "a list (a number each)"), ("Sequence[Sequence[int]]", "a list (a list of ints each)"),
        ("Sequence[int | None]", "a list (an int or None each)"), ("Callable[[int], int]", "a function"),
        ("Mapping[str, int]", "a dict"), ("tuple[int, str]", "a tuple[int, str]"), ("None", "None"),
    ],
)  # fmt: skip
def test_a_type_in_words(said: str, words: str) -> None:
    assert _in_words(declared(said)) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (T, "a tensor float32 (2,)"), (None, "None"), (True, "True"), (1.5, "1.5"), (-3, "-3"),
        ([T, 1], "a list of a tensor float32 (2,), 1"),
        ((T,) * 4, "a tuple of " + ", ".join(["a tensor float32 (2,)"] * 4)),
        ((T,) * 5, "a tuple of " + ", ".join(["a tensor float32 (2,)"] * 4) + ", …"),
        ([1, 2], "the list [1, 2]"), ("a", "the str 'a'"), ({"a": 1}, "the dict {'a': 1}"), ((), "the tuple ()"),
        ("a" * 58, f"the str '{'a' * 58}'"), ("a" * 59, f"a str, '{'a' * 39}…"),
        (dtypes.int8, f"the DType {dtypes.int8!r}"),
        (np.zeros(2), "a ndarray"), (JsProxy(), "a JsProxy"), ({1}, "a set"),
    ],
)  # fmt: skip
def test_a_value_in_a_few_words(value: Any, words: str) -> None:
    assert shown(value) == words


@pytest.mark.parametrize(
    ("value", "said", "strict", "misfit"),
    [
        (T, "TensorLike", True, ""), (1, "TensorLike", False, ""), (1, "TensorLike | None", True, ""),
        (1, "TensorLike", True, "is 1; it takes a tensor; emberlet.asarray(…) makes one"),
        (np.zeros(1), "TensorLike", True, "is a ndarray; it takes a tensor"),
        ([1], "TensorLike", False, "is the list [1]; it takes a tensor; emberlet.asarray(…) makes one"),
        ("a", "TensorLike", False, "is the str 'a'; it takes a tensor"),
        ([1], "TensorLike | None", False, "is the list [1]; it takes a tensor or None; emberlet.asarray(…) makes one"),
        (JsProxy(), "TensorLike", False, "is a JsProxy; it takes a tensor; emberlet.asarray(….to_py()) makes one"),
        (JsProxy(), "str", False, "is a JsProxy; it takes a str"),
        ([1], "str", False, "is the list [1]; it takes a str"),
    ],
)  # fmt: skip
def test_a_misfit_says_what_is_taken_and_how_to_make_it(value: Any, said: str, strict: bool, misfit: str) -> None:
    assert _misfit(value, said, strict) == misfit


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TypeError(), DTypeError), (AttributeError(), DTypeError), (IndexError(), IndexingError),
        (KeyError(), ShapeError), (ValueError(), ShapeError), (ZeroDivisionError(), ShapeError),
    ],
)  # fmt: skip
def test_an_error_becomes_one_of_the_family(error: Exception, kind: type[Exception]) -> None:
    assert _kind(error) is kind


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


def test_arguments_are_named_as_the_caller_wrote_them() -> None:
    import inspect

    def function(a: Any, *arrays: Any, key: Any = None, **rest: Any) -> None: ...

    signature = inspect.signature(function)
    given = wrong_arguments._given("function", signature, (1, 2, 3), {"key": 4, "other": 5})
    assert list(given) == [
        ("a", 1, "a"), ("arrays[0]", 2, "arrays"), ("arrays[1]", 3, "arrays"), ("key", 4, "key"), ("other", 5, "rest")
    ]  # fmt: skip


def test_a_program_without_its_source_has_no_declarations() -> None:
    assert wrong_arguments._declarations("emberlet.no.such.module") == {}


@pytest.mark.parametrize("looked_up", [False, True])
def test_errors_inside_of_layers_do_not_depend_on_which_functions_were_looked_up_before(
    looked_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x = nn.Rnn(3, 2, backend="numpy"), emberlet.ones((1, 2, 3), device="numpy")
    monkeypatch.setattr("emberlet.nn.rnn.rnn", F.rnn if looked_up else F.rnn.__wrapped__)
    monkeypatch.setattr(NumpyBackend, "reshape", None)  # called by a function that the layer calls
    with pytest.raises(TypeError, match="not callable"):
        layer(x)
