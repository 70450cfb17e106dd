"""Integer powers large enough to wrap, and empty products: the right elements, in little time and memory."""

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

BASES = [0, 1, -1, 2, -2, 3, -3, 7, 10, 255, -128, 2**31 - 1]
EXPONENTS = [0, 1, 2, 31, 62, 63, 64, 65, 100, 1 << 20, 1 << 40, (1 << 62) + 1]


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
def test_integer_powers_wrap(dtype, backend):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    pairs = [(b, e) for b in BASES for e in EXPONENTS if low <= b <= high and low <= e <= high]
    got = el.asarray([b for b, _ in pairs], dtype=dtype, backend=backend) ** el.asarray(
        [e for _, e in pairs], dtype=dtype, backend=backend
    )
    bits = np.iinfo(dtype).bits
    wanted = [pow(b, e, 1 << bits) for b, e in pairs]
    wanted = [w - (1 << bits) if low < 0 and w > high else w for w in wanted]
    assert got.tolist() == wanted


@pytest.mark.parametrize("backend", ["python", "numpy"])
@every("shape", [(1, 0, 5), (2, 0, 4, 3), (0, 3, 4), (1, 0, 3, 3, 3)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_a_convolution_without_channels_is_its_bias(shape, bias, padding, backend):
    n = len(shape) - 2
    x = el.zeros(shape, backend=backend)
    weight = el.zeros((4, shape[1], *(2,) * n), backend=backend)
    b = el.asarray([1.0, 2.0, 3.0, 4.0], backend=backend) if bias else None
    y = F.conv(x, weight, b, padding=padding)
    expected = (shape[0], 4, *(d - 1 + 2 * padding for d in shape[2:]))
    assert y.shape == expected
    want = np.broadcast_to(np.reshape([1, 2, 3, 4] if bias else [0] * 4, (1, 4) + (1,) * n), expected)
    np.testing.assert_array_equal(np.reshape(y.tolist(), expected), want)
    t = F.conv_transpose(x, el.zeros((shape[1], 4, *(2,) * n), backend=backend), b)
    expected = (shape[0], 4, *(d + 1 for d in shape[2:]))
    assert t.shape == expected
    want = np.broadcast_to(np.reshape([1, 2, 3, 4] if bias else [0] * 4, (1, 4) + (1,) * n), expected)
    np.testing.assert_array_equal(np.reshape(t.tolist(), expected), want)


@pytest.mark.parametrize("backend", ["python", "numpy"])
@pytest.mark.parametrize(("a", "b"), [((2, 0), (0, 3)), ((4, 2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3), (3, 0))])
def test_products_over_nothing(a, b, backend):
    y = el.zeros(a, backend=backend) @ el.zeros(b, backend=backend)
    expected = np.zeros(a) @ np.zeros(b)
    assert y.shape == expected.shape and y.tolist() == expected.tolist()
