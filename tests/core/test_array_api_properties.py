"""Every function of the array API standard on random shapes, dtypes and axes gives array_api_strict's elements, shapes
and dtypes, also for arrays without axes or elements."""

from __future__ import annotations

import array_api_strict as strict
import emberlet
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import same, tensor
from support.every_backend import WGPU
from support.rows import every
from support.standard_arrays import (
    EVERY,
    INTEGERS,
    NUMBERS,
    REAL,
    SETTINGS,
    SIGNED,
    UNSIGNED,
    arrays,
    check,
    finite,
    shapes,
)

# The kernels of the backend "loops" are the python backend's here.
pytestmark = pytest.mark.parametrize("backend", ["python", "numpy", WGPU], indirect=True)
ONE = dict.fromkeys(
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh reciprocal"
    " signbit".split(),
    REAL,
)
ONE |= dict.fromkeys("abs ceil floor isfinite isinf isnan negative positive round sign square trunc".split(), NUMBERS)
ONE |= {"logical_not": ["bool"], "bitwise_invert": ["bool", *INTEGERS]}


@every("name", sorted(ONE))
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_one_array(backend, name, data):
    check(lambda xp, x: getattr(xp, name)(x), data.draw(arrays(ONE[name])))


TWO = dict.fromkeys("atan2 copysign divide hypot logaddexp nextafter".split(), REAL)
TWO |= dict.fromkeys("add greater greater_equal less less_equal maximum minimum multiply subtract".split(), NUMBERS)
TWO |= dict.fromkeys(("equal", "not_equal"), EVERY)
TWO |= {name: ["bool"] for name in ("logical_and", "logical_or", "logical_xor")}
TWO |= {name: ["bool", *INTEGERS] for name in ("bitwise_and", "bitwise_or", "bitwise_xor")}
TWO |= dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS)
TWO |= dict.fromkeys(("floor_divide", "remainder", "pow"), NUMBERS)


@every("name", sorted(TWO))
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_two_arrays_broadcast_and_promote(backend, name, data):
    (left, right), _ = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    a = data.draw(arrays(TWO[name], left))
    b = data.draw(arrays(TWO[name], right))
    if b.dtype.kind in "iu" and name in ("floor_divide", "remainder"):
        b = np.where(b == 0, b.dtype.type(3), b)  # the standard leaves zero open
    if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") and b.dtype.kind in "iu":
        b = np.abs(b) % b.dtype.type(6)  # and negative exponents and shifts, and shifts past the width
    if {a.dtype.kind, b.dtype.kind} == {"f"} and name in ("floor_divide", "remainder"):
        assume(np.isfinite(a).all() and np.isfinite(b).all() and (b != 0).all())
    if name == "nextafter" and getattr(backend, "float64_is_float32", False):
        a, b = a.astype("float32"), b.astype("float32")
    check(lambda xp, x, y: getattr(xp, name)(x, y), a, b)


@pytest.mark.parametrize("name", "add subtract multiply maximum less equal pow".split())
@settings(**SETTINGS)
@given(data=st.data())
def test_numbers_take_the_arrays_dtype(backend, name, data):
    a = data.draw(arrays(NUMBERS))
    number = data.draw(st.sampled_from([2, 3] if a.dtype.kind in "iu" else [2, 0.5, -1.5]))
    assume(number != 0.5 or not np.isneginf(a).any())  # NumPy takes a square root there, the standard wants infinity
    check(lambda xp, x: getattr(xp, name)(x, number), a)
    if name != "pow":
        check(lambda xp, x: getattr(xp, name)(number, x), a)


@st.composite
def axes_of(draw, ndim):
    if not ndim:
        return draw(st.sampled_from([None, ()]))
    one = st.integers(-ndim, ndim - 1)
    return draw(st.one_of(st.none(), one, st.lists(one, max_size=ndim, unique_by=lambda i: i % ndim).map(tuple)))


REDUCTIONS = {"sum": NUMBERS, "prod": NUMBERS, "max": NUMBERS, "min": NUMBERS, "mean": REAL, "std": REAL, "var": REAL,
              "all": EVERY, "any": EVERY, "count_nonzero": EVERY}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@settings(**SETTINGS)
@given(data=st.data())
def test_reductions(backend, name, data):
    a = data.draw(arrays(REDUCTIONS[name], of=finite))
    if name in ("max", "min", "mean", "std", "var"):
        assume(a.size)
    axis, keepdims = data.draw(axes_of(a.ndim)), data.draw(st.booleans())
    check(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), a, rtol=1e-5)


