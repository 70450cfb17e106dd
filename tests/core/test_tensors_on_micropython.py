"""The same expressions on MicroPython's python backend and on CPython with NumPy."""

from __future__ import annotations

import json
import math

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from support.rows import every

from tools.micropython import Port

# x: (2, 4, 5) floats, w: (3, 2, 3) floats, image: (1, 2, 6, 6) floats, k: (4, 2, 3, 3) floats, n: (3, 4) int64.
EXPRESSIONS = [
    "F.conv1d(x, w, groups=2, padding=1) if False else F.conv1d(x, x[:, :, :3], padding=1)",
    "F.conv2d(image, k, x[0, :, 0], stride=2, padding=1)",
    "F.conv2d(image, k[:, :1], padding=((1, 0), (0, 1)), groups=2, dilation=2)",
    "F.conv3d(image.reshape((1, 2, 3, 4, 3)), k[:, :, :2, :2].reshape((4, 2, 1, 2, 2)))",
    "F.conv_transpose2d(image, k.permute_dims((1, 0, 2, 3)), stride=2, padding=1, output_padding=1)",
    "F.max_pool2d(image, 2)",
    "F.max_pool2d(image, 3, 2, 1, ceil_mode=True)",
    "F.max_pool_with_indices(image, 2)[1]",
    "F.avg_pool2d(image, 3, 2, 1, count_include_pad=False)",
    "F.adaptive_avg_pool2d(image, (4, 3))",
    "F.global_avg_pool(image)",
    "F.softmax(x, 1)",
    "F.log_softmax(x)",
    "F.gelu(x)",
    "F.layer_norm(x, x[0, 0], x[0, 1])",
    "F.group_norm(x, 2)",
    "F.batch_norm(x, x[0, :, 0], abs(x[0, :, 1]), x[0, :, 2], x[0, :, 3])",
    "F.rms_norm(x)",
    "x @ x.mT",
    "F.median(x, (0, 2))",
    "F.median_with_indices(x, 1)[1]",
    "F.quantile(x, [0.1, 0.6], 1, keepdims=True)",
    "F.nanquantile(x, 0.3, 2)",
    "F.nanvar(x, 1, correction=1)",
    "F.nan_to_num(x)",
    "F.histogram(x, 4, (-2, 2))[0]",
    "F.bincount(n.reshape((-1,)), minlength=9)",
    "F.cov(x[0])",
    "F.corrcoef(x[0])",
    "F.diag(x[0], 1)",
    "F.diag(x[0, 0], -2)",
    "F.trace(n)",
    "F.cross(x[:, :, :3], x[:, :, 2:])",
    "F.dstack([x[0], x[1]])",
    "F.soft_shrink(F.threshold(x, 0.1, 2.0))",
    "F.rad2deg(F.deg2rad(x))",
    "F.linear(x, x[0].mT, x[0, :, 0])",
    "F.einsum('bij,bkj->bik', x, x)",
    "F.einsum('bii->bi', x[:, :, :4])",
    "F.resize(image, sizes=[1, 2, 9, 4], mode='linear')",
    "F.resize(image, scales=[1, 1, 2, 2], mode='cubic')",
    "F.lstm(x.permute_dims((1, 0, 2)), w4, r4)[0]",
    "F.gru(x.permute_dims((1, 0, 2)), w4[:, :6], r4[:, :6], linear_before_reset=True)[1]",
    "F.quantize_linear(x, 0.1, 3)",
    "F.dequantize_linear(n.astype('int8'), 0.5, emberlet.asarray(1, dtype='int8'))",
    "F.dynamic_quantize_linear(x)[0]",
    "F.one_hot(n % 3, 3)",
    "F.gather_nd(x, emberlet.asarray([[0, 1], [1, 2]]))",
    "F.scatter_nd(x, emberlet.asarray([[0, 1], [1, 2]]), x[:, 0])",
    "F.attention(x[None], x[None], x[None])",
    "F.cumsum(x, 1, exclusive=True, reverse=True)",
    "F.reverse_sequence(n, emberlet.asarray([1, 2, 3, 3]), 1, 0)",
    "x.sort(2, descending=True)",
    "emberlet.argsort(n % 3, axis=1)",
    "emberlet.searchsorted(emberlet.asarray([1, 3, 5]), n)",
    "emberlet.unique_all(n % 3).inverse_indices",
    "x[:, ::-2, [0, 3]]",
    "x[x > 0]",
    "n[n % 2 == 0]",
    "emberlet.where(n > 4, n, -n)",
    "x.var(axis=(0, 2), correction=1)",
    "emberlet.cumulative_prod(x, axis=2)",
    "x.max(axis=1)",
    "n.argmin(axis=0)",
    "emberlet.logsumexp(x, 1) if hasattr(emberlet, 'logsumexp') else x",
    "x.astype('float16').astype('float32')",
    "x.astype('bfloat16').astype('float32')",
    "x.astype('float8_e4m3fn').astype('float32')",
    "n.astype('int4')",
    "(n * 100).astype('uint8') + 200",
    "n.astype('int8') << 3",
    "n // -3",
    "n % -3",
    "x % 0.3",
    "emberlet.floor_divide(x, 0.3)",
    "x / 0.0",
    "(x - x) / 0.0 == 0",
    "emberlet.log(x)",
    "emberlet.sqrt(-abs(x)) != 0",
    "emberlet.exp(x * 1000)",
    "abs(x) ** 0.5",
    "emberlet.tanh(x) + emberlet.atan2(x, 2.0)",
    "emberlet.log1p(abs(x)) + emberlet.expm1(x) + emberlet.erf(x)",
    "emberlet.nextafter(x, 2 * x) - x",
    "emberlet.isin(n, [1, 5]) if hasattr(emberlet, 'isin') else n",
    "F.random_bits((9,), seed=5)",
    "F.uniform((9,), seed=5)",
    "F.normal((9,), seed=5)",
    "F.randint(-5, 70000, (9,), seed=5)",
    "F.pad(x, [(0, 1), (2, 0), (1, 1)], mode='edge')",
    "emberlet.tile(x, (1, 2, 1))",
    "emberlet.repeat(n, [1, 2, 0], axis=0)",
    "emberlet.roll(n, (1, -1), axis=(0, 1))",
    "emberlet.concat([n, n], axis=1)",
    "x.to_data().convert('float16').to_tensor()",
    "F.bitcast(x, 'int32')",
    "emberlet.linspace(0, 1, 5)",
    "emberlet.eye(3, k=1)",
    "emberlet.asarray([[1.5, 2.5], [True, 2]])",
    "x.to('python').permute_dims((2, 0, 1)).reshape((5, 8))",
    "F.depth_to_space(image.reshape((1, 8, 3, 3)), 2)",
    "F.attention(ramp(1, 4, 3, 4), ramp(1, 2, 5, 4), ramp(1, 2, 5, 4), is_causal=True, softcap=2.0)",
    "F.attention(ramp(1, 3, 8), ramp(1, 5, 8), ramp(1, 5, 8), num_heads=2, window=(1, 1))",
    "F.multi_head_attention(ramp(1, 3, 2, 3, 4), num_heads=2)[0]",
    "F.group_query_attention(ramp(1, 1, 16), ramp(1, 1, 8), ramp(1, 1, 8), ramp(1, 2, 3, 4), ramp(1, 2, 3, 4), "
    "ints((3,), (1,)), 4, num_heads=4, kv_num_heads=2)[0]",
    "F.rotary_embedding(ramp(1, 2, 3, 4), ramp(9, 2), ramp(9, 2), ints((2,), (1,)))",
    "F.linear_attention(ramp(1, 3, 8), ramp(1, 3, 4), ramp(1, 3, 6), decay=ramp(1, 3, 1), "
    "beta=ramp(1, 3, 1), num_heads=2, kv_num_heads=1)[0]",
    "F.causal_conv(ramp(1, 2, 5), ramp(2, 1, 3), activation='silu')[0]",
    "F.lstm(ramp(3, 1, 2), ramp(2, 12, 2), ramp(2, 12, 3), ramp(2, 24), direction='bidirectional')[0]",
    "F.lstm(ramp(3, 1, 2), ramp(1, 12, 2), ramp(1, 12, 3), peepholes=ramp(1, 9), clip=0.3)[1]",
    "F.gru(ramp(3, 2, 2), ramp(1, 9, 2), ramp(1, 9, 3), ramp(1, 18), sequence_lens=ints((3, 2), (2,)))[0]",
    "F.rnn(ramp(3, 1, 2), ramp(1, 3, 2), ramp(1, 3, 3), activations=['HardSigmoid'], alphas=[0.3])[0]",
    "F.quantize_linear(ramp(2, 3), ramp(3) + 2, ints((1, 2, 3), (3,), 'int8'))",
    "F.qlinear_conv(ints(range(16), (1, 1, 4, 4), 'uint8'), emberlet.asarray(0.1), ints((3,), (), 'uint8'), "
    "ints(range(9), (1, 1, 3, 3), 'int8'), emberlet.asarray(0.2), "
    "ints((0,), (), 'int8'), emberlet.asarray(0.5), ints((7,), (), 'uint8'))",
    "F.matmul_nbits(ramp(1, 32), ints(range(32), (2, 1, 16), 'uint8'), ramp(2), rows=32, columns=2)",
    "F.resize(ramp(1, 1, 4, 4), sizes=[1, 1, 2, 7], mode='cubic', antialias=True)",
    "F.resize(ramp(1, 1, 3, 4), scales=[1, 1, 2, 1.5])",
    "F.einsum('iij->j', ramp(3, 3, 2))",
    "F.gather_nd(ramp(2, 3, 4), ints((0, 1, 1, -1), (2, 2)))",
    "F.scatter_nd(ramp(4, 3), ints((0, 3), (2, 1)), ramp(2, 3), 'add')",
    "F.tensor_scatter(ramp(1, 4, 2), ramp(1, 3, 2), ints((2,), (1,)), mode='circular')",
    "F.det(ramp(2, 3, 3))",
    "F.cross_entropy(ramp(2, 3), ints((1, 2), (2,)), ramp(3) + 2, ignore_index=0)",
]

