"""Built-in layers without a PyTorch counterpart, and all layers' printing, initial values and refusals."""

import copy
import pickle

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import IndexingError

BACKENDS = ["numpy", "python"]


def tensor(array, backend):
    return el.asarray(np.ascontiguousarray(array), backend=backend)


def close(got, wanted, tolerance=1e-5):
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.tolist(), wanted, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- layers -----------------------------------------------------------------------------------------------------------


# A layer's gates in ONNX's order, its options and those of its function, which test_recurrent.py compares with
# onnxruntime.
RECURRENT = {
    "Rnn": (["gate"], {"hidden_activation": "Relu", "clip": 0.8}, {"activations": ["Relu"], "clip": 0.8}),
    "Gru": (["update_gate", "reset_gate", "new_gate"], {"reset_after": False}, {}),
    "Lstm": (["input_gate", "output_gate", "forget_gate", "cell_gate"], *[{"clip": 0.3, "input_forget": True}] * 2),
}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", RECURRENT)
def test_a_recurrent_layer_is_its_function(backend, rng, kind, direction):
    gates, options, named = RECURRENT[kind]
    if direction == "bidirectional":
        layer = getattr(nn, "Bi" + kind)(3, 2, batch_first=False, backend=backend, **options)
        parts = [layer.forward_layer, layer.reverse_layer]
        named = {**named, "activations": named["activations"] * 2} if "activations" in named else named
    else:
        layer = getattr(nn, kind)(3, 2, batch_first=False, reverse=direction == "reverse", backend=backend, **options)
        parts = [layer]

    def joined(name):
        transforms = [[getattr(getattr(part, gate), name) for gate in gates] for part in parts]
        weights = [np.concatenate([np.asarray(t.weight.val()).T for t in row]) for row in transforms]
        biases = [np.concatenate([np.asarray(t.bias.val()) for t in row]) for row in transforms]
        return tensor(np.stack(weights), backend), np.stack(biases)

    (w, b), (r, c) = joined("input_transform"), joined("hidden_transform")
    x = tensor(rng.standard_normal((5, 4, 3)).astype(np.float32), backend)
    bias = tensor(np.concatenate([b, c], 1), backend)
    wanted = getattr(F, kind.lower())(x, w, r, bias, direction=direction, **named)
    y, state = layer(x)
    close(y, np.concatenate(list(np.asarray(wanted[0]).swapaxes(0, 1)), -1))
    hidden = state if kind == "Gru" else state.hidden
    close(hidden.reshape((len(parts), 4, 2)), np.asarray(wanted[1]))
    if kind == "Lstm":
        close(state.cell.reshape((len(parts), 4, 2)), np.asarray(wanted[2]))


@pytest.mark.parametrize("kind", ["Lstm", "BiLstm", "Gru", "BiGru", "Rnn", "BiRnn"])
def test_a_recurrent_layer_sees_every_change_of_its_weights(backend, rng, kind):
    """The joined weights are kept between calls, and every change of a Param is noticed."""
    make = lambda: getattr(nn, kind)(3, 2, backend=backend)  # noqa: E731
    layer = make()
    x = tensor(rng.standard_normal((2, 4, 3)).astype(np.float32), backend)

    def anew(like):
        other = make()
        other.load_record({name: param.val() for name, param in like.named_params()}, layout="burn")
        return other(x)[0]

    def changed(act):
        before = layer(x)[0].tolist()
        act()
        close(layer(x)[0], np.asarray(anew(layer)))
        assert layer(x)[0].tolist() != before

    names = dict(layer.named_params())
    param = names[next(n for n in names if n.endswith("hidden_transform.weight"))]
    other = make().to_record()
    before = layer(x)[0].tolist()
    held = layer._packed
    assert layer(x)[0].tolist() == before
    assert layer._packed is held  # nothing was joined again
    changed(lambda: param.set(param.val() + 0.5))
    changed(lambda: param.val().__setitem__((0, 1), 3.0))
    changed(lambda: param.val().__setitem__((0, 1), 4.0))
    mapped = layer.map(lambda name, value: value * 0.5)
    close(mapped(x)[0], np.asarray(anew(mapped)))
    close(layer(x)[0], np.asarray(anew(layer)))
    assert mapped(x)[0].tolist() != layer(x)[0].tolist()
    changed(lambda: layer.load_record(other))
    copy_ = layer.clone()
    names[next(iter(names))].set(names[next(iter(names))].val() + 1)
    assert copy_(x)[0].tolist() != layer(x)[0].tolist()
    close(pickle.loads(pickle.dumps(layer))(x)[0], np.asarray(layer(x)[0]))
    close(copy.deepcopy(layer)(x)[0], np.asarray(layer(x)[0]))
    assert [p for p, _ in layer.named_params()] == list(names)
    close(layer.fork("python")(x.to("python"))[0], np.asarray(layer(x)[0]))


