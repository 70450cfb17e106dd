"""Complex tensors and emberlet.fft against NumPy, on the backends that have them, and refused by name elsewhere."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import emberlet
import numpy as np
import pytest
from emberlet import fft, linalg
from emberlet import functional as F
from emberlet.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from support.every_backend import WGPU
from support.rows import every

R = np.random.RandomState(4)
Z, W = R.randn(3, 4) + 1j * R.randn(3, 4), R.randn(3, 4) + 1j * R.randn(3, 4)
A = R.randn(3, 4)
NAMES = ["numpy", "python"]
# test_array_api_extensions.py draws the standard's functions and transforms.
UNARY = ("angle", "trace", "diff", "atleast_3d")
BINARY = "add subtract multiply divide pow vecdot tensordot kron".split()
# Of p (np or emberlet), complex z and w, real a.
CALLS: dict[str, Any] = {
    "an expression": lambda p, z, w, a: (2j * z + 1) / (a - 1j) - w**2,
    "with a number first": lambda p, z, w, a: 1 / z,
    "matmul": lambda p, z, w, a: z @ w.T,
    "matmul with reals": lambda p, z, w, a: a @ w.T,
    "einsum": lambda p, z, w, a: p.einsum("ij,kj->ik", z, w),
    "where": lambda p, z, w, a: p.where(a > 0, z, w),
    "where with reals": lambda p, z, w, a: p.where(a > 0, z, a),
    "concat": lambda p, z, w, a: p.concat([z, w], axis=1),
    "stack with reals": lambda p, z, w, a: p.stack([z, p.astype(a, p.complex128)]),
    "slices": lambda p, z, w, a: z[1:, ::-2],
    "a mask": lambda p, z, w, a: z[a > 0],
    "take": lambda p, z, w, a: p.take(z, p.asarray([2, 0]), axis=1),
    "pad": lambda p, z, w, a: p.pad(z, ((0, 1), (1, 0))),
    "roll": lambda p, z, w, a: p.roll(z, 1),
    "vector_norm": lambda p, z, w, a: p.linalg.vector_norm(z, axis=1),
    "vector_norm of order 3": lambda p, z, w, a: p.linalg.vector_norm(z, axis=1, ord=3),
    "zeros": lambda p, z, w, a: p.zeros((2,), dtype=p.complex64),
    "ones": lambda p, z, w, a: p.ones((2,), dtype=p.complex128),
    "eye": lambda p, z, w, a: p.eye(2, dtype=p.complex64),
    "full": lambda p, z, w, a: p.full((2,), 1 + 2j, dtype=p.complex128),
    "zeros_like": lambda p, z, w, a: p.zeros_like(z),
    "isclose": lambda p, z, w, a: p.isclose(z, z + 1e-9),
    "a cast": lambda p, z, w, a: z.astype(p.complex64) * 3,
    "log2 and log10 of zeros": lambda p, z, w, a: [p.log2(z * 0 + 0), p.log10(z * 0 + 0)],
    "to bool": lambda p, z, w, a: (z * 0).astype(bool),
}


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    emberlet.set_default_backend(request.param)
    yield request.param
    emberlet.set_default_backend(None)


def same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    array = np.asarray(found)
    assert array.shape == np.shape(wanted)
    assert array.dtype.kind == np.asarray(wanted).dtype.kind or array.dtype.kind in "iu"
    np.testing.assert_allclose(array, wanted, rtol=rtol, atol=1e-9)


@every("name", UNARY)
def test_a_function_of_complex_numbers_is_numpys(name: str, backend: str) -> None:
    for x in (Z, Z.astype(np.complex64)):
        found = getattr(emberlet, name)(emberlet.asarray(x))
        same(found, getattr(np, name)(x), 1e-6 if x is Z else 2e-5)
        if found.__class__ is not tuple and found.dtype.kind == "complex":
            assert found.dtype.name == x.dtype.name


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_complex_numbers_is_numpys(name: str, backend: str) -> None:
    for x, y in ((Z, W), (Z, A), (A, W), (Z, 2.5), (A, 2j)):
        if np.ndim(y) or name in ("add", "subtract", "multiply", "divide", "pow", "equal"):
            given = [emberlet.asarray(v) if np.ndim(v) else v for v in (x, y)]
            same(getattr(emberlet, name)(*given), getattr(np, name)(x, y))


@every("name", CALLS)
def test_a_call_with_complex_numbers_is_numpys(name: str, backend: str) -> None:
    given = [emberlet.asarray(v) for v in (Z, W, A)]
    same(CALLS[name](emberlet, *given), CALLS[name](np, Z, W, A))


def test_complex_numbers_become_tensors_and_come_back(backend: str) -> None:
    x = emberlet.asarray([[1, 2j], [3.5, True]])
    assert x.dtype is emberlet.complex64 and x.tolist() == [[1, 2j], [3.5, 1]]
    assert emberlet.asarray(1 + 2j).item() == 1 + 2j and complex(emberlet.asarray(2j)) == 2j
    assert emberlet.full((1,), 2j).dtype.name == "complex64"
    assert emberlet.asarray([1j], dtype="complex128").dtype is emberlet.complex128
    assert "complex64" in str(x) and repr(x).startswith("Tensor([[(1+0j), 2j]")
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert emberlet.asarray([0.1 + 0.2j]).item() == complex(np.complex64(0.1 + 0.2j))
    pairs = x.view_as_real()
    assert pairs.shape == (2, 2, 2) and pairs.view_as_complex().tolist() == x.tolist()
    x[0, 0] = 5j
    assert x.tolist()[0][0] == 5j
    assert emberlet.real(emberlet.asarray([2])).tolist() == [2] and emberlet.imag(emberlet.asarray([2])).tolist() == [0]
    assert emberlet.conj(emberlet.asarray([2.0])).tolist() == [2.0]


def test_dtypes_of_complex_numbers() -> None:
    assert emberlet.result_type("float64", "complex64") is emberlet.complex128
    assert emberlet.result_type("float32", "complex64") is emberlet.complex64
    assert emberlet.result_type("int64", "complex64") is emberlet.complex64
    assert emberlet.isdtype("complex64", "complex floating") and not emberlet.isdtype("complex64", "real floating")
    assert emberlet.finfo("complex64").eps == np.finfo(np.complex64).eps
    assert emberlet.complex64 == np.complex64 and emberlet.complex128.nbytes(3) == 48
    info = emberlet.__array_namespace_info__()
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]


@pytest.mark.parametrize("call", [F.softmax, F.layer_norm, emberlet.max, emberlet.floor, F.relu, emberlet.std])
def test_what_is_made_for_real_numbers_is_refused(call: Any, backend: str) -> None:
    with pytest.raises(DTypeError, match="complex"):
        call(emberlet.asarray(Z))


def test_a_comparison_and_a_lossy_cast_are_refused(backend: str) -> None:
    x = emberlet.asarray(Z)
    with pytest.raises(DTypeError, match="less does not take complex numbers"):
        x < 2  # noqa: B015
    with pytest.raises(DTypeError, match=r"write real\(x\)"):
        x.astype("float32")


@pytest.mark.parametrize("name", [WGPU, "autodiff:numpy"])
def test_other_backends_refuse_them_by_name(name: str) -> None:
    emberlet.asarray(1j)
    x = emberlet.asarray(A.astype(np.float32), backend=name)
    for call in (
        lambda: emberlet.asarray(Z, backend=name), lambda: emberlet.asarray([1j], backend=name), lambda: x * 1j,
        lambda: emberlet.zeros(2, dtype="complex64", backend=name), lambda: x.astype("complex64"), lambda: fft.fft(x),
        lambda: emberlet.asarray(Z).to(name),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match=r"numpy and python, not on .*" + name.split(":")[0]):
            call()


def test_the_first_complex_number_is_refused_on_a_gpu_too() -> None:
    script = (
        "import emberlet\ntry:\n    emberlet.zeros(2, dtype='complex64', backend='autodiff:python')\n"
        "except emberlet.errors.UnsupportedError as error:\n    print('refused', error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True).stdout
    assert said.startswith("refused complex numbers are on the backends numpy and python")


def test_transforms_without_meaning_are_refused() -> None:
    x = emberlet.asarray(A)
    with pytest.raises(ArgumentError, match="norm is"):
        fft.fft(x, norm="unit")
    with pytest.raises(ShapeError, match="0 elements"):
        fft.fft(x, n=0)
    with pytest.raises(DTypeError, match="rfft takes real numbers"):
        fft.rfft(emberlet.asarray(Z))
    with pytest.raises(DTypeError, match="float32, float64"):
        fft.fft(x.astype("float16"))
    with pytest.raises(ShapeError, match="2 lengths for 1 axes"):
        fft.fftn(x, s=(2, 3), axes=(0,))
    with pytest.raises(ShapeError, match="no axis"):
        fft.rfftn(emberlet.asarray(1.0))
    with pytest.raises(AxisError, match="axis 2"):
        fft.fftshift(x, axes=2)


def test_transforms_take_numpys_numbers_and_lists() -> None:
    same(fft.fftshift(emberlet.asarray(Z), axes=np.int64(0)), np.fft.fftshift(Z, axes=0))
    same(fft.ifft(fft.fft([1.0, 2.0, 4.0])), np.array([1.0, 2.0, 4.0]) + 0j)


@pytest.mark.parametrize("name", ["log", "log1p", "atan", "atanh"])
def test_poles_are_infinite(backend: str, name: str) -> None:
    poles = np.array({"atan": [1j, -1j], "atanh": [1, -1], "log1p": [-1]}.get(name, [0]), complex)
    with np.errstate(all="ignore"):
        expected = getattr(np, "arc" + name[1:] if name[0] == "a" else name)(poles)
    np.testing.assert_array_equal(np.asarray(getattr(F, name)(emberlet.asarray(poles))), expected)


def test_an_integer_beyond_every_float_is_refused() -> None:
    with pytest.raises(DTypeError, match="complex64"):
        emberlet.asarray([1j, 10**400])


def test_a_signal_comes_back_from_its_short_time_transform() -> None:
    x = emberlet.asarray(R.randn(2, 40).astype(np.float32))
    window = F.hann_window(8)
    frames = F.stft(x, 4, window)
    back = F.istft(frames, 4, window)
    # The first and the last sample lie where the window is 0.
    np.testing.assert_allclose(np.asarray(back)[:, 1:-4], np.asarray(x)[:, 1:-4], atol=1e-5)
    np.testing.assert_allclose(np.asarray(F.istft(F.stft(x, 8, None, 8), 8, frame_length=8)), np.asarray(x), atol=1e-5)
    assert F.istft(frames, 4, window, length=50).shape == (2, 50)
    assert linalg.vector_norm(back).item() > 0


@every("backend", ["numpy", "python"])
def test_a_complex_number_takes_the_precision_of_the_tensor_beside_it(backend: str) -> None:
    real = emberlet.asarray([1.0], dtype="float64", backend=backend)
    double = real.astype("complex128")
    sums = [real * 0.1j, 0.1j * real, double * 0.1j, double - (1 - 0.1j), emberlet.where(real > 0, 0.1j, double)]
    for found in (*sums, emberlet.asarray([0.1j], dtype="complex128"), emberlet.asarray(0.1j, dtype="complex128")):
        assert found.dtype.name == "complex128" and found.flatten()[0].item() == 0.1j
    double[0] = 0.1j
    assert double.tolist() == [0.1j]
    single = real.astype("float32")
    assert ((single * 0.1j).dtype.name, (double.astype("complex64") + 1j).dtype.name) == ("complex64", "complex64")


@every(
    "call",
    [
        lambda p, z: p.multiply(z, 0.1j), lambda p, z: p.append(z, 0.1j), lambda p, z: p.append(z, [0.1j]),
        lambda p, z: p.insert(z, 0, 0.1j), lambda p, z: p.outer(z, [0.1j]), lambda p, z: p.concat([z, [0.1j]]),
        lambda p, z: p.stack([z, [0.1j]]), lambda p, z: p.kron(z, [0.1j]), lambda p, z: p.where([True], 0.1j, z),
        lambda p, z: p.pad(z, ((1, 1),), **{"constant_values" if p is np else "value": 0.1j}),
        lambda p, z: p.full_like(z, 0.1j), lambda p, z: p.tensordot(z, [[0.1j]], axes=1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("backend", NAMES)
def test_a_complex_number_is_as_precise_in_each_function(call: Any, backend: str) -> None:
    found = call(emberlet, emberlet.asarray([1.0], dtype="complex128", backend=backend))
    np.testing.assert_array_equal(np.asarray(found), call(np, np.array([1.0 + 0j])), strict=True)


@pytest.mark.parametrize("backend", NAMES)
def test_a_complex_number_is_as_precise_by_keyword_and_in_an_assignment(backend: str) -> None:
    z = emberlet.asarray([1.0], dtype="complex128", backend=backend)
    mask = emberlet.asarray([True], backend=backend)
    changed = emberlet.asarray([1.0], dtype="complex128", backend=backend)
    changed[mask] = [0.1j]
    for found in (emberlet.multiply(z, x2=0.1j), emberlet.multiply(x1=0.1j, x2=z), emberlet.mask_fill(z, mask, 0.1j),
                  F.slice_assign(z, [(0, 1)], 0.1j), changed):  # fmt: skip
        assert found.tolist() == [0.1j]
    assert emberlet.is_close(z * 0.1j, 0.1j, rtol=0, atol=1e-12).tolist() == [True]


@pytest.mark.parametrize("backend", NAMES)
def test_linear_algebra_takes_keywords_and_lists_of_the_tensors_precision(backend: str) -> None:
    z = emberlet.asarray([[2j, 0], [0, 1]], backend=backend)
    assert linalg.det(x=z).item() == 2j and emberlet.round(x=z).tolist() == [[2j, 0], [0, 1]]
    for found in (linalg.solve(z, [2.0, 3.0]), linalg.solve(x1=z, x2=[2.0, 3.0])):
        assert found.tolist() == [-1j, 3] and found.dtype.name == "complex64"
    assert linalg.solve(z.astype("complex128"), [0.2, 0.1]).tolist() == [-0.1j, 0.1]


def test_the_first_complex_numbers_may_come_from_a_generator() -> None:
    code = "import emberlet; print(emberlet.stack(emberlet.asarray(v) for v in [1j, 2j]).tolist())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert said.stdout.strip() == "[1j, 2j]"


@every("arguments", ["np.array([1j])", "[np.complex64(1j)]", "x=1j"])
def test_the_first_complex_numbers_of_a_program_are_refused_as_later_ones(arguments: str) -> None:
    code = f"import emberlet, numpy as np; emberlet.erf({arguments})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert "DTypeError: erf" in said.stderr.splitlines()[-1]


def test_the_first_complex_number_of_a_program_is_as_precise() -> None:
    code = "import emberlet; print((emberlet.asarray([1.0], dtype='float64', backend='numpy') * 0.1j).tolist())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert said.stdout.strip() == "[0.1j]"


def test_named_tuples_hold_tensors_and_complex_numbers() -> None:
    class Pair(NamedTuple):
        first: Any
        second: Any

    z = emberlet.asarray(1 + 2j, dtype="complex128")
    assert F.stack(Pair(z, 0.5j)).tolist() == [1 + 2j, 0.5j]


def test_a_conjugate_without_axes_is_an_array() -> None:
    found = emberlet.conj(emberlet.asarray(np.array(1 + 2j)))
    assert isinstance(found.data, np.ndarray)
    assert complex(found) == 1 - 2j
