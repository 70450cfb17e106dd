"""Models compiled on NumPy: the model's own results for every call, shape and thread, and a clear message where a plan
is impossible. Random graphs are compared by tests/fuzz, ONNX's cases by tests/conformance."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.errors import BackendError, EmberletError, IndexingError
from emberlet.host.numpy_backend.compile import Compiled, compile
from emberlet.host.numpy_backend.compile import plan as plans
from emberlet.model import Model
from emberlet.module import Module
from emberlet.param import Param
from emberlet.tensor import Tensor

CHOOSE = np.random.default_rng(17)


def drawn(*shape: int, dtype: str = "float32") -> Tensor:
    values = CHOOSE.standard_normal(shape) * 3
    return emberlet.asarray(values.astype(dtype), backend="numpy")


def same(found: Any, want: Any) -> None:
    assert found.dtype is want.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(want))


class Net(Model):
    INPUTS = (("image", "float32", ("batch", 1, 8, 8)),)

    def __init__(self, backend: Any = None) -> None:
        self.conv = nn.Conv2d(1, 4, kernel_size=(3, 3), padding=((1, 1), (1, 1)), backend=backend)
        self.dense = nn.Linear(64, 5, backend=backend)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.conv(image))
        x = F.max_pool2d(x, kernel_size=(2, 2), stride=(2, 2))
        return self.dense(F.reshape(x, (x.shape[0], -1)))


@pytest.fixture
def net() -> Net:
    return Net(get_backend("numpy"))


def test_results_are_those_of_the_model_bit_for_bit_also_for_new_inputs_and_shapes(net: Net) -> None:
    compiled = net.compile(drawn(1, 1, 8, 8), backend="numpy")
    for shape in ((1, 1, 8, 8), (1, 1, 8, 8), (3, 1, 8, 8), (1, 1, 8, 8)):
        image = drawn(*shape)
        same(compiled(image), net(image))
    assert isinstance(compiled, Compiled) and compiled.cut is None


def test_results_and_inputs_belong_to_the_caller(net: Net) -> None:
    compiled = net.compile(backend="numpy")
    image = drawn(1, 1, 8, 8)
    before = np.array(image)
    first = compiled(image)
    kept = np.array(first)
    np.asarray(first)[...] = 7
    second = compiled(drawn(1, 1, 8, 8))
    np.asarray(second)[...] = 8
    same(compiled(image), net(image))
    np.testing.assert_array_equal(np.asarray(image), before)
    np.testing.assert_array_equal(kept, np.asarray(net(image)))


def test_a_result_that_is_an_input_or_a_constant_is_no_alias() -> None:
    fixed = drawn(3)

    class Through(nn.Module):
        def __init__(self) -> None:
            self.fixed = fixed

        def forward(self, x: Tensor) -> Any:
            return x, self.fixed, x[1:]

    x = drawn(3)
    given, constant, part = Through().compile(x, backend="numpy")(x)
    for found, want in ((given, x), (constant, fixed), (part, x[1:])):
        same(found, want)
    given[0] = 99.0
    constant[0] = 99.0
    assert 99.0 not in x.tolist() + fixed.tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x + y, x * 2, x),
        lambda x, y: {"a": [x + 1, (y,)], "b": None, "c": x.shape},
    ],
)
def test_compiled_functions_give_results_of_the_same_structure(function: Any) -> None:
    x, y = drawn(6, 6), drawn(6, 6)
    compiled = compile(function, x, y)
    for _ in range(2):
        x, y = drawn(6, 6), drawn(6, 6)
        _equal(compiled(x, y), function(x, y))


def _equal(found: Any, want: Any) -> None:
    assert type(found) is type(want)
    if isinstance(want, Tensor):
        same(found, want)
    elif isinstance(want, (list, tuple)):
        assert len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            _equal(f, w)
    elif isinstance(want, dict):
        assert found.keys() == want.keys()
        for key in want:
            _equal(found[key], want[key])
    else:
        assert found == want


@pytest.mark.parametrize("shape", [(3, 700, 300), (1, 2, 400, 500), (600000,), (5, 1, 90000)])
def test_chains_over_large_arrays_run_block_by_block_and_are_the_same(shape: tuple[int, ...]) -> None:
    scale = drawn(*shape[-1:])

    class Chain(nn.Module):
        def __init__(self) -> None:
            self.scale = scale

        def forward(self, x: Tensor, y: Tensor) -> Any:
            z = F.exp(x * self.scale) / (1 + F.abs(y))
            z = F.where(z > 2, y, z) + x
            return F.sqrt(F.abs(z)), z

    chain = Chain()
    x, y = drawn(*shape), drawn(*shape)
    compiled = chain.compile(x, y, backend="numpy")
    for _ in range(2):
        x, y = drawn(*shape), drawn(*shape)
        _equal(compiled(x, y), chain(x, y))
    largest = max(a.nbytes for s in compiled.plan().steps for a in s.writes if s.over is not None)
    assert largest <= 2 * 90000 * 4, "no step writes more than about a block"


def test_a_weight_that_is_a_part_of_the_input_is_read_before_it_is_overwritten() -> None:
    def function(x: Tensor) -> Tensor:
        return F.layer_norm(F.exp(x), weight=x[0], bias=x[1], axis=-1)

    x = drawn(4, 8)
    try:
        want = function(x)
    except TypeError:  # the signature, not what is tested
        pytest.fail("layer_norm takes weight, bias and axis")
    same(compile(function, x)(x), want)


def test_threads_share_a_compiled_model(net: Net) -> None:
    compiled = net.compile(backend="numpy")
    images = [drawn(1 + i % 3, 1, 8, 8) for i in range(12)]
    wants = [np.asarray(net(image)) for image in images]
    wrong: list[Any] = []

    def work(start: int) -> None:
        try:
            for i in range(60):
                at = (start + i) % len(images)
                if not np.array_equal(np.asarray(compiled(images[at])), wants[at]):
                    wrong.append(at)
        except Exception as error:  # told by the test
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupted_call_disturbs_no_other(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    plan = compiled.plan()
    bound = plan._free[-1]
    steps = list(bound.steps)

    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    bound.steps[len(steps) // 2] = (interrupt, ())
    with pytest.raises(KeyboardInterrupt):
        compiled(image)
    assert not plan._free, "the buffers of the interrupted call are nobody's"
    same(compiled(image), net(image))


def test_inputs_are_checked_and_taken_as_the_model_takes_them(net: Net) -> None:
    compiled = net.compile(backend="numpy")
    image = drawn(2, 1, 8, 8)
    want = net(image)
    for given in (np.asarray(image), image.to("python"), image.tolist()):
        same(compiled(given), want)
    same(compiled(image=image), want)
    same(compiled({"image": np.asarray(image)}), want)
    for wrong in ([drawn(2, 1, 8, 7)], [drawn(2, 1, 8, 8, dtype="float64")], [], [image, image]):
        with pytest.raises(EmberletError) as said:
            net(*wrong)
        with pytest.raises(type(said.value)) as found:
            compiled(*wrong)
        assert str(found.value) == str(said.value)


def test_a_small_input_that_decides_what_is_computed_has_a_plan_for_each_value() -> None:
    def function(x: Tensor, mode: Tensor) -> Tensor:
        return F.exp(x) if mode == 1 else F.negative(x)

    x = drawn(4)
    one, two = emberlet.asarray(1, backend="numpy"), emberlet.asarray(2, backend="numpy")
    compiled = compile(function, x, one)
    for mode in (one, two, one, two):
        same(compiled(x, mode), function(x, mode))
    assert compiled.cut is None and len(compiled._plans) == 2
    for n in range(9):  # one that counts, for example, would never stop
        mode = emberlet.asarray(n, backend="numpy")
        same(compiled(x, mode), function(x, mode))
    assert "keeps changing" in str(compiled.cut)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: F.exp(x) if F.sum(x).item() > 0 else F.negative(x), "asks for the elements of"),
        (lambda x: F.nonzero(x > 0)[0], "asks for the elements of"),
        (lambda x: _noisy(x), "random numbers"),
        (lambda x: F.astype(x, "string"), "strings"),
    ],
)
def test_a_model_without_a_plan_runs_as_it_is_and_says_why(function: Any, why: str) -> None:
    compiled = compile(function, drawn(40))
    assert why in str(compiled.cut) and why in repr(compiled)
    with pytest.raises(BackendError, match=why):
        compiled.plan()
    x = drawn(40)
    if why != "random numbers":
        same(compiled(x), function(x))
    else:
        assert np.any(np.asarray(compiled(x)) != np.asarray(compiled(x)))


def _noisy(x: Tensor) -> Tensor:
    from emberlet.functional.randomness.draws import random_bits

    return x + F.astype(random_bits(x.shape, backend=x.backend), "float32")


@pytest.mark.parametrize("other", [range(3), 1j, {1, 2}, Tensor], ids=["range", "complex", "set", "class"])
def test_a_result_whose_parts_are_not_known_is_returned_by_the_model_itself(other: object) -> None:
    def function(x: Tensor) -> tuple[Tensor, object]:
        return F.exp(x), other

    x = drawn(3)
    compiled = compile(function, x)
    first, second = compiled(x)
    same(first, F.exp(x))
    assert second is other
    assert f"returns a {type(other).__name__}, whose parts are not known" in str(compiled.cut)


def test_a_list_or_nothing_for_an_input_needs_no_plan() -> None:
    def function(x: Tensor, others: Any = None) -> Tensor:
        return x if others is None else x + others[0]

    x = drawn(3)
    compiled = compile(function)
    same(compiled(x, None), x)
    for given in ([x], (x,)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            same(compiled(x, given), x + x)
        assert [str(w.message) for w in heard if "is a list" in str(w.message)] == [str(w.message) for w in heard]
        assert len(heard) == (type(given) is list)  # it is said once
    same(compiled(x, None), x)
    assert compiled.cut is None and len(compiled.plan(x, None).steps) == 0
    with pytest.raises(BackendError, match="is a list"):
        compile(function).plan(x, [x])


def test_a_function_with_a_tensor_of_its_own_runs_as_it_is() -> None:
    fixed = drawn(3)
    compiled = compile(lambda x: x + fixed, drawn(3))
    x = drawn(3)
    same(compiled(x), x + fixed)
    assert "cannot be traced" in str(compiled.cut)


def test_an_index_outside_is_refused() -> None:
    def function(x: Tensor, at: Tensor) -> Tensor:
        return F.take(x, at, axis=0)

    x = drawn(5, 2)
    compiled = compile(function, x, emberlet.asarray([0, -5], backend="numpy"))
    inside = emberlet.asarray([4, -1], backend="numpy")
    same(compiled(x, inside), function(x, inside))
    for outside in (5, -6):
        with pytest.raises(IndexingError):
            compiled(x, emberlet.asarray([0, outside], backend="numpy"))
    same(compiled(x, inside), function(x, inside))


def test_lstm_and_gru_are_the_same_with_few_steps_and_with_many() -> None:
    for kind in (nn.Lstm, nn.Gru):
        layer = kind(3, 4, backend="numpy")
        for steps in (1, 5, 80):
            x = drawn(2, steps, 3)
            compiled = layer.compile(x, backend="numpy")
            found, want = compiled(x), layer(x)
            for f, w in zip(_parts(found), _parts(want), strict=True):
                np.testing.assert_allclose(np.asarray(f), np.asarray(w), rtol=1e-5, atol=1e-6)


def _parts(x: Any) -> list[Any]:
    if isinstance(x, Tensor):
        return [x]
    return [p for v in (x if isinstance(x, (list, tuple)) else vars(x).values()) for p in _parts(v)]


def test_it_prints_is_pickled_and_gives_its_memory_back(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    assert "NumPy calls for (float32 (1, 1, 8, 8))" in repr(compiled)
    assert "matmul" in repr(compiled.plan()) and "bytes" in repr(compiled.plan())
    again = pickle.loads(pickle.dumps(compiled))
    same(again(image), net(image))
    compiled.release()
    assert "no plan yet" in repr(compiled)
    same(compiled(image), net(image))


def test_plans_of_many_shapes_are_bounded(net: Net) -> None:
    from emberlet.host.numpy_backend.compile.compiled import MAX_SHAPES

    compiled = net.compile(backend="numpy")
    for n in range(1, MAX_SHAPES + 4):
        assert compiled(drawn(n, 1, 8, 8)).shape == (n, 5)
    assert len(compiled._plans) == MAX_SHAPES


def test_no_call_warns(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    infinite = compile(lambda x: F.log(x) / (x - x), image)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(image)
        infinite(image)


def test_later_values_of_a_parameter_of_the_model_are_not_its_own(net: Net) -> None:
    image = drawn(1, 1, 8, 8)
    compiled = net.compile(image, backend="numpy")
    want = compiled(image)
    net.dense.bias.set(net.dense.bias.val() + 1)
    same(compiled(image), want)


def test_buffers_are_shared_by_what_is_not_needed_at_once() -> None:
    class Deep(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(20):
                x = F.permute_dims(F.exp(x) @ x, (1, 0)) * 0.001
            return x

    x = drawn(64, 64)
    compiled = Deep().compile(x, backend="numpy")
    assert compiled.plan().nbytes <= 5 * x.nbytes
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(Deep()(x)), rtol=1e-4)
    assert len(plans.Plan.__doc__ or "") > 0


def test_other_backends_are_refused() -> None:
    with pytest.raises(BackendError, match="numpy"):
        compile(lambda x: x, backend="python")


class Layers(Module):
    """Convolutions, and a function of an image that calls them by their numbers."""

    def __init__(self) -> None:
        self.layers: list[nn.Conv2d] = []
        self.function: Any = None

    def layer(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Callable[..., Tensor]:
        found = nn.Conv2d(
            inputs, outputs, kernel_size=kernel, stride=stride, padding=padding, groups=groups, backend="numpy"
        )
        found.weight, found.bias = Param(drawn(*found.weight.shape)), Param(drawn(outputs))
        self.layers.append(found)
        number = len(self.layers) - 1
        return lambda net, x: net.layers[number](x)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


@pytest.mark.parametrize("seed", range(12))
def test_large_convolutions_add_their_bias_within_the_product(seed: int) -> None:
    """Several layers read one image, directly and with stride or padding; others read their concatenated and pooled
    results."""
    random = np.random.default_rng(seed)
    batch, channels, middle = (int(random.integers(1, 3)), int(random.integers(3, 40)), int(random.integers(16, 64)))
    height, width = int(random.integers(24, 40)), int(random.integers(24, 40))

    net = Layers()
    layer = net.layer

    first = layer(channels, middle, 3, int(random.integers(1, 3)), int(random.integers(0, 2)))
    branches = [
        layer(middle, 48, 1), layer(middle, 48, 3, padding=1), layer(middle, 48, 1, stride=2), layer(middle, 48, 1),
        layer(middle, 48, 1, padding=1), layer(middle, middle * 2, 1, groups=middle),
    ]  # fmt: skip
    chosen = [branches[i] for i in sorted(random.choice(len(branches), 3, replace=False))]
    clipped = bool(random.integers(2))

    def function(net: Layers, x: Tensor) -> list[Tensor]:
        y = first(net, x)
        y = F.relu(y) if clipped else y
        found = [branch(net, y) for branch in chosen]
        both = F.concat([branches[0](net, y), F.relu(branches[1](net, y))], axis=1)
        return [*found, F.relu(found[0]) + found[0], both, F.max_pool2d(both, kernel_size=3, stride=2)]

    x = drawn(batch, channels, height, width)
    net.function = function
    compiled = compile(net, x)
    assert compiled.cut is None
    for _ in range(2):
        x = drawn(batch, channels, height, width)
        for found, want in zip(compiled(x), net(x), strict=True):
            largest = float(np.abs(np.asarray(want)).max())
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6, atol=1e-6 * largest)


def test_arrays_are_taken_without_tensors_only_where_numpy_has_their_dtype():
    """An array of objects may hold anything, so it becomes a Tensor, which checks that the elements are strings."""
    for values, dtype, native in (
        ([1.0, 2.0], "float32", True),
        ([True, False], "bool", True),
        (["a", "b"], "string", False),
    ):
        compiled = compile(lambda x: emberlet.concat([x, x], axis=0))
        x = emberlet.asarray(values, dtype=dtype, backend="numpy")
        assert compiled(x).tolist() == values * 2
        found = compiled.arrays([np.array(values, dtype if native else object)])
        assert (found is not None) == native
        if found is not None:
            assert found[0].tolist() == values * 2


def test_arrays_of_another_number_dtype_or_shape_are_left_to_the_model():
    compiled = compile(lambda x, y: x + y, backend="numpy")
    x = np.ones((2, 3), np.float32)
    assert compiled(*(emberlet.asarray(v, backend="numpy") for v in (x, x))).shape == (2, 3)
    found = compiled.arrays([x, x])
    assert found is not None and found[0].tolist() == (x + x).tolist()
    for given in ([], [x], [x, x, x], [x, x.astype(np.float64)], [x, x[:1]], [x, x.tolist()]):
        assert compiled.arrays(given) is None


@pytest.mark.parametrize("given", [{}, [None], nn.Relu(), None, "abc"])
def test_an_argument_of_another_type_is_refused_as_eagerly_and_leaves_the_plans(given: Any) -> None:
    layer, x = nn.Lstm(3, 2), F.ones((1, 2, 3))
    with pytest.raises(EmberletError) as eager:
        layer(given)
    compiled = compile(layer)
    wanted = compiled(x)[0].tolist()
    with pytest.raises(EmberletError) as caught:
        compiled(given)
    assert str(caught.value) == str(eager.value)
    assert compiled.cut is None and compiled.plan()
    assert compiled(x)[0].tolist() == wanted