def rotated(x, start, interleaved, theta=10000.0):
    """Each pair of elements of x (…, seq, d) rotated as a complex number."""
    d = x.shape[-1]
    angle = np.arange(start, start + x.shape[-2])[:, None] * theta ** (-2 * np.arange(d // 2) / d)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : d // 2], x[..., d // 2 :])
    z = (a + 1j * b) * np.exp(1j * angle)
    if interleaved:
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), (2, 3, 5, 6)])
@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_encoding_turns_pairs(backend, rng, shape, interleaved):
    x = rng.standard_normal(shape).astype(np.float32)
    layer = nn.RotaryEncoding(16, 6, interleaved=interleaved)
    close(layer(tensor(x, backend)), rotated(x, 0, interleaved))
    close(layer(tensor(x, backend), start=7), rotated(x, 7, interleaved))


def test_rotary_frequencies_can_be_scaled(backend, rng):
    x = rng.standard_normal((4, 6)).astype(np.float32)
    layer = nn.RotaryEncoding(8, 6, scaling=lambda f: 0.0)
    close(layer(tensor(x, backend)), x)


def test_a_table_follows_its_input_to_another_backend():
    layer = nn.PositionalEncoding(2, 4)
    layer(el.zeros((1, 3, 2), device="numpy"))
    assert repr(layer(el.zeros((1, 3, 2), device="python")).backend) == "python"
    assert layer(el.zeros((1, 3, 2), dtype=el.float16, device="numpy")).dtype is el.float16


def test_quiet_attention_may_attend_to_nothing(backend, rng):
    layer = nn.MultiHeadAttention(4, 2, quiet_softmax=True, backend=backend)
    x = tensor(rng.standard_normal((1, 3, 4)).astype(np.float32), backend)
    with_weights = layer(x)
    assert (np.asarray(with_weights.weights.tolist()).sum(-1) < 1).all()
    close(layer(x, need_weights=False).context, with_weights.context.tolist())


@pytest.mark.parametrize("layer", [nn.Dropout(0.3), nn.GaussianNoise(0.1)])
def test_training_layers_pass_their_input_through(layer):
    x = el.ones((2,))
    assert layer(x).tolist() == x.tolist()


# -- first values -----------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_first_values_on_every_backend():
    values = []
    for backend in BACKENDS:
        el.manual_seed(3)
        values.append(nn.Linear(4, 3, backend=backend).weight.val().tolist())
    assert values[0] == values[1]


def test_layers_begin_as_pytorchs_do():
    el.manual_seed(0)
    weight = np.asarray(nn.Linear(100, 50).weight.val().tolist())
    assert 0.099 < np.abs(weight).max() <= 0.1
    conv = nn.Conv2d(8, 16, 3, groups=2)
    assert 0.15 < np.abs(conv.weight.val().tolist()).max() <= 1 / 6
    assert np.abs(conv.bias.val().tolist()).max() <= 1 / 6
    norm = nn.BatchNorm(3)
    assert [p.val().tolist() for p in norm.params()] == [[1] * 3, [0] * 3, [0] * 3, [1] * 3]
    table = np.asarray(nn.Embedding(200, 50).weight.val().tolist())
    assert abs(table.std() - 1) < 0.03


