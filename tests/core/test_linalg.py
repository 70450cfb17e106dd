"""emberlet.linalg on every backend: decompositions multiply back to the matrix and have the shapes and forms they
promise; everything else equals NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import linalg
from emberlet.errors import ArgumentError, EmberletError, ShapeError, UnsupportedError
from support.every_backend import ALL
from support.rows import every

from tools.micropython import Port

DRAW = np.random.default_rng(7)
SHAPES = [(4, 4), (2, 3, 3), (3, 5), (5, 3), (2, 2, 4, 2), (1, 1), (1, 6), (6, 1), (0, 3, 3), (0, 2, 4)]
SQUARE = [s for s in SHAPES if s[-1] == s[-2]]
RANK_2 = (DRAW.normal(size=(5, 2)) @ DRAW.normal(size=(2, 4))).astype(np.float32)
HILBERT = (1 / (np.arange(5)[:, None] + np.arange(5) + 1)).astype(np.float32)


def matrices(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def definite(shape: tuple[int, ...]) -> Any:
    a = matrices(shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=np.float32)


def near(found: Any, expected: Any, tolerance: float = 3e-5) -> None:
    a, b = np.asarray(found), np.asarray(expected)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, atol=tolerance * max(1.0, np.abs(b).max(initial=0)), rtol=tolerance)


def orthonormal_columns(q: Any) -> None:
    q = np.asarray(q)
    near(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])))


@pytest.fixture(params=ALL)
def on(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return lambda a: F.asarray(np.ascontiguousarray(a), backend=request.param)


@every("shape", SHAPES)
@pytest.mark.parametrize("full", [True, False])
def test_singular_values(on: Callable[[Any], Any], shape: tuple[int, ...], full: bool) -> None:
    a = matrices(shape)
    u, s, vh = linalg.svd(on(a), full_matrices=full)
    assert [t.shape for t in (u, s, vh)] == [t.shape for t in np.linalg.svd(a, full_matrices=full)]
    orthonormal_columns(u)
    orthonormal_columns(np.swapaxes(vh, -1, -2))
    near(s, np.linalg.svd(a, compute_uv=False))
    near(linalg.svdvals(on(a)), s)
    k = s.shape[-1]
    near(np.asarray(u)[..., :k] * np.asarray(s)[..., None, :] @ np.asarray(vh)[..., :k, :], a)


def test_singular_values_of_a_matrix_of_lower_rank_are_whole(on: Callable[[Any], Any]) -> None:
    u, s, vh = linalg.svd(on(RANK_2))
    orthonormal_columns(u)
    orthonormal_columns(np.asarray(vh).T)
    near(s, np.linalg.svd(RANK_2, compute_uv=False))
    zeros = linalg.svd(on(np.zeros((3, 2), np.float32)))
    orthonormal_columns(zeros.U)
    assert zeros.S.tolist() == [0, 0]


@every("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(on: Callable[[Any], Any], shape: tuple[int, ...], mode: Any) -> None:
    a = matrices(shape)
    q, r = linalg.qr(on(a), mode=mode)
    orthonormal_columns(q)
    near(np.asarray(q) @ np.asarray(r), a)
    near(r, np.triu(r), 0)
    near(r, np.linalg.qr(a, mode).R)  # LAPACK's signs


@every("shape", SHAPES)
def test_lu(on: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    a = matrices(shape)
    p, lower, upper = (np.asarray(t) for t in linalg.lu(on(a)))
    near(p @ lower @ upper, a)
    k = min(shape[-2:])
    assert (lower.shape[-2:], upper.shape[-2:]) == ((shape[-2], k), (k, shape[-1]))
    near(lower, np.tril(lower), 0)
    near(upper, np.triu(upper), 0)
    assert (np.abs(lower) <= 1).all() and (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all()


@pytest.mark.parametrize("shape", SQUARE)
def test_eigenvalues_of_symmetric_matrices(on: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    a = matrices(shape)
    symmetric = a + np.swapaxes(a, -1, -2)
    values, vectors = (np.asarray(t) for t in linalg.eigh(on(symmetric)))
    near(values, np.linalg.eigvalsh(symmetric))
    near(linalg.eigvalsh(on(symmetric)), values)
    orthonormal_columns(vectors)
    near(symmetric @ vectors, vectors * values[..., None, :])
    lower = np.tril(symmetric) + np.float32(9) * np.triu(np.ones_like(symmetric), 1)
    near(linalg.eigvalsh(on(lower)), values)  # only the lower triangle is read


def test_repeated_eigenvalues(on: Callable[[Any], Any]) -> None:
    a = np.diag(np.array([2, 0, 2, -1], np.float32)) + np.array(0, np.float32)
    values, vectors = linalg.eigh(on(a))
    assert values.tolist() == [-1, 0, 2, 2]
    orthonormal_columns(vectors)


def test_the_determinant_of_a_singular_matrix(on: Callable[[Any], Any]) -> None:
    sign, logarithm = linalg.slogdet(on(np.zeros((2, 2), np.float32)))
    assert (sign.item(), logarithm.item()) == (0, -np.inf)


@pytest.mark.parametrize("matrix", [matrices((5, 3)), matrices((3, 5)), RANK_2], ids=["tall", "wide", "rank 2"])
@pytest.mark.parametrize("columns", [None, 2])
def test_least_squares(on: Callable[[Any], Any], matrix: Any, columns: int | None) -> None:
    b = matrices((len(matrix),) if columns is None else (len(matrix), columns))
    found, expected = linalg.lstsq(on(matrix), on(b), rtol=1e-5), np.linalg.lstsq(matrix, b, rcond=1e-5)
    near(found.solution, expected[0], 2e-4)
    near(found.residuals, ((matrix @ expected[0] - b) ** 2).sum(0), 2e-4)
    assert found.rank.item() == expected[2]
    near(found.singular_values, expected[3])


@pytest.mark.parametrize(
    "matrix", [matrices((2, 4, 3)), matrices((3, 4)), RANK_2, HILBERT, np.zeros((2, 3), np.float32)]
)
def test_pseudo_inverses_and_ranks(on: Callable[[Any], Any], matrix: Any) -> None:
    near(linalg.pinv(on(matrix), rtol=1e-5), np.linalg.pinv(matrix, rcond=1e-5), 1e-2 if matrix is HILBERT else 1e-4)
    for options in ({}, {"rtol": 1e-3}):
        found = linalg.matrix_rank(on(matrix), **options)
        assert found.dtype is emberlet.int64
        near(found, np.linalg.matrix_rank(matrix, **options), 0)


def test_norms_as_numpy_takes_them(on: Callable[[Any], Any]) -> None:
    a = matrices((2, 4, 3))
    near(linalg.norm(on(a)), np.linalg.norm(a))
    near(linalg.norm(on(a[0]), 1), np.linalg.norm(a[0], 1))
    near(linalg.norm(on(a[0, 0]), np.inf), np.linalg.norm(a[0, 0], np.inf))
    near(linalg.norm(on(a), "nuc", (2, 0), keepdims=True), np.linalg.norm(a, "nuc", (2, 0), True))
    near(linalg.norm(on(a), 3, axis=1, keepdims=True), np.linalg.norm(a, 3, axis=1, keepdims=True))


def test_diagonals_traces_and_cosines(on: Callable[[Any], Any]) -> None:
    a, b = matrices((2, 4, 3)), matrices((4, 3))
    for k in (-4, -3, -1, 0, 2, 3):
        near(linalg.diagonal(on(a), offset=k), np.diagonal(a, k, -2, -1), 0)
        near(linalg.trace(on(a), offset=k), np.trace(a, k, -2, -1))
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    near(linalg.cosine_similarity(on(a), on(b)), (a * b).sum(-1) / lengths)
    assert linalg.cosine_similarity(on(np.zeros(3, np.float32)), on(b[0])).item() == 0


def test_float64_keeps_its_precision() -> None:
    a = np.random.default_rng(2).normal(size=(6, 6))
    for backend in ("numpy", "python"):
        x = F.asarray(a, dtype="float64", backend=backend)
        np.testing.assert_allclose(np.asarray(linalg.inv(x)) @ a, np.eye(6), atol=1e-12)
        np.testing.assert_allclose(linalg.svdvals(x), np.linalg.svd(a, compute_uv=False), rtol=1e-13)
        np.testing.assert_allclose(linalg.eigvalsh(x @ x.T), np.linalg.eigvalsh(a @ a.T), rtol=1e-10)


@pytest.mark.parametrize(("dtype", "result"), [("float16", "float16"), ("int32", "float32"), ("float64", "float64")])
def test_results_have_the_dtype_of_the_matrix(dtype: str, result: str) -> None:
    for backend in ("numpy", "python"):
        x = F.asarray([[4.0, 1.0], [1.0, 3.0]], backend=backend).astype(dtype)
        for name in ("inv", "cholesky", "svdvals", "pinv", "eigvalsh"):
            assert getattr(linalg, name)(x).dtype.name == result
        assert {t.dtype.name for t in (*linalg.qr(x), *linalg.lu(x), *linalg.slogdet(x))} == {result}


SINGULAR = np.array([[1, 2], [2, 4]], np.float32)


@every(
    ("call", "error", "words"),
    [
        (lambda on: linalg.inv(on(np.zeros((2, 2), np.float32))), ArgumentError, "singular; linalg.pinv"),
        (lambda on: linalg.solve(on(SINGULAR), on(SINGULAR)), ArgumentError, "singular"),
        (lambda on: linalg.cholesky(on(-np.eye(2, dtype=np.float32))), ArgumentError, "positive definite"),
        (lambda on: linalg.inv(on(matrices((2, 3)))), ShapeError, "inv takes square matrices"),
        (lambda on: linalg.svd(on(matrices((3,)))), ShapeError, "svd takes matrices"),
        (lambda on: linalg.solve(on(SINGULAR), on(matrices((3,)))), ShapeError, "2 equations"),
        (lambda on: linalg.qr(on(SINGULAR), mode="r"), ArgumentError, "'reduced' or 'complete'"),
        (lambda on: linalg.matrix_norm(on(SINGULAR), ord=3), ArgumentError, "'fro', 'nuc'"),
        (lambda on: linalg.norm(on(matrices((2, 2, 2))), 2), ShapeError, "one axis or two"),
        (lambda on: linalg.matrix_power(on(SINGULAR), 0.5), ArgumentError, "an int"),
        (lambda on: linalg.lstsq(on(SINGULAR), on(matrices((3,)))), ShapeError, "lstsq takes"),
        (lambda on: linalg.trace(on(matrices((3,)))), ShapeError, "at least 2 axes"),
        (lambda on: linalg.inv(None), EmberletError, "tensor"),
    ],
)
def test_what_has_no_result_is_refused(
    on: Callable[[Any], Any], call: Callable[[Any], Any], error: type[EmberletError], words: str
) -> None:
    with pytest.raises(error, match=words):
        call(on)


def symmetric(x: Any) -> Any:
    return x + x.mT


GRADIENTS: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "products, traces and norms": (
        lambda x: [linalg.trace(x), linalg.det(x), linalg.diagonal(x), linalg.matrix_norm(x), linalg.matrix_power(x, 3),
                   linalg.cosine_similarity(x, x[..., :1, :])], [(3, 3)]),
    "norms by singular values": (
        lambda x: [linalg.matrix_norm(x, ord=o) for o in (2, -2, "nuc")], [(3, 3), (2, 3, 4)]),
    "cholesky": (lambda x: linalg.cholesky(x @ x.mT + 0.5), [(3, 3), (2, 4, 4)]),
    "cholesky, upper": (lambda x: linalg.cholesky(x @ x.mT + 0.5, upper=True), [(3, 3)]),
    "eigh": (lambda x: list(linalg.eigh(symmetric(x))), [(3, 3), (2, 4, 4), (1, 1)]),
    "eigenvectors alone": (lambda x: linalg.eigh(symmetric(x)).eigenvectors, [(3, 3)]),
    "eigvalsh": (lambda x: linalg.eigvalsh(symmetric(x)), [(3, 3), (2, 4, 4)]),
    "inv": (linalg.inv, [(3, 3), (2, 4, 4)]),
    "matrix_power": (lambda x: linalg.matrix_power(x, -2), [(3, 3)]),
    "lu": (lambda x: list(linalg.lu(x))[1:], [(3, 3), (2, 3, 5), (2, 5, 3)]),
    "upper triangle of lu": (lambda x: linalg.lu(x).U, [(3, 5), (5, 3)]),
    "qr": (lambda x: list(linalg.qr(x)), [(3, 3), (2, 5, 3), (2, 3, 5)]),
    "R alone": (lambda x: linalg.qr(x).R, [(5, 3), (3, 5)]),
    "qr, complete": (lambda x: list(linalg.qr(x, mode="complete")), [(3, 3), (3, 5)]),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, [(3, 3), (2, 4, 4)]),
    "solve": (lambda x: linalg.solve(x[..., :3], x[..., 3:]), [(3, 5), (2, 3, 4)]),
    "solve one right side": (lambda x: linalg.solve(x[:, :3], x[:, 3]), [(3, 4)]),
    "svd": (lambda x: list(linalg.svd(x, full_matrices=False)), [(3, 3), (2, 5, 3), (2, 3, 5)]),
    "right singular vectors": (lambda x: linalg.svd(x, full_matrices=False).Vh, [(3, 5), (5, 3)]),
    "svdvals": (linalg.svdvals, [(3, 3), (5, 3), (2, 3, 5)]),
    "pinv": (linalg.pinv, [(3, 3), (2, 5, 3), (2, 3, 5)]),
    "pinv of equal singular values": (lambda x: linalg.pinv(x * 1e-3 + F.eye(3, dtype="float64", backend=x.backend)),
                                      [(3, 3)]),
    "lstsq": (lambda x: list(linalg.lstsq(x[:, :2], x[:, 2:]))[:2], [(5, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_the_slopes_that_finite_differences_see(name: str) -> None:
    function, shapes = GRADIENTS[name]
    for shape in shapes:
        x = F.asarray(matrices(shape), dtype="float64", backend="numpy")
        emberlet.check_grads(function, [x], rtol=1e-4)


def test_a_gradient_of_a_gradient_of_a_decomposition() -> None:
    x = F.asarray(matrices((3, 3)), dtype="float64", backend="numpy")
    for f in (linalg.inv, linalg.svdvals, lambda x: linalg.cholesky(x @ x.mT + 1)):
        emberlet.check_grads(emberlet.grad(lambda x, f=f: (f(x) ** 2).sum()), [x], rtol=1e-3)


def test_gradients_of_decompositions_on_every_backend(on: Callable[[Any], Any]) -> None:
    a = matrices((3, 3))
    inverse = np.linalg.inv(a).T
    near(emberlet.grad(lambda x: linalg.slogdet(x).logabsdet)(on(a)), inverse, 1e-3)
    near(emberlet.grad(lambda x: linalg.inv(x).sum())(on(a)), -inverse @ np.ones((3, 3)) @ inverse, 1e-3)


def test_what_is_not_unique_has_no_gradient() -> None:
    x = F.asarray(matrices((4, 2)), backend="autodiff:numpy").require_grad()
    with pytest.raises(UnsupportedError, match="mode='reduced'"):
        linalg.qr(x, mode="complete").Q.sum().backward()


class Fitted(emberlet.Module):
    """Depends on its inputs through decompositions alone."""

    def forward(self, a: Any, b: Any) -> Any:
        return linalg.solve(a @ a.mT + 1, b), linalg.svd(a).S


@pytest.mark.parametrize("backend", ["numpy", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_a_compiled_model_decomposes_each_input(backend: str) -> None:
    compiled = Fitted().compile(*(F.asarray(matrices(s), backend=backend) for s in ((3, 3), (3, 2))), backend=backend)
    for shift in (0.0, 1.0):
        a, b = (F.asarray(matrices(s) + np.float32(shift), backend=backend) for s in ((3, 3), (3, 2)))
        for found, expected in zip(compiled(a, b), Fitted()(a, b), strict=True):
            near(found, expected, 1e-4)


@pytest.mark.needs("gpu-driver")
def test_a_gpu_counts_what_its_host_computes() -> None:
    x = F.asarray(SINGULAR, backend="wgpu")
    before = x.backend.fallbacks.get("linear_algebra", 0)
    linalg.svdvals(x).tolist()
    assert x.backend.fallbacks["linear_algebra"] == before + 1


def test_a_slip_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(AttributeError, match="did you mean cholesky"):
        linalg.cholesy  # noqa: B018


SCRIPT = """
import emberlet
from emberlet import linalg
x = emberlet.asarray([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
u, s, vh = linalg.svd(x)
print([round(v, 4) for v in s.tolist()])
w, v = linalg.eigh(x)
print([round(v, 4) for v in w.tolist()])
q, r = linalg.qr(x)
p, l, t = linalg.lu(x)
for y in (q @ r, p @ l @ t, linalg.inv(linalg.inv(x)), linalg.solve(linalg.inv(x), emberlet.eye(3))):
    print(emberlet.max(abs(y - x)).item() < 1e-4)
print(round(linalg.norm(x, "nuc").item(), 4), linalg.matrix_rank(x).item(), round(linalg.det(x).item(), 3))
"""


def test_it_runs_on_micropython(micropython_port: Port) -> None:
    a = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]])
    lines = micropython_port.run(SCRIPT, heap="640K").check().stdout.splitlines()
    values = np.linalg.svd(a, compute_uv=False)
    np.testing.assert_allclose(eval(lines[0]), values, atol=2e-4)
    np.testing.assert_allclose(eval(lines[1]), np.linalg.eigvalsh(a), atol=2e-4)
    assert lines[2:6] == ["True"] * 4
    nuclear, rank, determinant = lines[6].split()
    assert (float(nuclear), int(rank), float(determinant)) == (
        pytest.approx(values.sum(), abs=1e-3), 3, pytest.approx(np.linalg.det(a), abs=1e-2)
    )  # fmt: skip
