"""The tape and its interface: what requires a gradient, who holds gradients, and what is refused."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.autodiff import Autodiff, checkpoint
from emberlet.backend import Backend, get_backend
from emberlet.errors import ArgumentError, BackendError, DTypeError, EmberletError
from emberlet.functional.transformer.dot_product_attention import dot_product_attention
from support.rows import every

INNER = ["python", "numpy", "wasm"]


@pytest.fixture(params=INNER)
def backend(request: pytest.FixtureRequest) -> Backend:
    return get_backend("autodiff:" + request.param)


def leaf(values: Any, backend: Any = "autodiff:numpy") -> emberlet.Tensor:
    return emberlet.asarray(values, backend=backend).require_grad()


def test_backward_gives_the_gradients_of_every_leaf(backend: Backend) -> None:
    a, b = leaf([[1.0, 2.0], [3.0, 4.0]], backend), leaf([[0.5], [1.5]], backend)
    grads = ((a @ b) * a).sum().backward()
    np.testing.assert_allclose(np.asarray(a.grad(grads)), [[5.0, 8.0], [11.0, 18.0]])
    np.testing.assert_allclose(np.asarray(b.grad(grads)), [[24.0], [34.0]])
    assert a.grad(grads).backend is backend.inner  # type: ignore[attr-defined]


def test_gradients_are_popped_once() -> None:
    x = leaf([1.0, 2.0])
    grads = (x * x).sum().backward()
    assert x.grad_remove(grads).tolist() == [2.0, 4.0]
    assert x.grad(grads) is None


def test_gradients_go_to_another_thread() -> None:
    x = leaf([3.0])
    grads = (x * x).sum().backward()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(x.grad(grads).tolist()))
    thread.start()
    thread.join()
    assert found == [[6.0]]


def test_a_leaf_that_the_result_does_not_depend_on_has_no_gradient() -> None:
    x, y = leaf([1.0]), leaf([2.0])
    assert y.grad((x * x).sum().backward()) is None


def test_a_gradient_that_was_never_asked_for_is_refused_with_advice() -> None:
    x, constant = leaf([1.0]), emberlet.asarray([2.0], backend="autodiff:numpy")
    middle = x * constant
    grads = middle.sum().backward()
    for other in (constant, middle):
        with pytest.raises(EmberletError, match="require_grad"):
            other.grad(grads)


def test_a_computed_tensor_may_require_its_gradient_and_keeps_its_history() -> None:
    x = leaf([2.0])
    middle = (x * x).require_grad()
    grads = (middle * 3).sum().backward()
    assert (middle.grad(grads).tolist(), x.grad(grads).tolist()) == ([3.0], [12.0])


def test_require_grad_says_whether_a_gradient_is_kept() -> None:
    x = emberlet.asarray([1.0], backend="autodiff:numpy")
    assert not x.is_require_grad()
    assert x.require_grad().is_require_grad()
    assert not x.require_grad().set_require_grad(False).is_require_grad()
    assert not (x.require_grad() * 2).is_require_grad()
    assert not emberlet.asarray([1.0], backend="numpy").require_grad().is_require_grad()


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_integers_and_bools_take_no_gradient(dtype: str) -> None:
    with pytest.raises(DTypeError, match="floating-point"):
        emberlet.asarray([1, 0], dtype=dtype, backend="autodiff:numpy").require_grad()


@pytest.mark.parametrize("f", [F.floor, F.ceil, F.round, F.trunc, F.sign, lambda x: F.floor_divide(x, 2.0)])
def test_functions_that_step_have_gradients_of_zeros(f: Any, backend: Backend) -> None:
    x = leaf([0.3, -1.7], backend)
    assert x.grad(f(x).sum().backward()).tolist() == [0.0, 0.0]
    assert x.grad((f(x) * x).sum().backward()).tolist() == f(x).tolist()


def test_steps_of_infinite_slopes_give_zeros() -> None:
    x = leaf([0.0, 4.0])
    assert x.grad(F.floor(F.sqrt(x)).sum().backward()).tolist() == [0.0, 0.0]


# Gradients at kinks, infinities and NaN, by PyTorch 2.13.
POINTS = [float("-inf"), -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, float("inf"), float("nan")]
KINKS: dict[str, tuple[Any, list[float]]] = {
    "relu": (F.relu, [0, 0, 0, 0, 1, 1, 1, 1, 1]),
    "relu6": (F.relu6, [0, 0, 0, 0, 1, 1, 0, 0, 1]),
    "hardtanh": (F.hardtanh, [0, 0, 0, 1, 0, 0, 0, 0, 1]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.25), [0.25, 0.25, 0.25, 0.25, 1, 1, 1, 1, 0.25]),
    "prelu": (lambda x: F.prelu(x, 0.25), [0.25, 0.25, 0.25, 0.25, 1, 1, 1, 1, 0.25]),
    "elu": (lambda x: F.elu(x, 0.5), [0, 0.024893535, 0.18393972, 0.5, 1, 1, 1, 1, 1]),
    "selu": (F.selu, [0, 0.0875290, 0.64676744, 1.7580993, 1.050701, 1.050701, 1.050701, 1.050701, 1.050701]),
    "hard_sigmoid": (lambda x: F.hard_sigmoid(x, 1 / 6), [0, 0, 1 / 6, 1 / 6, 1 / 6, 0, 0, 0, 0]),
    "hard_swish": (F.hard_swish, [0, 0, 1 / 6, 0.5, 5 / 6, 1, 1, 1, 1]),
    "clip": (lambda x: F.clip(x, -1, 3), [0, 0, 1, 1, 1, 1, 0, 0, 0]),
    "abs": (F.abs, [-1, -1, -1, 0, 1, 1, 1, 1, float("nan")]),
    "HardShrink": (nn.HardShrink(3.0), [1, 0, 0, 0, 0, 0, 1, 1, 1]),
    "SoftShrink": (nn.SoftShrink(3.0), [1, 0, 0, 0, 0, 0, 1, 1, 1]),
    "acosh": (lambda x: F.acosh(x + 0.0), [0, *[float("nan")] * 3, float("inf"), 8**-0.5, 35**-0.5, 0, float("nan")]),
}


@every("name", KINKS)
def test_gradients_at_kinks_are_pytorchs(name: str, backend: Backend) -> None:
    f, wanted = KINKS[name]
    points = [(p, w) for p, w in zip(POINTS, wanted, strict=True) if name != "acosh" or not p < 1]
    x = leaf([p for p, _ in points], backend)
    found = x.grad(f(x).sum().backward())
    np.testing.assert_allclose(np.asarray(found), [w for _, w in points], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["numpy", "python", "wasm", pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))]
)
@pytest.mark.parametrize("layer", [nn.HardShrink(), nn.SoftShrink()])
def test_shrinking_layers_keep_nan(layer: Any, name: str) -> None:
    found = np.asarray(layer(emberlet.asarray([float("nan"), 0.25, float("inf")], backend=name)))
    np.testing.assert_array_equal(found, [float("nan"), 0.0, float("inf")])


def test_detach_cuts_the_history() -> None:
    x = leaf([2.0])
    grads = (x * x.detach()).sum().backward()
    assert x.grad(grads).tolist() == [2.0]


def test_inner_and_from_inner_move_between_the_backends() -> None:
    x = leaf([2.0])
    assert x.inner().backend is get_backend("numpy")
    assert emberlet.Tensor.from_inner(x.inner()).backend is x.backend
    assert x.inner().to("autodiff:numpy").to("numpy").tolist() == [2.0]


def test_backward_on_a_plain_backend_says_which_backend_to_use() -> None:
    with pytest.raises(BackendError, match="autodiff:numpy"):
        emberlet.asarray([1.0], backend="numpy").backward()


def test_backward_without_any_leaf_is_refused() -> None:
    with pytest.raises(EmberletError, match="require_grad"):
        emberlet.asarray([1.0], backend="autodiff:numpy").sum().backward()


def test_a_graph_is_freed_unless_it_is_retained() -> None:
    x = leaf([2.0])
    y = (x * x).sum()
    assert x.grad(y.backward(retain=True)).tolist() == x.grad(y.backward()).tolist() == [4.0]
    with pytest.raises(EmberletError, match="retain"):
        y.backward()


def test_memory_of_the_tape_is_freed_as_backward_consumes_it() -> None:
    x = leaf(np.ones(4, np.float32))
    middle = x.exp()
    kept = weakref.ref(middle.data.inner)
    loss = (middle * middle).sum()
    del middle
    assert kept() is not None
    loss.backward()
    gc.collect()
    assert kept() is None


def test_a_gradient_of_the_result_may_be_given() -> None:
    x = leaf([1.0, 2.0])
    grads = (x * x).backward(emberlet.asarray([10.0, 100.0], backend="numpy"))
    assert x.grad(grads).tolist() == [20.0, 400.0]


def test_assignment_keeps_the_history_of_both_sides() -> None:
    x, v = leaf([1.0, 2.0, 3.0]), leaf([5.0])
    y = x * 2
    y[1] = v[0] * 3
    grads = (y * y).sum().backward()
    assert (x.grad(grads).tolist(), v.grad(grads).tolist()) == ([8.0, 0.0, 24.0], [90.0])


def test_long_chains_need_no_recursion() -> None:
    x = leaf([1.0])
    y = x
    for _ in range(5000):
        y = y + x
    assert x.grad(y.sum().backward()).tolist() == [5001.0]


def test_autodiff_of_autodiff_gives_gradients_of_gradients(backend: Backend) -> None:
    x = leaf([2.0, 3.0], backend)
    twice = x.from_inner().require_grad()
    first = twice.grad((twice**4).sum().backward())
    second = x.grad(first.sum().backward())
    np.testing.assert_allclose(np.asarray(first.inner()), [32.0, 108.0], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(second), [48.0, 108.0], rtol=1e-5)


class Borrowed(Backend):
    """A backend from outside, which has the primitives of the numpy backend but none of its overrides."""

    name = "borrowed"

    def __getattr__(self, name: str) -> Any:
        method = getattr(get_backend("numpy"), name)
        if name in get_backend("numpy").OVERRIDES or not callable(method):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            out = method(*[plain(a, get_backend("numpy")) for a in args], **kwargs)
            return plain(out, self)

        return call


def plain(x: Any, backend: Backend) -> Any:
    if isinstance(x, emberlet.Tensor):
        return emberlet.Tensor(x.data, x.dtype, x.shape, backend)
    return type(x)(plain(v, backend) for v in x) if isinstance(x, (list, tuple)) else x


def test_a_backend_from_outside_is_wrapped_too() -> None:
    wrapped = emberlet.autodiff(Borrowed())
    x = leaf([1.0, 2.0], wrapped)
    grads = F.softmax(x).log()[0].backward()
    np.testing.assert_allclose(x.grad(grads).tolist(), [0.7310586, -0.7310586], rtol=1e-5)
    assert emberlet.autodiff(wrapped.inner) is wrapped


def test_a_tensor_on_an_autodiff_backend_is_pickled_with_its_backend() -> None:
    found = pickle.loads(pickle.dumps(emberlet.autodiff("numpy")))
    assert found is get_backend("autodiff:numpy")
    assert isinstance(found, Autodiff)


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(BackendError, match="autodiff:NAME"):
        get_backend("autograd:numpy")
    with pytest.raises(BackendError, match="'nope'"):
        get_backend("autodiff:nope")


def test_grad_and_its_relatives_in_the_words_of_jax(backend: Backend) -> None:
    inner = backend.inner  # type: ignore[attr-defined]
    x, y = emberlet.asarray([1.0, 2.0], backend=inner), emberlet.asarray([3.0, 5.0], backend=inner)

    def f(x: Any, y: Any) -> Any:
        return (x * x * y).sum()

    assert emberlet.grad(f)(x, y).tolist() == [6.0, 20.0]
    value, (gx, gy) = emberlet.value_and_grad(f, argnums=(0, 1))(x, y)
    assert (float(value), gx.tolist(), gy.tolist()) == (23.0, [6.0, 20.0], [1.0, 4.0])
    out, pull = emberlet.vjp(lambda x: x * x, x)
    assert (out.tolist(), pull(y)[0].tolist()) == ([1.0, 4.0], [6.0, 20.0])
    out, change = emberlet.jvp(lambda x: x * x, (x,), (y,))
    assert (out.tolist(), change.tolist()) == ([1.0, 4.0], [6.0, 20.0])
    assert emberlet.grad(lambda t: emberlet.grad(lambda s: (s**3).sum())(t).sum())(x).tolist() == [6.0, 12.0]


def test_arguments_may_be_lists_and_dicts() -> None:
    x = emberlet.asarray([2.0], backend="numpy")
    found = emberlet.grad(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [x * 5]})
    assert (found["a"].tolist(), found["b"][0].tolist()) == ([10.0], [2.0])


def test_a_function_to_differentiate_gives_one_number() -> None:
    with pytest.raises(EmberletError, match="vjp"):
        emberlet.grad(lambda x: x * x)(emberlet.asarray([1.0, 2.0]))


def test_check_grads_finds_a_wrong_gradient() -> None:
    x = emberlet.asarray(np.array([0.5, 1.5]), backend="numpy")
    emberlet.check_grads(lambda x: x.sin(), (x,))
    with pytest.raises(EmberletError, match="finite differences"):
        emberlet.check_grads(lambda x: x * x.detach(), (x,))


def test_a_checkpointed_block_gives_the_same_gradients_and_keeps_less() -> None:
    def block(x: Any) -> Any:
        return F.softmax((x @ w).tanh() @ w, -1)

    w = leaf(np.random.RandomState(0).randn(4, 4).astype(np.float32))
    x = leaf(np.random.RandomState(1).randn(3, 4).astype(np.float32))
    plain = (block(x) ** 2).sum().backward()
    saved = (checkpoint(block)(x) ** 2).sum().backward()
    for t in (x, w):
        np.testing.assert_allclose(np.asarray(t.grad(saved)), np.asarray(t.grad(plain)), rtol=1e-5, atol=1e-6)


def test_a_checkpointed_block_draws_the_same_numbers_again() -> None:
    x = leaf(np.ones(64, np.float32))
    y = checkpoint(lambda x: F.dropout_with_mask(x, 0.5)[0])(x)
    dropped = np.asarray(y.inner())
    np.testing.assert_array_equal(np.asarray(x.grad(y.sum().backward())), dropped)


def test_a_checkpointed_block_may_use_computed_tensors() -> None:
    x, w = leaf([2.0]), leaf([3.0])
    outside = w * w
    y = checkpoint(lambda x: (x * outside, x + outside))(x)
    grads = (y[0] * y[1]).sum().backward()
    # (x * w^2) * (x + w^2)
    assert (x.grad(grads).tolist(), w.grad(grads).tolist()) == ([9 * 11 + 18.0], [2 * 6 * 11 + 18 * 6.0])


def chain(x: Any) -> Any:
    y = x.exp()
    z = (y * y + 1.0).log().sin()
    return z * y


def test_the_strategy_memory_keeps_no_results_of_elementwise_operations() -> None:
    freed = {}
    for strategy in ("compute", "memory"):
        x = leaf(np.linspace(-1, 1, 8, dtype=np.float32), emberlet.autodiff("numpy", strategy))
        y = x.exp()
        kept = weakref.ref(y.data.inner)
        loss = (y * y + 1.0).log().sum()
        del y
        gc.collect()
        freed[strategy] = kept() is None
        loss.backward()
    assert freed == {"compute": False, "memory": True}


def test_the_strategy_memory_gives_the_same_gradients() -> None:
    found = []
    for strategy in ("compute", "memory"):
        x = leaf(np.linspace(-1, 1, 8), emberlet.autodiff("numpy", strategy))
        y = x
        for _ in range(6):
            y = chain(y) * 0.5 + F.softmax(y) @ y
        found.append(np.asarray(x.grad(y.sum().backward())))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ArgumentError, match="memory"):
        emberlet.autodiff("numpy", strategy="fast")


def some(x: Any, *shape: int) -> Any:
    """x's elements, repeated, in this shape."""
    count = int(np.prod(shape))
    return F.tile(x.reshape(-1), -(-count // x.size))[:count].reshape(shape)


def recurrent(function: Any, gates: int, **options: Any) -> Any:
    """All results of a recurrent layer of 3 units in both directions, over 4 steps."""

    def layer(x: Any) -> Any:
        d = 2 if options.get("direction") == "bidirectional" else 1
        y = function(
            some(x, 4, 2, 5), some(x, d, gates * 3, 5), some(x * 0.7, d, gates * 3, 3), some(x * x, d, gates * 6),
            initial_h=some(x, d, 2, 3), **options
        )  # fmt: skip
        return F.concat([part.reshape(-1) for part in y])

    return layer


# What has a backward of its own, compared with that of its primitives.
OWN = {
    "relu": lambda x: F.relu(x),
    "clip": lambda x: F.clip(x, -0.5, 0.7),
    "sigmoid": lambda x: F.sigmoid(x),
    "relu6": lambda x: F.relu6(x * 5),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, max_value=0.7),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "prelu": lambda x: F.prelu(x, alpha=x[0]) + F.prelu(x, 0.3),
    "elu": lambda x: F.elu(x, alpha=0.7),
    "selu": lambda x: F.selu(x),
    "hard_sigmoid": lambda x: F.hard_sigmoid(x * 2),
    "hard_swish": lambda x: F.hard_swish(x * 3),
    "softmax": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "gelu": lambda x: F.gelu(x),
    "gelu by tanh": lambda x: F.gelu(x, "tanh"),
    "layer_norm": lambda x: F.layer_norm(x, x[0], x[1]),
    "rms_norm": lambda x: F.rms_norm(x, x[0]),
    "linear": lambda x: F.linear(x[:2], x.T[:, :3], x[0][:3]),
    "conv_transpose": lambda x: F.conv_transpose(x[None], x[:, :, None] * x[:, None, :2], None, 2, 1, 1),
    "lstm_steps": recurrent(F.lstm, 4),
    "lstm_steps backwards": recurrent(F.lstm, 4, direction="reverse"),
    "lstm_steps in both directions": recurrent(F.lstm, 4, direction="bidirectional"),
    "lstm_steps whose last state alone counts": lambda x: F.lstm(
        some(x, 4, 2, 5), some(x, 1, 12, 5), some(x, 1, 12, 3), initial_c=some(x, 1, 2, 3))[2],
    "gru_steps": recurrent(F.gru, 3),
    "gru_steps in both directions": recurrent(F.gru, 3, direction="bidirectional"),
    "gru_steps reset after the product": recurrent(F.gru, 3, direction="bidirectional", linear_before_reset=True),
    "gru_steps reset after the product, backwards": recurrent(F.gru, 3, direction="reverse", linear_before_reset=True),
    "rnn_steps": recurrent(F.rnn, 1),
    "rnn_steps in both directions": recurrent(F.rnn, 1, direction="bidirectional"),
    "dot_product_attention": lambda x: dot_product_attention(
        x.reshape((1, 2, 2, 5)), x[:2].reshape((1, 1, 2, 5)), x[2:].reshape((1, 1, 2, 5)), x[:1, :2], 0.4, 1.5, True,
        x[0][:2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_backward_of_its_own_is_that_of_the_primitives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.autodiff import dispatch

    values = np.random.RandomState(3).randn(4, 5).astype(np.float64)

    def gradient(backend: Backend) -> Any:
        x = leaf(values, backend)
        y = OWN[name](x)
        weights = emberlet.asarray(np.cos(np.arange(y.size)).reshape(y.shape), backend=backend)
        return np.asarray(x.grad((y * weights).sum().backward()))

    own = gradient(get_backend("autodiff:numpy"))
    monkeypatch.setattr(dispatch, "_FILES", {})
    monkeypatch.setattr(dispatch, "_added", lambda *_: None)
    by_tape = gradient(Autodiff("numpy"))
    np.testing.assert_allclose(own, by_tape, rtol=1e-9, atol=1e-12)


def test_every_backward_of_its_own_is_compared() -> None:
    from emberlet.autodiff.dispatch import OWN as DECLARED

    names = {name for functions in DECLARED.values() for name in functions.split()}
    assert names == {name.split()[0] for name in OWN}


# Parts of one tensor, whose gradients are put together at the end.
PARTS = {
    "steps of a loop": lambda x: sum(x[t] * x[t] * (t + 1.0) for t in range(4)),
    "steps in the reverse order": lambda x: sum(x[3 - t].exp() * (t + 1.0) for t in range(4)),
    "steps with gaps": lambda x: x[0] * x[3],
    "columns": lambda x: x[:, 1] * x[:, 3],
    "parts that overlap": lambda x: x[:3] * x[1:] + x[0:3] * x[1:2],
    "parts along two axes": lambda x: x[:2, :2] * x[2:, 3:] + x[1:3, 1:3],
    "a part and the whole": lambda x: x[1] * x.sum(0) + (x * x)[2],
    "every second and every first": lambda x: x[::2] * x[1::2] + x[:2],
    "backwards": lambda x: x[::-1] * x + x[2:0:-1].sum(),
    "the same part twice": lambda x: x[1] * x[1],
    "nothing": lambda x: x[4:].sum() + x[0],
}


@pytest.mark.parametrize("name", PARTS)
def test_gradients_of_parts_of_a_tensor(name: str) -> None:
    x = emberlet.asarray(np.random.RandomState(2).randn(4, 4), backend="numpy")
    emberlet.check_grads(PARTS[name], [x])
    emberlet.check_grads(emberlet.grad(lambda x: (PARTS[name](x) ** 2).sum()), [x], rtol=1e-3)


def test_a_loop_over_the_steps_of_a_sequence_pads_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    pad = type(get_backend("numpy")).pad
    monkeypatch.setattr(type(get_backend("numpy")), "pad", lambda *args: made.append(args) or pad(*args))
    x = leaf(np.ones((30, 2), np.float32))
    total = x[0] * 0.0
    for t in range(30):
        total = total * 0.5 + x[t]
    assert np.asarray(x.grad(total.sum().backward())).shape == (30, 2)
    assert not made


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = emberlet.asarray([1.0, 2.0], backend="numpy")
    with pytest.raises(ArgumentError, match="argnums 3"):
        emberlet.grad(lambda x: x.sum(), argnums=3)(x)
    with pytest.raises(ArgumentError, match="0 tangents"):
        emberlet.jvp(lambda x: x * x, (x,), ())
