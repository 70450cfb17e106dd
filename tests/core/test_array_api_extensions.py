"""The extensions `linalg` and `fft` of the array API standard, and its functions of complex numbers, on random shapes,
dtypes and options give array_api_strict's elements, shapes and dtypes. What is not unique, such as the sign of an
eigenvector, is judged by its property."""

from __future__ import annotations

import array_api_strict as strict
import emberlet
import numpy as np
import pytest
from array_api_strict import fft as strict_fft
from array_api_strict import linalg as strict_linalg
from emberlet import linalg
from emberlet.errors import ArgumentError, DTypeError, ShapeError
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.backends import tensor
from support.every_backend import WGPU
from support.standard_arrays import COMPLEX, NUMBERS, REAL, SETTINGS, SIGNED, UNSIGNED, arrays, check, finite

EXACT = ["python", "numpy"]  # the backends that have complex numbers
complex_backends = pytest.mark.parametrize("backend", EXACT, indirect=True)
real_backends = pytest.mark.parametrize("backend", [*EXACT, WGPU], indirect=True)
batches = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2)
CLOSE = 2e-4  # float32, of small and well conditioned matrices


# -- complex numbers ---------------------------------------------------------------------------------------------------

ONE = (
    "abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf isnan log log1p log2 log10 "
    "negative positive real reciprocal sign sin sinh sqrt square tan tanh sum prod mean cumulative_sum cumulative_prod "
    "all any count_nonzero flip matrix_transpose nonzero tril triu zeros_like ones_like round unique_all unique_counts "
    "unique_inverse unique_values"
).split()


@pytest.mark.parametrize("name", ONE)
@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_a_complex_array(backend, name, data):
    least = 2 if name in ("matrix_transpose", "tril", "triu") else 1
    shape = hnp.array_shapes(min_dims=least, max_dims=least + (name[:4] != "cumu"), min_side=1, max_side=3)
    a = data.draw(arrays(COMPLEX, shape, of=finite))
    options = {"axis": 0} if name.startswith("cumulative") and a.ndim > 1 else {}
    check(lambda xp, x: getattr(xp, name)(x, **options), a, rtol=2e-5 if a.dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("name", "add subtract multiply divide equal not_equal pow".split())
@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_two_arrays_promote_reals(backend, name, data):
    (left, right), _ = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    a, b = data.draw(arrays(COMPLEX, left, of=finite)), data.draw(arrays([*REAL, *COMPLEX], right, of=finite))
    check(lambda xp, x, y: getattr(xp, name)(x, y), a, b, rtol=2e-5)
    check(lambda xp, x, y: getattr(xp, name)(y, x), a, b, rtol=2e-5)


# -- fft ---------------------------------------------------------------------------------------------------------------

KINDS = {"rfft": REAL, "ihfft": REAL, "rfftn": REAL}
norms = st.sampled_from(["backward", "ortho", "forward"])


@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft".split())
@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_transforms_along_an_axis(backend, name, data):
    shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=6)
    a = data.draw(arrays(KINDS.get(name, COMPLEX), shape, of=finite))
    axis, n, norm = (
        data.draw(st.integers(-a.ndim, a.ndim - 1)),
        data.draw(st.sampled_from([None, 2, 5, 8])),
        data.draw(norms),
    )
    check(lambda xp, x: getattr(xp.fft, name)(x, n=n, axis=axis, norm=norm), a, rtol=CLOSE)


@pytest.mark.parametrize("name", "fftn ifftn rfftn irfftn".split())
@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_transforms_along_several_axes(backend, name, data):
    shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=4)
    a = data.draw(arrays(KINDS.get(name, COMPLEX), shape, of=finite))
    axes = data.draw(st.lists(st.integers(0, a.ndim - 1), min_size=1, max_size=a.ndim, unique=True).map(tuple))
    s = data.draw(st.sampled_from([None, (3,) * len(axes)]))
    norm = data.draw(norms)
    check(lambda xp, x: getattr(xp.fft, name)(x, s=s, axes=axes, norm=norm), a, rtol=CLOSE)


@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_frequencies_and_shifts(backend, data):
    n, d = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([1.0, 0.5, 3.0]))
    check(lambda xp: xp.fft.fftfreq(n, d=d, dtype=xp.float64))
    check(lambda xp: xp.fft.rfftfreq(n, d=d, dtype=xp.float32))
    a = data.draw(arrays([*REAL, *COMPLEX], hnp.array_shapes(max_dims=3, max_side=4), of=finite))
    axes = data.draw(st.sampled_from([None, 0, -1, tuple(range(a.ndim))]))
    check(lambda xp, x: xp.fft.fftshift(x, axes=axes), a)
    check(lambda xp, x: xp.fft.ifftshift(x, axes=axes), a)