@pytest.mark.parametrize(
    ("initializer", "low", "high", "std"), [(nn.Uniform(-2, 3), -2, 3, 5 / 12**0.5), (nn.Normal(0.0, 0.5), -9, 9, 0.5)]
)
def test_initializers_draw_from_their_distribution(initializer, low, high, std):
    el.manual_seed(0)
    drawn = np.asarray(initializer((60, 50)).tolist())
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert abs(drawn.std() / std - 1) < 0.05
    assert abs(drawn.mean() - max(low + high, 0) / 2) < 0.1


def test_normal_has_its_mean():
    el.manual_seed(0)
    assert abs(float(nn.Normal(4.0, 0.1)((1000,)).mean()) - 4) < 0.02


def test_an_initializer_can_be_given_and_written():
    class Halves(nn.Constant):
        def __init__(self):
            self.value = 0.5

    assert nn.Linear(1, 2, initializer=Halves()).weight.val().tolist() == [[0.5, 0.5]]
    assert repr(nn.KaimingUniform(2.0)) == "KaimingUniform(fan_out_only=False, gain=2.0)"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_layers_compute_in_the_dtype_they_are_given(dtype):
    layer = nn.Linear(2, 2, dtype=dtype)
    assert str(layer(el.ones((1, 2), dtype=getattr(el, dtype))).dtype) == dtype


# -- printing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Conv2d(1, 8, [3, 3]), "Conv2d {stride: [1, 1], kernel_size: [3, 3], dilation: [1, 1], groups: 1, "
         "padding: Valid, params: 80}"),
        (nn.Linear(1024, 512), "Linear {d_input: 1024, d_output: 512, bias: true, params: 524800}"),
        (nn.Linear(2, 2, bias=False), "Linear {d_input: 2, d_output: 2, bias: false, params: 4}"),
        (nn.AdaptiveAvgPool2d([8, 8]), "AdaptiveAvgPool2d {output_size: [8, 8]}"),
        (nn.Dropout(0.5), "Dropout {prob: 0.5}"),
        (nn.Relu(), "Relu"),
        (nn.Lstm(4, 3), "Lstm {d_input: 4, d_hidden: 3, bias: true, params: 108}"),
        (nn.TransformerEncoder(6, 8, 2, 1), "TransformerEncoder {d_model: 6, d_ff: 8, n_heads: 2, n_layers: 1, "
         "dropout: 0.1, norm_first: false, quiet_softmax: false, params: 302}"),
    ],
)  # fmt: skip
def test_layers_print_in_one_line(layer, text):
    assert repr(layer) == text
    assert not any(p.is_initialized for p in layer.params())


def test_a_layer_whose_imports_fail_says_which(monkeypatch):
    import sys

    monkeypatch.delattr(nn, "SwiGlu", raising=False)  # which loads it
    monkeypatch.delitem(sys.modules, "emberlet.nn.swiglu", raising=False)
    monkeypatch.setitem(sys.modules, "emberlet.nn.linear", None)
    with pytest.raises(ImportError, match=r"emberlet\.nn\.linear"):
        nn.SwiGlu  # noqa: B018


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [3, 7, -1])
def test_a_target_outside_the_classes_is_refused_and_a_padded_one_is_not(backend, target):
    x = el.asarray([[0.5, 1.0, -1.0], [2.0, 0.0, 1.0]], backend=backend)
    targets = el.asarray([1, target], backend=backend)
    with pytest.raises(IndexingError, match=r"CrossEntropyLoss.*3"):
        nn.CrossEntropyLoss()(x, targets)
    padded = nn.CrossEntropyLoss(pad_tokens=[target])(x, targets, "none")
    assert padded.tolist() == [nn.CrossEntropyLoss()(x[:1], targets[:1]).item(), 0.0]
