"""The sizes and ranges of --dim: which axes it names, which it refuses, and which sizes are tried without it."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import dtypes
from emberlet.errors import DTypeError, EmberletError, ShapeError
from emberlet.host.cli.model import Input, Loaded
from emberlet.host.cli.sizing import TRIED, fitted, free_names, ranges, sized, sizes, unknown

IMAGE = Input("image", "image_", dtypes.float32, ("batch", 3, None, "width"))
CACHE = Input("cache", "past", dtypes.float32, ("batch", "past", None))
MASK = Input("mask", "mask", dtypes.int64, (None, "past + new + 2", 7))
ANY = Input("any", "any", None, None)
MODEL = Loaded(None, (IMAGE, CACHE, MASK, ANY), ("y",))
FIXED = Loaded(None, (Input("x", "x", dtypes.float32, (2, 3)),), ("y",))


def test_the_dimensions_of_unknown_size_have_names() -> None:
    names = ["batch", "image:2", "width", "past", "cache:2", "mask:0", "past + new + 2"]
    assert unknown(MODEL.inputs) == names
    # "past + new + 2" may be chosen freely, since no input has "new" alone.
    assert free_names(MODEL.inputs, {"width": 3}) == [n for n in names if n != "width"]
    alone = Input("n", "n", dtypes.int64, ("new",))
    assert "past + new + 2" not in free_names((*MODEL.inputs, alone), {})
    assert unknown(FIXED.inputs) == []


GIVEN: list[tuple[str, dict[str, int]]] = [
    ("batch=4", {"batch": 4}),
    ("image:0=4", {"batch": 4}),
    ("image_:0=4", {"batch": 4}),  # the parameter's name
    ("image:2=5", {"image:2": 5}),
    ("image_:2=5", {"image:2": 5}),
    ("past:2=5", {"cache:2": 5}),
    ("past:1=0", {"past": 0}),
    ("past=5", {"past": 5}),
    ("past + new + 2=9", {"past + new + 2": 9}),
    ("mask:1=9", {"past + new + 2": 9}),
]


@pytest.mark.parametrize(("pair", "found"), GIVEN)
def test_a_size_is_given_by_name_or_place(pair: str, found: dict[str, int]) -> None:
    assert sizes([pair], MODEL) == found


THERE = "there are batch, image:2, width, past, cache:2, mask:0, past \\+ new \\+ 2"
REFUSED = [
    ("batch", "expected NAME=NUMBER"),
    ("=4", "expected NAME=NUMBER"),
    ("batch=", "expected NAME=NUMBER"),
    ("batch=-1", "expected NAME=NUMBER"),
    ("batch=x", "expected NAME=NUMBER"),
    ("new=1", f"no input has a dimension 'new'; {THERE}"),
    ("image:1=3", "no input has a dimension"),  # of fixed size
    ("image:4=3", f"no input has a dimension 'image:4'; {THERE}"),
    ("image:-2=3", "no input has a dimension 'image:-2'"),
    ("other:0=3", "no input has a dimension 'other:0'"),
    ("any:0=3", "no input has a dimension 'any:0'"),
]


@pytest.mark.parametrize(("pair", "told"), REFUSED)
def test_a_size_that_names_nothing_is_refused(pair: str, told: str) -> None:
    with pytest.raises(EmberletError, match=told):
        sizes([pair], MODEL)


def test_a_model_without_open_dimensions_says_so() -> None:
    with pytest.raises(EmberletError, match="'n'; there are none"):
        sizes(["n=1"], FIXED)
    with pytest.raises(EmberletError, match="'n'; there are none"):
        ranges(["n=1..2"], FIXED)


RANGES: list[tuple[str, dict[str, Any]]] = [
    ("batch=1..9", {"batch": (1, 9)}),
    ("batch=3..3", {"batch": (3, 3)}),
    ("batch=0..3", {"batch": (0, 3)}),
    ("new=1..9", {"new": (1, 9)}),  # a part of a sum
    ("batch=4..16:4", {"batch": range(4, 17, 4)}),
    ("image:0=1..9", {"batch": (1, 9)}),
    ("image_:0=1..9", {"batch": (1, 9)}),
    ("image:2=1..9", {"image[2]": (1, 9)}),
    ("past:2=1..9:2", {"cache[2]": range(1, 10, 2)}),
]


@pytest.mark.parametrize(("pair", "found"), RANGES)
def test_a_range_is_given_by_name_or_place(pair: str, found: dict[str, Any]) -> None:
    assert ranges([pair, "width=3"], MODEL) == (found, ["width=3"])


RANGES_REFUSED = [
    ("batch=0..0", "expected NAME=LOWEST..HIGHEST, such as batch=1..512"),
    ("batch=4..3", "expected NAME=LOWEST"),
    ("batch=1..", "expected NAME=LOWEST"),
    ("batch=..3", "expected NAME=LOWEST"),
    ("batch=1..9:0", "with a step, batch=64..512:64"),
    ("batch=1..9:", "expected NAME=LOWEST"),
    ("=0..0", "such as length=1..512"),
    ("=1..9", "no input has a dimension named ''"),
    ("other=1..9", f"no input has a dimension named 'other'; there are {', '.join(sorted(unknown(MODEL.inputs)))}"),
    ("image:1=1..9", "the model fixes this dimension to 3"),
    ("mask:1=1..9", "this dimension is past + new + 2; give the ranges of its parts"),
    ("image:4=1..9", "no input has a dimension named 'image:4'"),
    ("image:x=1..9", "no input has a dimension named 'image:x'"),
    ("other:0=1..9", "no input has a dimension named 'other:0'"),
    ("any:0=1..9", "no input has a dimension named 'any:0'"),
]


@pytest.mark.parametrize(("pair", "told"), RANGES_REFUSED)
def test_an_invalid_range_is_refused(pair: str, told: str) -> None:
    with pytest.raises(EmberletError) as raised:
        ranges([pair], MODEL)
    assert told in str(raised.value)


def test_sizes_fill_a_shape() -> None:
    known = {"batch": 2, "past": 5, "new": 4, "cache:2": 6}
    assert sized(IMAGE, known) == (2, 3, 1, 1)
    assert sized(CACHE, known) == (2, 5, 6)
    assert sized(MASK, known) == (1, 5 + 4 + 2, 7)
    assert sized(MASK, {"past": 5}) == (1, 5 + 1 + 2, 7)
    assert sized(MASK, {"past": 5, "past + new + 2": 3}) == (1, 3, 7)
    assert sized(ANY, known) == ()


ONE = Input("x", "x", dtypes.float32, ("batch", "length"))


def _works(least: dict[str, int], tried: list[dict[str, int]]) -> Any:
    def attempt(known: dict[str, int]) -> int:
        tried.append(known)
        if any(known[n] < size for n, size in least.items()):
            raise ShapeError(f"refused {known}")
        return sum(known.values())

    return attempt


def test_the_smallest_size_that_works_is_found() -> None:
    model = Loaded(None, (ONE,), ("y",))
    tried: list[dict[str, int]] = []
    # The batch is not given, and `sized` takes 1.
    assert fitted(model, {}, _works({"length": 5}, tried)) == (8, {"length": 8})
    assert [t["length"] for t in tried] == [n for n in TRIED if n <= 8]
    # Where no length helps, everything has the same size.
    result, known = fitted(model, {}, lambda k: _works({"batch": 3}, [])({"batch": 1, **k}))
    assert known == {"batch": 3, "length": 3}
    assert result == 6
    assert fitted(model, {"length": 2}, lambda k: k["length"])[0] == 2
    only = Loaded(None, (Input("x", "x", dtypes.float32, ("batch",)),), ("y",))
    for least in (1, 4):
        assert fitted(only, {}, _works({"batch": least}, []))[1] == {"batch": least}
    assert fitted(FIXED, {}, len) == (0, {})


def test_an_input_that_needs_no_larger_size_keeps_1() -> None:
    state = Input("state", "state", dtypes.float32, (2, None, 128))
    model = Loaded(None, (ONE, state), ("y",))
    tried: list[dict[str, int]] = []
    _, known = fitted(model, {}, _works({"length": 5}, tried))
    assert known == {"length": 8, "state:1": 1}
    _, known = fitted(model, {}, _works({"length": 5, "state:1": 5}, tried))
    assert known == {"length": 8, "state:1": 8}


def test_a_batch_stays_1_where_one_axis_alone_has_to_grow() -> None:
    sound = Input("sound", "sound", dtypes.float32, (None, None))
    state = Input("state", "state", dtypes.float32, (2, None, 128))
    model = Loaded(None, (sound, state), ("y",))

    def attempt(known: dict[str, int]) -> int:  # as silero: the state has the batch of the sound
        if known.get("sound:1", 1) < 200 or known.get("sound:0", 1) != known.get("state:1", 1):
            raise ShapeError("refused")
        return 0

    assert fitted(model, {}, attempt)[1] == {"sound:1": 224}


def test_no_input_of_many_elements_is_tried() -> None:
    picture = Loaded(None, (Input("x", "x", dtypes.float32, (None, 3, None, None)),), ("y",))
    tried: list[dict[str, int]] = []
    with pytest.raises(ShapeError, match="give the sizes"):
        fitted(picture, {"x:2": 8}, lambda k: _works({"x:3": 99999}, tried)({"x:0": 1, "x:3": 1, **k}))
    assert max(3 * 8 * k["x:0"] * k["x:3"] for k in tried) <= 1 << 24


def test_an_error_at_every_tried_size_names_the_option() -> None:
    model = Loaded(None, (ONE,), ("y",))
    tried: list[dict[str, int]] = []
    with pytest.raises(ShapeError, match=r"refused .*; give the sizes of .*: --dim batch=… --dim length=…"):
        fitted(model, {}, lambda k: _works({"length": 99999}, tried)({"batch": 1, **k}))
    assert {"batch": 1, "length": TRIED[-1]} in tried

    def fails(known: dict[str, int]) -> int:
        tried.append(known)
        raise DTypeError("not a matter of sizes")

    tried.clear()
    with pytest.raises(DTypeError, match="not a matter"):
        fitted(model, {}, fails)
    assert len(tried) == 1
    with pytest.raises(DTypeError, match=r"sizes$"):
        fitted(FIXED, {}, fails)


def test_a_large_input_of_fixed_size_keeps_no_size_from_being_tried() -> None:
    table = Input("table", "table", dtypes.float32, (5000, 4096))
    assert fitted(Loaded(None, (ONE, table), ("y",)), {}, _works({"length": 3}, []))[1]["length"] == 3