@pytest.mark.parametrize("name", ["argmax", "argmin", "cumulative_sum", "cumulative_prod", "diff", "sort", "argsort"])
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_along_an_axis(backend, name, data):
    a = data.draw(arrays(NUMBERS, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), of=finite))
    options = {"axis": data.draw(st.integers(-a.ndim, a.ndim - 1))}
    if name.startswith("arg") and name != "argsort":
        options["keepdims"] = data.draw(st.booleans())
    if name.startswith("cumulative"):
        options["include_initial"] = data.draw(st.booleans())
    if name.endswith("sort"):
        options["descending"] = data.draw(st.booleans())
    check(lambda xp, x: getattr(xp, name)(x, **options), a, rtol=1e-5)


def movement(name, a, draw):
    """A call of a function that moves elements, for an array drawn already."""
    axis = st.integers(-a.ndim, a.ndim - 1) if a.ndim else st.just(0)
    if name == "expand_dims":
        where = draw(st.integers(-a.ndim - 1, a.ndim))
        return lambda xp, x: xp.expand_dims(x, axis=where)
    if name == "flip":
        where = draw(axes_of(a.ndim))
        return lambda xp, x: xp.flip(x, axis=where)
    if name == "permute_dims":
        order = tuple(draw(st.permutations(range(a.ndim))))
        return lambda xp, x: xp.permute_dims(x, order)
    if name == "moveaxis":
        source, destination = draw(axis), draw(axis)
        return lambda xp, x: xp.moveaxis(x, source, destination)
    if name == "reshape":
        shape = draw(st.sampled_from([(-1,), (1, -1), (-1, 1)])) if a.size else (a.size, 3)
        copy = draw(st.sampled_from([None, True]))
        return lambda xp, x: xp.reshape(x, shape, copy=copy)
    if name == "roll":
        shift = draw(st.integers(-5, 5))
        where = draw(st.one_of(st.none(), axis)) if a.ndim else None
        return lambda xp, x: xp.roll(x, shift, axis=where)
    if name == "squeeze":
        ones = tuple(i for i, n in enumerate(a.shape) if n == 1)
        return lambda xp, x: xp.squeeze(x, axis=ones)
    if name == "tile":
        times = tuple(draw(st.lists(st.integers(0, 2), max_size=4)))
        return lambda xp, x: xp.tile(x, times)
    if name == "repeat":
        times, where = draw(st.integers(0, 3)), draw(axis) if a.ndim else None
        return lambda xp, x: xp.repeat(x, times, axis=where)
    if name == "unstack":
        where = draw(axis)
        return lambda xp, x: xp.unstack(x, axis=where)
    if name == "broadcast_to":
        shape = (2, *a.shape)
        return lambda xp, x: xp.broadcast_to(x, shape)
    if name in ("tril", "triu"):
        k = draw(st.integers(-4, 4))
        return lambda xp, x: getattr(xp, name)(x, k=k)
    return lambda xp, x: getattr(xp, name)(x)


MOVEMENTS = (
    "expand_dims flip permute_dims moveaxis reshape roll squeeze tile repeat unstack broadcast_to tril triu "
    "matrix_transpose nonzero zeros_like ones_like unique_values unique_all unique_counts unique_inverse"
).split()


@every("name", MOVEMENTS)
@settings(**SETTINGS)
@given(data=st.data())
def test_movement_and_sets(backend, name, data):
    a = data.draw(arrays(EVERY, of=finite))
    check(movement(name, a, data.draw), a)


@pytest.mark.parametrize("name", ["concat", "stack", "broadcast_arrays", "meshgrid"])
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_several_arrays(backend, name, data):
    kinds = data.draw(st.sampled_from([REAL, SIGNED, UNSIGNED, ["bool"]]))
    if name == "meshgrid":
        parts = [data.draw(arrays([kinds[0]], st.integers(0, 3))) for _ in range(data.draw(st.integers(1, 3)))]
        indexing = data.draw(st.sampled_from(["xy", "ij"]))
        return check(lambda xp, *given: xp.meshgrid(*given, indexing=indexing), *parts)
    if name == "broadcast_arrays":
        sizes, _ = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
        return check(lambda xp, *given: xp.broadcast_arrays(*given), *[data.draw(arrays(kinds, n)) for n in sizes])
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    parts = [data.draw(arrays(kinds, shape)) for _ in range(data.draw(st.integers(1, 3)))]
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    if name == "concat":
        axis = data.draw(st.one_of(st.none(), st.just(axis)))
    check(lambda xp, *given: getattr(xp, name)(given, axis=axis), *parts)


@settings(**SETTINGS)
@given(data=st.data())
def test_products(backend, data):
    kinds = data.draw(st.sampled_from([REAL, SIGNED, UNSIGNED]))
    shaped = data.draw(hnp.mutually_broadcastable_shapes(signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, max_side=3))
    a, b = (data.draw(arrays(kinds, shape, of=finite)) for shape in shaped.input_shapes)
    check(lambda xp, x, y: xp.matmul(x, y), a, b, rtol=1e-5)
    count = data.draw(st.integers(0, min(a.ndim, b.ndim)))
    if a.shape[a.ndim - count :] == b.shape[:count]:
        check(lambda xp, x, y: xp.tensordot(x, y, axes=count), a, b, rtol=1e-5)
    if a.shape == b.shape:
        axis = data.draw(st.integers(-a.ndim, -1))
        check(lambda xp, x, y: xp.vecdot(x, y, axis=axis), a, b, rtol=1e-5)


