"""Every kind of layer with its weight in 8, 4 and 2 bits: what it computes, and how it is saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.errors import LoadError
from emberlet.module import Module
from support.rows import every

RNG = np.random.default_rng(11)

# layer, its input, the axis of its channels
KINDS = [
    ("nn.Linear(6, 5)", (3, 6), 1),
    ("nn.Conv1d(4, 6, 3, groups=2)", (2, 4, 7), 0),
    ("nn.Conv2d(3, 5, (3, 2), padding=1)", (1, 3, 5, 5), 0),
    ("nn.Conv2d(4, 4, 3, groups=4)", (1, 4, 5, 5), 0),
    ("nn.Conv3d(2, 3, 2)", (1, 2, 3, 3, 3), 0),
    ("nn.ConvTranspose1d(4, 3, 3)", (1, 4, 5), 1),
    ("nn.ConvTranspose2d(4, 6, 3, groups=2)", (1, 4, 3, 3), 0),
    ("nn.Bilinear(3, 4, 2)", (2, 3), 0),
    ("nn.Embedding(9, 8)", None, 0),
]


def reference(w: Any, axis: int, bits: int, mode: str) -> Any:
    """Each channel rounded to its own scale, by NumPy."""
    rows = np.moveaxis(w, axis, 0).reshape(w.shape[axis], -1).astype(np.float64)
    if mode == "affine":
        low, high = np.minimum(rows.min(1), 0), np.maximum(rows.max(1), 0)
        scale = ((high - low) / (2**bits - 1))[:, None]
        zero = np.round(-low[:, None] / scale)
        rows = (np.clip(np.round(rows / scale) + zero, 0, 2**bits - 1) - zero) * scale
    else:
        scale = np.abs(rows).max(1, keepdims=True) / (2 ** (bits - 1) - 1)
        rows = np.round(rows / scale) * scale
    moved = np.moveaxis(w, axis, 0).shape
    return np.moveaxis(rows.reshape(moved), 0, axis)


def arguments(layer: Any, shape: Any) -> list[Any]:
    if shape is None:
        return [emberlet.asarray([[0, 8], [3, 3]])]
    given = [emberlet.asarray(RNG.normal(size=shape).astype(np.float32))]
    if isinstance(layer, nn.Bilinear):
        given.append(emberlet.asarray(RNG.normal(size=(2, 4)).astype(np.float32)))
    return given


@every("code, shape, axis", KINDS)
def test_a_layer_computes_with_the_weights_that_numpy_rounds(code: str, shape: Any, axis: int) -> None:
    for bits in (8, 4, 2):
        for mode in ("symmetric", "affine"):
            layer = eval(code)
            layer.to_record()  # makes the values, which lazy clones would each draw anew
            x, w = arguments(layer, shape), np.asarray(layer.weight.val())
            rounded = layer.clone()
            wanted = reference(w, axis, bits, mode)
            rounded.weight.set(emberlet.asarray(wanted.astype(np.float32)))
            layer.quantize_weights(bits, mode)
            np.testing.assert_allclose(np.asarray(layer.weight.val()), wanted, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(np.asarray(layer(*x)), np.asarray(rounded(*x)), rtol=1e-4, atol=1e-5)


class Net(Module):
    """A layer of each kind after the other."""

    def __init__(self, backend: Any = None) -> None:
        self.table = nn.Embedding(20, 8, backend=backend)
        self.conv = nn.Conv1d(8, 6, 3, padding=1, backend=backend)
        self.up = nn.ConvTranspose1d(6, 8, 3, backend=backend)
        self.lstm = nn.Lstm(8, 8, backend=backend)
        self.rnn = nn.Rnn(8, 8, backend=backend)
        self.gru = nn.BiGru(8, 4, backend=backend)
        self.attention = nn.MultiHeadAttention(8, 2, dropout=0.0, backend=backend)
        self.out = nn.Linear(8, 4, backend=backend)

    def forward(self, i: Any) -> Any:
        x, _ = self.lstm(self.up(self.conv(self.table(i).mT)).mT)
        return self.out(self.attention(self.gru(self.rnn(x)[0])[0]).context)


X = [[3, 0, 19, 7, 7], [1, 2, 3, 4, 5]]


def made() -> Net:
    net = Net()
    net.to_record()  # makes the values, which lazy clones would each draw anew
    return net


def test_recurrent_layers_and_attention_are_quantized_within() -> None:
    net = made()
    names = net.clone().quantize_weights()
    assert {n.partition(".")[0] for n in names} == {"table", "conv", "up", "lstm", "rnn", "gru", "attention", "out"}
    assert "lstm.forget_gate.hidden_transform" in names
    assert "attention.query" in names
    x = emberlet.asarray(X)
    errors = []
    for bits in (8, 4, 2):
        small, fake = net.clone(), net.clone()
        small.quantize_weights(bits, "affine", 4)
        fake.quantize_weights(bits, "affine", 4, fake=True)
        np.testing.assert_allclose(np.asarray(small(x)), np.asarray(fake(x)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(small.compile(x)(x)), np.asarray(small(x)), rtol=1e-5, atol=1e-6)
        errors.append(float(abs(small(x) - net(x)).max()))
    assert errors[0] < 0.02
    assert errors == sorted(errors)


@pytest.mark.parametrize("backend", ["python", "wasm"])
def test_they_run_on_every_backend(backend: str) -> None:
    net = Net("numpy")
    net.quantize_weights(4, "affine", 4)
    wanted = np.asarray(net(emberlet.asarray(X, backend="numpy")))
    found = net.fork(backend)(emberlet.asarray(X, backend=backend))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.needs("gpu-driver")
def test_they_run_on_the_gpu(wgpu_adapter: Any) -> None:
    test_they_run_on_every_backend("wgpu")


def test_lazy_weights_stay_lazy_and_take_values_that_are_loaded(tmp_path: Path) -> None:
    net, small = made(), Net()
    small.quantize_weights(4)
    assert not any(p.is_initialized for p in small.params())
    net.save_file(tmp_path / "net.bpk")
    small.load_file(tmp_path / "net.bpk")
    net.quantize_weights(4)
    for name, value in net.to_record().items():
        assert np.array_equal(np.asarray(small.to_record()[name]), np.asarray(value)), name
    drawn = nn.Conv1d(4, 4, 3)
    drawn.quantize_weights(8)
    assert float(abs(drawn.weight.val()).max()) > 0  # the initializer ran, and its values were quantized


@pytest.mark.parametrize("ending", ["bpk", "safetensors", "npz"])
@pytest.mark.parametrize("layout", ["burn", "pytorch"])
@pytest.mark.parametrize("scheme", [(8, "symmetric", "channel"), (4, "affine", 4), (2, "symmetric", "tensor")], ids=str)
def test_files_go_from_float_to_quantized_and_back(scheme: Any, layout: str, ending: str, tmp_path: Path) -> None:
    net, small, wide, again = made(), Net(), Net(), Net()
    small.quantize_weights(*scheme)
    again.quantize_weights(*scheme)
    filter = None if layout == "burn" else "^(?!lstm|rnn|gru|attention)"  # PyTorch joins their weights
    net.save_into(tmp_path / f"wide.{ending}", layout=layout, filter=filter)
    options = {"layout": layout, "partial": filter is not None}
    told = small.load_from(tmp_path / f"wide.{ending}", **options)
    assert told.quantized["conv.weight"] > 0
    assert "quantized conv.weight" in str(told)
    small.save_into(tmp_path / f"small.{ending}", filter=filter)
    assert again.load_from(tmp_path / f"small.{ending}", partial=filter is not None).quantized == {}
    wide.load_from(tmp_path / f"small.{ending}", layout="burn", partial=filter is not None)
    for name in ("table", "conv", "up", "out") + (() if filter else ("gru.reverse_layer.new_gate.input_transform",)):
        layers = []
        for one in (small, wide, again):
            for part in name.split("."):
                one = getattr(one, part)
            layers.append(np.asarray(one.weight.val()))
        assert np.array_equal(layers[0], layers[1]), name
        assert np.array_equal(layers[0], layers[2]), name


def test_a_file_is_as_small_as_its_bits_say(tmp_path: Path) -> None:
    net = Module()
    net.conv = nn.Conv2d(64, 64, 3, bias=False)
    net.table = nn.Embedding(500, 64)
    wide = net.save_file(tmp_path / "wide.bpk")
    for bits, least in ((8, 3.8), (4, 7.2), (2, 12.8)):
        small = net.clone()
        small.quantize_weights(bits)
        assert wide / small.save_file(tmp_path / f"{bits}.bpk") > least


def test_a_packed_weight_that_does_not_fit_is_refused_and_named() -> None:
    net, other = made(), made()
    net.quantize_weights(4)
    record = {name: np.asarray(value) for name, value in net.to_record().items()}
    record["conv.weight.values"] = record["conv.weight.values"][:3]
    with pytest.raises(LoadError, match=r"conv\.weight.*packed weights \(3, 1, 12\)"):
        other.load_record(record, layout="burn")


def test_weights_that_two_layers_share_stay_shared() -> None:
    net = Module()
    net.a, net.b = nn.Conv1d(4, 4, 1), nn.Conv1d(4, 4, 1)
    net.b.weight = net.a.weight
    net.quantize_weights(4)
    assert net.b.weight is net.a.weight


@pytest.mark.parametrize("kind", ["Conv2d", "Embedding"])
def test_layers_train_with_quantized_weights(kind: str) -> None:
    layer = nn.Conv2d(2, 3, 2) if kind == "Conv2d" else nn.Embedding(5, 4)
    layer.quantize_weights(4, fake=True)
    layer.train()
    x = emberlet.ones((1, 2, 4, 4), backend="autodiff:numpy") if kind == "Conv2d" else [[1, 2, 2]]
    x = emberlet.asarray(x, backend="autodiff:numpy")
    grads = layer(x).sum().backward()
    found = np.asarray(layer.weight.real.val().grad(grads))
    # The gradient passes straight through the rounding: how often each weight is used.
    wanted = np.full((3, 2, 2, 2), 9.0) if kind == "Conv2d" else np.repeat([[0.0], [1], [2], [0], [0]], 4, 1)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("bits", [4, 2])
def test_channels_too_small_to_tell_their_bits_stay_in_float(bits: int, tmp_path: Path) -> None:
    for code in ("nn.Linear(1, 4)", "nn.Linear(2, 4)", "nn.Conv2d(6, 6, 1, groups=6)", "nn.Embedding(5, 2)"):
        net, other = Module(), Module()
        net.layer, other.layer = eval(code), eval(code)
        net.to_record()
        wanted = np.asarray(net.layer.weight.val())
        assert net.quantize_weights(bits) == []
        other.quantize_weights(6 - bits)
        net.save_file(tmp_path / "net.bpk")
        other.load_file(tmp_path / "net.bpk")
        assert np.array_equal(np.asarray(other.layer.weight.val()), wanted)


def test_lazy_weights_follow_the_module_to_another_backend() -> None:
    net = nn.Linear(4, 3, backend="numpy")
    net.quantize_weights()
    net.to("python")
    assert net(emberlet.asarray([[1.0, 2, 3, 4]], backend="python")).shape == (1, 3)
    assert {p.val().backend.name for p in net.params()} == {"python"}


@pytest.mark.parametrize("load", ["load_from", "load_file"])
@pytest.mark.parametrize("scheme", [None, (4, "affine", 4), (8, "affine", 4)], ids=str)
def test_packed_weights_load_under_their_older_names(load: str, scheme: Any, tmp_path: Path) -> None:
    net, again = Module(), Module()
    net.fc, again.fc = nn.Linear(6, 5), nn.Linear(6, 5)
    net.quantize_weights(4, "affine", 4)
    older = {f"fc.weight.{key}": f"fc.{key}" for key in ("scale", "zero_point")} | {"fc.weight.values": "fc.weight"}
    net.save_into(tmp_path / "old.bpk", rename=older)
    if scheme:
        again.quantize_weights(*scheme)
    getattr(again, load)(tmp_path / "old.bpk")
    most = 0.003 if scheme == (8, "affine", 4) else 0.0  # half a step of 8 bits
    np.testing.assert_allclose(again.fc.weight.val(), net.fc.weight.val(), rtol=0, atol=most)
    assert np.array_equal(again.fc.bias.val(), net.fc.bias.val())


GGUF = {  # kind -> (bits, mode, level) of the module's weights that hold the same integers
    "Q4_0": (4, "symmetric", 32), "Q8_0": (8, "symmetric", 32), "Q5_0": (8, "symmetric", 32),
    "Q6_K": (8, "symmetric", 16), "Q4_1": (4, "affine", 32), "Q5_1": (8, "affine", 32), "Q4_K": (4, "affine", 32),
    "Q5_K": (8, "affine", 32),
}  # fmt: skip


@pytest.mark.parametrize("embedding", [False, True])
@pytest.mark.parametrize("kind", GGUF)
def test_gguf_blocks_are_taken_as_they_are(kind: str, embedding: bool, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    kinds = gguf.GGMLQuantizationType
    block, size = gguf.GGML_QUANT_SIZES[kinds[kind]]
    draw = np.random.default_rng(1)
    raw = draw.integers(0, 256, (7, 2 * size), dtype=np.uint8)
    two = {"Q6_K": [208]}.get(kind, [0, 2] if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [0])
    for i in range(0, 2 * size, size):  # scales that are numbers, one of them 0
        for at in two:
            numbers = draw.random((7, 1)).astype(np.float16)
            numbers[3] = 0 if at != 2 else numbers[3]
            raw[:, i + at : i + at + 2] = numbers.view(np.uint8)
    wanted = gguf.quants.dequantize(raw, kinds[kind])  # (7, 2 * block)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("weight", raw, raw_dtype=kinds[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    bits, mode, level = GGUF[kind]
    layer = nn.Embedding(7, 2 * block) if embedding else nn.Linear(2 * block, 7, bias=False)
    layer.quantize_weights(bits, mode, level)
    result = layer.load_from(tmp_path / "m.gguf")
    found = np.asarray(layer.weight.val())
    np.testing.assert_allclose(found if embedding else found.T, wanted, rtol=1e-5, atol=1e-5)
    assert max(result.quantized.values()) < 1e-6
    other = nn.Embedding(7, 2 * block) if embedding else nn.Linear(2 * block, 7, bias=False)
    other.quantize_weights(bits, mode, 64)  # other blocks: quantized anew
    assert max(other.load_from(tmp_path / "m.gguf").quantized.values()) > 1e-4


@pytest.mark.parametrize("level", ["tensor", "channel", 8, 4])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_integers_of_a_burnpack_are_taken_as_they_are(bits: int, level: str | int, tmp_path: Path) -> None:
    """Written as Burn's quantized tensors, which test_quantized.py compares with what Burn makes of them."""
    from emberlet import store

    real = nn.Sequential(nn.Linear(21, 5), nn.Linear(5, 5))
    block = (level, 1) if isinstance(level, int) else level
    store.from_module(real).quantize(bits=bits, level=block).save(tmp_path / "w.bpk")
    made = nn.Sequential(nn.Linear(21, 5), nn.Linear(5, 5))
    made.quantize_weights(bits, level=level)
    result = made.load_from(tmp_path / "w.bpk")
    wide = nn.Sequential(nn.Linear(21, 5), nn.Linear(5, 5))
    wide.load_from(tmp_path / "w.bpk")
    for a, b in zip(made, wide, strict=True):
        np.testing.assert_array_equal(np.asarray(a.weight.val()), np.asarray(b.weight.val()))
    assert max(result.quantized.values()) == 0


def test_integers_of_a_file_that_burn_wrote_are_taken_as_they_are() -> None:
    import lzma

    from emberlet import store

    folder = Path(__file__).resolve().parents[1] / "core" / "fixtures" / "burn"
    opened = store.open(lzma.decompress((folder / "quant_flex.bpk.xz").read_bytes()))
    taken = 0
    for key, snapshot in opened.items():
        if snapshot.packed is not None:
            levels, scale, _ = snapshot.packed.read()
            whole = (np.asarray(levels).astype(np.float32) - snapshot.packed.zero) * np.asarray(scale)[:, :, None]
            axis = snapshot.packed.axis
            others = [n for i, n in enumerate(snapshot.shape) if i != axis]
            rows = whole.reshape(len(whole), -1)[:, : np.prod(others)]
            found = np.moveaxis(rows.reshape(-1, *others), 0, axis)
            np.testing.assert_array_equal(found, np.asarray(opened[key + ".f32"]))  # as Burn dequantized it
            taken += 1
    assert taken