SETUP = """
import emberlet
from emberlet import functional as F
def ramp(*shape):
    n = 1
    for d in shape:
        n *= d
    return emberlet.asarray([((i * 37) % 23 - 11) / 8 for i in range(n)]).reshape(shape)
def ints(values, shape, dtype="int64"):
    return emberlet.asarray(list(values), dtype=dtype).reshape(shape)
x, w, image, k = ramp(2, 4, 5), ramp(3, 2, 3), ramp(1, 2, 6, 6), ramp(4, 2, 3, 3)
w4, r4 = ramp(1, 8, 5), ramp(1, 8, 2)
n = emberlet.asarray([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]])
"""
SCRIPT = (
    SETUP
    + """
import gc
import json
names = globals()
for code in json.load(open({path!r})):
    try:
        value = eval(code, names)
        print("\\nresult", value.dtype, list(value.shape), [repr(v) for v in value.backend.to_list(value)])
    except Exception as error:
        print("\\nresult failed", repr(error))
    gc.collect()
"""
)


@pytest.fixture(scope="module", params=["unix", "armhf"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a port prints for each expression."""
    port: Port = request.getfixturevalue(f"{request.param}_port")
    path = tmp_path_factory.mktemp("expressions") / "expressions.json"
    path.write_text(json.dumps(EXPRESSIONS), encoding="utf-8")
    out = port.run(SCRIPT.format(path=str(path)), heap="2M").check().stdout
    return [line[len("result ") :] for line in out.splitlines() if line.startswith("result ")]


@every("index", range(len(EXPRESSIONS)))
def test_an_expression_gives_on_micropython_what_numpy_gives(results, index):
    said = results[index]
    assert not said.startswith("failed"), said
    dtype, rest = said.split(" ", 1)
    shape, values = rest.split("] [", 1)
    shape = json.loads(shape + "]")
    found = [
        float(v.strip().strip("'")) if v.strip("' ") not in ("True", "False") else "True" in v
        for v in values[:-1].split(",")
        if v.strip()
    ]
    names: dict[str, object] = {}
    emberlet.set_default_backend("numpy")
    try:
        exec(SETUP, names)
        expected = eval(EXPRESSIONS[index], names)
    finally:
        emberlet.set_default_backend(None)
    assert (dtype, tuple(shape)) == (expected.dtype.name, expected.shape)
    flat = expected.backend.to_list(expected)
    np.testing.assert_allclose(np.array(found, float), np.array(flat, float), rtol=2e-5, atol=2e-6)


def test_weights_in_flash_are_read_where_they_lie(unix_port):
    script = """
import gc
import emberlet
from array import array
from emberlet import dtypes, functional as F
from emberlet.python_backend.buffers import Borrowed
backend = emberlet.get_backend("python")
flash = bytes(array("f", [i / 100 for i in range(64 * 10)]))
weight = backend.from_bytes(memoryview(flash), dtypes.float32, (64, 10))
assert isinstance(weight.data[0], Borrowed)
x = emberlet.ones((1, 64))
F.linear(x, weight)
gc.collect()
before = gc.mem_alloc()
gc.disable()
y = F.linear(x, weight)
grown = gc.mem_alloc() - before
gc.enable()
print(round(y.tolist()[0][9] * 100), weight[3, 4].item(), F.embedding(emberlet.asarray([2]), weight).tolist()[0][1])
"""
    out = unix_port.run(script).check().stdout.split()
    assert int(out[0]) == sum(range(9, 640, 10))
    assert math.isclose(float(out[1]), 0.34, rel_tol=1e-6)
    assert math.isclose(float(out[2]), 0.21, rel_tol=1e-6)


def test_asking_for_what_does_not_exist_fails_alike(unix_port):
    script = """
import emberlet
for code in ("emberlet.frobnicate", "emberlet.ones((1,)).frobnicate", "emberlet.functional.frobnicate"):
    try:
        eval(code)
    except AttributeError as error:
        print(error)
try:
    emberlet.ones((2, 3)) + emberlet.ones((4,))
except emberlet.ShapeError as error:
    print(error)
"""
    out = unix_port.run(script).check().stdout
    assert out.count("frobnicate") == 3
    assert "(2, 3) and (4,)" in out


def test_an_extended_backend_is_asked_there_too(unix_port):
    """Also for a family that is loaded later, and for composites that composites call."""
    script = """
import emberlet
from emberlet.backend import extend
from emberlet.python_backend import PythonBackend
x = emberlet.asarray([1.0, -2.0])
@extend(PythonBackend, "softplus")
def softplus(backend, x, beta=1.0):
    print("asked")
    return emberlet.functional.softplus(x, beta) * 0 + 3.0
print(emberlet.functional.softplus(x).tolist(), emberlet.functional.log_sigmoid(x).tolist())
"""
    out = unix_port.run(script).check().stdout
    assert out.split("\n")[:3] == ["asked", "asked", "[3.0, 3.0] [-3.0, -3.0]"]


def test_functional_is_reached_by_every_path():
    assert F.relu is emberlet.functional.relu