@settings(**SETTINGS)
@given(data=st.data())
def test_choosing(backend, data):
    a = data.draw(arrays(EVERY, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    n = a.shape[axis]
    rows = data.draw(hnp.arrays("int64", st.integers(0, 4), elements=st.integers(-n, n - 1)))
    check(lambda xp, x, i: xp.take(x, i, axis=axis), a, rows)
    shape = list(a.shape)
    shape[axis] = data.draw(st.integers(0, 3))
    every = data.draw(hnp.arrays("int64", tuple(shape), elements=st.integers(-n, n - 1)))
    check(lambda xp, x, i: xp.take_along_axis(x, i, axis=axis), a, every)
    chosen = data.draw(hnp.arrays("bool", a.shape))
    check(lambda xp, x, m: x[m], a, chosen)
    b = data.draw(arrays([a.dtype.name], a.shape))
    check(lambda xp, m, x, y: xp.where(m, x, y), chosen, a, b)


@settings(**SETTINGS)
@given(data=st.data())
def test_searching(backend, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    edges = np.sort(data.draw(arrays([kind], st.integers(0, 6), of=finite)))
    values = data.draw(arrays([kind], of=finite))
    side = data.draw(st.sampled_from(["left", "right"]))
    check(lambda xp, x, y: xp.searchsorted(x, y, side=side), edges, values)
    check(lambda xp, x, y: xp.isin(x, y), values, edges)
    same(emberlet.isin(tensor(values), tensor(edges), invert=True), np.isin(values, edges, invert=True))


@settings(**SETTINGS)
@given(data=st.data())
def test_clipping_and_casting(backend, data):
    a = data.draw(arrays(NUMBERS))
    low, high = (1, 4) if a.dtype.kind in "iu" else (-0.5, 1.25)
    low, high = data.draw(st.sampled_from([(low, high), (None, high), (low, None), (None, None)]))
    check(lambda xp, x: xp.clip(x, low, high), a)
    to = data.draw(st.sampled_from(EVERY))
    # The standard leaves casts of numbers that the other dtype cannot hold open.
    kept = a if a.dtype.kind != "f" or to in (*REAL, "bool") else np.where(np.isfinite(a), np.abs(a), a.dtype.type(0))
    kept = np.abs(kept) if to.startswith("u") and kept.dtype.kind == "i" else kept
    check(lambda xp, x: xp.astype(x, getattr(xp, to)), kept)


@settings(**SETTINGS)
@given(data=st.data())
def test_creation(backend, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    start, stop = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    step = data.draw(st.sampled_from([1, 2, 3] if kind.startswith("u") else [1, 2, -1, -3]))
    check(lambda xp: xp.arange(start, stop, step, dtype=getattr(xp, kind)))
    shape = data.draw(shapes)
    check(lambda xp: xp.full(shape, start, dtype=getattr(xp, kind)))
    rows, k = data.draw(st.integers(0, 4)), data.draw(st.integers(-4, 4))
    columns = data.draw(st.one_of(st.none(), st.integers(0, 4)))
    check(lambda xp: xp.eye(rows, columns, k=k, dtype=getattr(xp, kind)))
    count, endpoint = data.draw(st.integers(0, 5)), data.draw(st.booleans())
    real = data.draw(st.sampled_from(REAL))
    check(lambda xp: xp.linspace(start, stop, count, endpoint=endpoint, dtype=getattr(xp, real)))


COVERED = {*ONE, *TWO, *REDUCTIONS, *MOVEMENTS} | set(
    "argmax argmin cumulative_sum cumulative_prod diff sort argsort concat stack broadcast_arrays meshgrid matmul"
    " tensordot vecdot take take_along_axis where searchsorted isin clip astype arange full eye linspace".split()
)
# Without elements to compare, or made of the ones above.
ELSEWHERE = {"asarray", "broadcast_shapes", "can_cast", "empty", "empty_like", "finfo", "from_dlpack", "full_like",
             "iinfo", "isdtype", "ones", "result_type", "zeros", "conj", "imag", "real"}  # fmt: skip


def test_no_function_is_left_out(backend):
    functions = {name for name in strict.__all__ if callable(getattr(strict, name)) and not name.startswith("_")}
    functions -= {
        name for name in functions if "flags" in name.lower() or name in (*EVERY, "complex64", "complex128", "Device")
    }
    assert functions == COVERED | ELSEWHERE