# -- linalg ------------------------------------------------------------------------------------------------------------


def matrices(data, rows, columns, batch=batches):
    """Random matrices far from singular."""
    shape, dtype = (*data.draw(batch), rows, columns), data.draw(st.sampled_from(REAL))
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    return (draw.normal(size=shape) * 0.3 + 2 * np.eye(rows, columns)).astype(dtype)


def definite(data):
    a = matrices(data, *[data.draw(st.integers(1, 4))] * 2)
    return (a @ np.swapaxes(a, -1, -2)).astype(a.dtype)


@pytest.mark.parametrize(
    "name", "det inv slogdet eigvalsh cholesky matrix_power matrix_rank trace pinv svdvals".split()
)
@real_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_functions_of_square_matrices(backend, name, data):
    a = definite(data)
    if name == "matrix_power":
        power = data.draw(st.integers(-2, 3))
        return check(lambda xp, x: xp.linalg.matrix_power(x, power), a, rtol=CLOSE)
    if name == "cholesky":
        upper = data.draw(st.booleans())
        return check(lambda xp, x: xp.linalg.cholesky(x, upper=upper), a, rtol=CLOSE)
    if name == "trace":
        offset = data.draw(st.integers(-2, 2))
        return check(lambda xp, x: xp.linalg.trace(x, offset=offset), a, rtol=CLOSE)
    check(lambda xp, x: getattr(xp.linalg, name)(x), a, rtol=CLOSE)


@real_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_solutions_of_systems(backend, data):
    a = definite(data)
    n = a.shape[-1]
    b = matrices(data, n, data.draw(st.integers(1, 3)), st.just(a.shape[:-2])).astype(a.dtype)
    check(lambda xp, x, y: xp.linalg.solve(x, y), a, b, rtol=CLOSE)
    vector = np.arange(n).astype(a.dtype)
    check(lambda xp, x, y: xp.linalg.solve(x, y), a, vector, rtol=CLOSE)


@real_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_decompositions_multiply_back(backend, data):
    a = matrices(data, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    mode, full = data.draw(st.sampled_from(["reduced", "complete"])), data.draw(st.booleans())
    theirs, ours = strict_linalg.qr(strict.asarray(a), mode=mode), linalg.qr(tensor(a), mode=mode)
    alike(ours, theirs)
    near(ours[0] @ ours[1], a)
    theirs, ours = strict_linalg.svd(strict.asarray(a), full_matrices=full), linalg.svd(tensor(a), full_matrices=full)
    alike(ours, theirs)
    k = min(a.shape[-2:])
    near(ours[0][..., :k] * ours[1][..., None, :] @ ours[2][..., :k, :], a)
    square = definite(data)
    theirs, ours = strict_linalg.eigh(strict.asarray(square)), linalg.eigh(tensor(square))
    alike(ours, theirs)
    near(ours[1] * ours[0][..., None, :] @ ours[1].mT, square)
    near(ours[0], np.asarray(theirs[0]))


def alike(ours, theirs):
    assert [(x.shape, x.dtype.name) for x in ours] == [(x.shape, str(x.dtype).rpartition(".")[2]) for x in theirs]
    assert all(getattr(ours, name) is x for name, x in zip(type(theirs)._fields, ours, strict=True))


def near(found, expected):
    np.testing.assert_allclose(
        np.asarray(found), expected, rtol=CLOSE, atol=CLOSE * max(1, np.abs(expected).max(initial=0))
    )


@real_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_norms(backend, data):
    a = matrices(data, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4)))
    order = data.draw(st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]))
    keepdims = data.draw(st.booleans())
    check(lambda xp, x: xp.linalg.matrix_norm(x, keepdims=keepdims, ord=order), a, rtol=CLOSE)
    order = data.draw(st.sampled_from([0, 1, 2, 3, -1, 0.5, np.inf, -np.inf]))
    axis = data.draw(st.sampled_from([None, 0, -1, (0, 1)]))
    assume(a.size)
    check(lambda xp, x: xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order), a, rtol=CLOSE)


