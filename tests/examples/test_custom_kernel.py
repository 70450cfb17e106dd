"""examples/custom_kernel: the kernel equals the operations it is made of, on every backend and as part of a plan."""

import importlib.util
import sys

import emberlet as el
import numpy as np
import pytest
from emberlet.backend import get_backend
from emberlet.errors import BackendError, ShapeError

from tools.paths import ROOT

SHAPES = [
    ((5, 7), (7, 9), (5, 9)),
    ((5, 7), (7, 9), (9,)),
    ((17, 33), (33, 20), ()),
    ((2, 3, 5, 7), (3, 7, 9), (1, 9)),
    ((2, 1, 5, 7), (1, 3, 7, 40), (2, 3, 5, 40)),
    ((4, 1, 3), (3, 1), (4, 1, 1)),
    ((1, 1), (1, 1), (1, 1)),
    ((0, 3), (3, 2), (2,)),
    ((2, 0), (0, 3), (3,)),
]


@pytest.fixture(scope="module")
def fused():
    spec = importlib.util.spec_from_file_location("fused", ROOT / "examples" / "custom_kernel" / "fused.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fused"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpu():
    pytest.importorskip("wgpu")
    return get_backend("wgpu")


def drawn(shapes, backend, dtype="float32"):
    random = np.random.default_rng(0)
    arrays = [np.asarray(random.standard_normal(s), dtype) for s in shapes]
    return arrays, [el.asarray(a, backend=backend) for a in arrays]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("backend", ["python", "numpy", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_it_is_the_product_plus_bias_held_above_zero(fused, backend, shapes):
    (a, b, c), tensors = drawn(shapes, backend)
    y = fused.matmul_add_relu(*tensors)
    wanted = np.maximum(a @ b + c, 0)
    assert y.shape == wanted.shape
    assert repr(y.backend) == backend
    np.testing.assert_allclose(np.asarray(y.tolist()).reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.needs("gpu-driver")
def test_the_gpu_runs_the_kernel_and_compiles_it_once(fused, gpu):
    _, first = drawn(((19, 23), (23, 21), (21,)), gpu)
    _, second = drawn(((11, 23), (23, 31), (31,)), gpu)  # the same inner size and rank: the same kernel
    recorded = fused.matmul_add_relu(*first)
    assert recorded.data.op == "kernel"
    recorded.tolist()
    compiled = len(gpu.device.pipelines)
    fused.matmul_add_relu(*second).tolist()
    assert len(gpu.device.pipelines) == compiled


@pytest.mark.needs("gpu-driver")
def test_inputs_are_computed_before_the_kernel_and_the_rest_after_it(fused, gpu):
    (a, b, c), (lhs, rhs, bias) = drawn(((7, 5), (7, 9), (5, 9)), gpu)
    y = fused.matmul_add_relu((lhs * 2).mT, rhs.exp(), bias[:, ::-1]) + 1
    wanted = np.maximum((2 * a).T @ np.exp(b) + c[:, ::-1], 0) + 1
    np.testing.assert_allclose(y.tolist(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.needs("gpu-driver")
def test_it_becomes_part_of_a_plan(fused, gpu):
    (a, b, c), (lhs, rhs, bias) = drawn(((4, 6), (6, 8), (8,)), gpu)

    class Layer(el.Module):
        def __init__(self):
            self.weight, self.bias = el.Param(rhs), el.Param(bias)

        def forward(self, x):
            return fused.matmul_add_relu(x, self.weight.val(), self.bias.val()).sum(axis=1)

    compiled = Layer().compile(lhs, backend=gpu)
    assert compiled.cut is None
    np.testing.assert_allclose(compiled(lhs).tolist(), np.maximum(a @ b + c, 0).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.needs("gpu-driver")
def test_another_dtype_takes_the_operations_it_is_made_of(fused, gpu):
    (a, b, c), tensors = drawn(((3, 4), (4, 5), (5,)), gpu, "float16")
    y = fused.matmul_add_relu(*tensors)
    assert y.data.op != "kernel"
    np.testing.assert_allclose(y.tolist(), np.maximum(a @ b + c, 0), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        (((3, 4), (5, 6), (6,)), r"\(3, 4\) @ \(5, 6\): columns of lhs must equal rows of rhs"),
        (((4,), (4, 6), (6,)), "columns of lhs"),
        (((2, 3, 4), (3, 4, 6), (6,)), "do not broadcast"),
        (((3, 4), (4, 6), (5,)), "do not broadcast"),
        (((3, 4), (4, 6), (2, 3, 6)), r"bias \(2, 3, 6\) does not broadcast to the product's \(3, 6\)"),
    ],
)
def test_shapes_that_do_not_fit_say_both(fused, shapes, says):
    with pytest.raises(ShapeError, match=says):
        fused.matmul_add_relu(*drawn(shapes, "numpy")[1])


def test_tensors_of_two_backends_do_not_mix(fused):
    _, (lhs, rhs, _) = drawn(((2, 2), (2, 2), (2,)), "numpy")
    _, (_, _, bias) = drawn(((2, 2), (2, 2), (2,)), "python")
    with pytest.raises(BackendError, match="lhs is on numpy, rhs on numpy, bias on python"):
        fused.matmul_add_relu(lhs, rhs, bias)


@pytest.mark.needs("gpu-driver")
def test_launch_refuses_what_has_no_buffer_there(gpu):
    def launch(*inputs, dtype=el.float32):
        return gpu.launch("mine", "", inputs, dtype, (1,), (1, 1, 1))

    here = el.ones((1,), backend=gpu)
    with pytest.raises(BackendError, match="kernel mine of wgpu was given a tensor of numpy"):
        launch(el.ones((1,), backend="numpy"))
    with pytest.raises(BackendError, match=r"was given emberlet\.float32 \(0,\), which has no buffer|float32 \(0,\)"):
        launch(el.ones((0,), backend=gpu))
    with pytest.raises(BackendError, match="cannot return string"):
        launch(here, dtype=el.string)
    with pytest.raises(BackendError, match="has 8 inputs; at most 7 fit"):
        launch(*[here] * 8)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("backend", ["numpy", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))])
def test_its_gradients_are_those_of_the_operations_it_is_made_of(fused, backend, shapes):
    arrays, _ = drawn(shapes, backend)

    def gradients(function, where):
        leaves = [el.asarray(a, backend="autodiff:" + where).require_grad() for a in arrays]
        y = function(*leaves)
        weights = np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)
        grads = y.backward(el.asarray(weights, backend=where))
        return [np.asarray(x.grad(grads)) for x in leaves]

    wanted = gradients(fused.reference, "numpy")
    for found, expected in zip(gradients(fused.matmul_add_relu, backend), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.needs("gpu-driver")
def test_its_gradient_runs_the_kernel(fused, gpu):
    gradient, y = (el.asarray(np.array(v, np.float32), backend=gpu) for v in ([1.0, 2.0, 3.0], [1.0, 0.0, -1.0]))
    assert fused.relu_backward(gradient, y).data.op == "kernel"