@real_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_products_and_diagonals(backend, data):
    (left, right), _ = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3))
    a, b = (data.draw(arrays(REAL, (*shape, 3), of=finite)) for shape in (left, right))
    check(lambda xp, x, y: xp.linalg.cross(x, y), a, b, rtol=1e-5)
    check(lambda xp, x, y: xp.linalg.vecdot(x, y), a, b, rtol=1e-5)
    kinds = data.draw(st.sampled_from([REAL, SIGNED, UNSIGNED]))
    row, column = (data.draw(arrays(kinds, st.integers(0, 4), of=finite)) for _ in range(2))
    check(lambda xp, x, y: xp.linalg.outer(x, y), row, column)
    whole = data.draw(arrays(NUMBERS, hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=4), of=finite))
    offset = data.draw(st.integers(-3, 3))
    check(lambda xp, x: xp.linalg.diagonal(x, offset=offset), whole)
    check(lambda xp, x: xp.linalg.matrix_transpose(x), whole)
    square = data.draw(arrays(REAL, (3, 3), of=finite))
    check(lambda xp, x: xp.linalg.matmul(x, x), square, rtol=1e-5)
    check(lambda xp, x: xp.linalg.tensordot(x, x, axes=1), square, rtol=1e-5)


def test_no_function_of_the_extensions_is_left_out() -> None:
    text = open(__file__, encoding="utf-8").read()
    words = set(text.replace("(", " ").replace(".", " ").replace('"', " ").split())
    names = [n for m in (strict_fft, strict_linalg) for n in m.__all__ if n[0].islower()]
    assert [n for n in names if n not in words] == []
    assert len(names) == 37 and all(hasattr(emberlet, m) for m in ("fft", "linalg"))


# -- linalg of complex matrices ----------------------------------------------------------------------------------------

WELL = {"min_magnitude": 0.1, "max_magnitude": 3}  # of elements, beside a diagonal that keeps matrices regular


@st.composite
def complex_matrices(draw, hermitian=False):
    n = draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(COMPLEX))
    shape = (*draw(batches), n, n)
    a = draw(hnp.arrays(np.complex64, shape, elements=st.complex_numbers(width=64, **WELL), fill=st.nothing()))
    a = a + 8 * n * np.eye(n, dtype=np.complex64)
    return ((a + a.conj().swapaxes(-1, -2)) / 2 if hermitian else a).astype(dtype)


@pytest.mark.parametrize("call", ["det(x)", "inv(x)", "slogdet(x)", "svdvals(x)", "matrix_rank(x)", "pinv(x)",
                                  "matrix_power(x, 3)", "matrix_power(x, -1)", "matrix_norm(x)", "solve(x, x + 1)",
                                  "matrix_norm(x, ord='nuc', keepdims=True)", "diagonal(x)", "trace(x)",
                                  "svd(x).S", "abs(qr(x).R)", "solve(x, x[..., :1])"])  # fmt: skip
@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_linalg_of_complex_matrices(backend, call, data):
    a = data.draw(complex_matrices())
    tolerance = 1e-3 if a.dtype == "complex64" else 1e-9
    found, wanted = (
        eval(call, {**{n: getattr(space, n) for n in strict_linalg.__all__}, "x": x, "abs": xp.abs})
        for xp, space, x in ((emberlet, linalg, tensor(a)), (strict, strict_linalg, strict.asarray(a)))
    )
    for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, wanted)), strict=True):
        other = np.asarray(other)
        assert (one.dtype.name, one.shape) == (other.dtype.name, other.shape)
        np.testing.assert_allclose(
            np.asarray(one), other, rtol=tolerance, atol=tolerance * np.abs(other).max(initial=1)
        )


@complex_backends
@settings(**SETTINGS)
@given(data=st.data())
def test_decompositions_of_complex_matrices_give_them_back(backend, data):
    a = data.draw(complex_matrices(hermitian=True))
    x, tolerance = tensor(a), (1e-3 if a.dtype == "complex64" else 1e-9) * np.abs(a).max(initial=1)

    def h(m):
        return emberlet.conj(m).mT

    u, s, vh = linalg.svd(x, full_matrices=False)
    q, r = linalg.qr(x)
    values, vectors = linalg.eigh(x)
    low, up = linalg.cholesky(x), linalg.cholesky(x, upper=True)
    for made in (
        low @ h(low),
        h(up) @ up,
        q @ r,
        (u * s[..., None, :]) @ vh,
        (vectors * values[..., None, :]) @ h(vectors),
    ):
        np.testing.assert_allclose(np.asarray(made), a, atol=tolerance)
    np.testing.assert_allclose(np.asarray(linalg.eigvalsh(x)), np.asarray(values), atol=tolerance)


def test_complex_matrices_are_refused_like_real_ones():
    x = tensor(np.array([[1j, 0], [0, 0]]))
    for call, kind in [(lambda: linalg.inv(x), ArgumentError), (lambda: linalg.cholesky(x), ArgumentError),
                       (lambda: linalg.inv(x[:1]), ShapeError), (lambda: linalg.svd(x[0]), ShapeError),
                       (lambda: linalg.qr(x, mode="raw"), ArgumentError),
                       (lambda: linalg.lu(x), DTypeError)]:  # fmt: skip
        with pytest.raises(kind):
            call()
