"""The rows of the Burn Book's module tables, with their emberlet equivalents and checks of these.

A layer's row names a case of fixtures/torch_layers.npz, PyTorch's own results, or makes its expectation with NumPy.
Nothing here needs emberlet: the same rows run on CPython and on MicroPython.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Arrays = dict[str, np.ndarray]


@functools.cache
def fixture() -> Arrays:
    with np.load(pathlib.Path(__file__).parent / "fixtures" / "torch_layers.npz") as found:
        return dict(found)


@dataclass(frozen=True)
class Case:
    """Weights by name, inputs in order, and what the outputs must be."""

    state: Arrays
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


@dataclass(frozen=True)
class Row:
    """burn: as the Book writes it; emberlet: the expression that makes the layer, or for a method one that is True;
    call: the expression over the layer m and its inputs a, b, … that gives the outputs."""

    burn: str
    emberlet: str
    case: Callable[[], Case] | None = None
    call: str = "m(a)"
    note: str = ""


def torch(name: str, convert: Callable[[Arrays], Arrays] | None = None) -> Callable[[], Case]:
    """The case `name` of the fixture; convert: from PyTorch's weights to the layer's."""

    def make() -> Case:
        found = {k.removeprefix(name + "/"): v for k, v in fixture().items() if k.startswith(name + "/")}
        state = {k.removeprefix("state/"): v for k, v in found.items() if k.startswith("state/")}
        state.pop("num_batches_tracked", None)
        return Case(
            convert(state) if convert else state,
            [v for k, v in found.items() if k.startswith("inputs/")],
            [v for k, v in found.items() if k.startswith("outputs/")],
        )

    return make


def dense(state: Arrays, prefix: str, name: str) -> Arrays:
    """A Linear's weights from PyTorch's, which are transposed."""
    out = {f"{name}weight": state[prefix + "weight"].T}
    if prefix + "bias" in state:
        out[f"{name}bias"] = state[prefix + "bias"]
    return out


LSTM = ("input_gate", "forget_gate", "cell_gate", "output_gate")
GRU = ("reset_gate", "update_gate", "new_gate")


def recurrent(state: Arrays, gates: tuple[str, ...], layer: str = "", suffix: str = "") -> Arrays:
    """An Lstm's or Gru's weights from PyTorch's, whose gates are stacked in the order `gates`."""
    out = {}
    for torch_name, transform in (("ih", "input_transform"), ("hh", "hidden_transform")):
        for kind in ("weight", "bias"):
            found = state.get(f"{kind}_{torch_name}_l0{suffix}")
            if found is not None:
                for gate, part in zip(gates, np.split(found, len(gates)), strict=True):
                    out[f"{layer}{gate}.{transform}.{kind}"] = part.T
    return out


def bilstm(state: Arrays) -> Arrays:
    return recurrent(state, LSTM, "forward_layer.") | recurrent(state, LSTM, "reverse_layer.", "_reverse")


def bigru(state: Arrays) -> Arrays:
    return recurrent(state, GRU, "forward_layer.") | recurrent(state, GRU, "reverse_layer.", "_reverse")


def attention(state: Arrays, prefix: str = "", name: str = "") -> Arrays:
    """A MultiHeadAttention's weights from PyTorch's packed ones."""
    out = dense(state, prefix + "out_proj.", f"{name}output.")
    weights = np.split(state[prefix + "in_proj_weight"], 3)
    biases = np.split(state[prefix + "in_proj_bias"], 3)
    for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        out |= {f"{name}{part}.weight": weight.T, f"{name}{part}.bias": bias}
    return out


def transformer(state: Arrays, attentions: dict[str, str], norms: int) -> Arrays:
    """The weights of an encoder's or decoder's two layers from PyTorch's."""
    out: Arrays = {}
    for i in range(2):
        layer = f"layers.{i}."
        for torch_name, own in attentions.items():
            out |= attention(state, f"{layer}{torch_name}.", f"{layer}{own}.")
        out |= dense(state, layer + "linear1.", layer + "pwff.linear_inner.")
        out |= dense(state, layer + "linear2.", layer + "pwff.linear_outer.")
        for n in range(1, norms + 1):
            for kind in ("weight", "bias"):
                out[f"{layer}norm_{n}.{kind}"] = state[f"{layer}norm{n}.{kind}"]
    return out


def encoder(state: Arrays) -> Arrays:
    return transformer(state, {"self_attn": "mha"}, 2)


def decoder(state: Arrays) -> Arrays:
    return transformer(state, {"self_attn": "self_attn", "multihead_attn": "cross_attn"}, 3)


# -- expectations made with NumPy ------------------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def same() -> Case:
    return Case({}, [drawn(2, 3)], [drawn(2, 3)])


def swiglu() -> Case:
    x, a, b = drawn(2, 4), drawn(4, 5), drawn(4, 5)[::-1]
    return Case({"linear_inner.weight": a, "linear_outer.weight": b}, [x], [(x @ a) * sigmoid(x @ a) * (x @ b)])


def gate() -> Case:
    x, h, a, b = drawn(2, 3), drawn(2, 4), drawn(3, 4), drawn(4, 4)
    bias = np.arange(4, dtype=np.float32)
    state = {"input_transform.weight": a, "hidden_transform.weight": b}
    state |= {"input_transform.bias": bias, "hidden_transform.bias": bias}
    return Case(state, [x, h], [x @ a + h @ b + 2 * bias])


def deformable() -> Case:
    """A 1×1 kernel that looks half a pixel down and a quarter to the right."""
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    offset = np.stack([np.full((3, 3), 0.5), np.full((3, 3), 0.25)])[None].astype(np.float32)
    padded = np.pad(x[0, 0], ((0, 1), (0, 1)))
    down = (padded[:3] + padded[1:]) / 2
    return Case({"weight": np.full((1, 1, 1, 1), 2, np.float32)}, [x, offset],
                [2 * (down[:, :3] * 0.75 + down[:, 1:] * 0.25)[None, None]])  # fmt: skip


def sinusoids() -> Case:
    x = drawn(2, 5, 6)
    angles = np.arange(5)[:, None] / 10000 ** (np.arange(0, 6, 2) / 6)
    return Case({}, [x], [x + np.stack([np.sin(angles), np.cos(angles)], -1).reshape(5, 6)])


def rotations() -> Case:
    x = drawn(2, 5, 6)
    angles = np.arange(5)[:, None] * 10000.0 ** (-np.arange(0, 6, 2) / 6)
    z = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return Case({}, [x], [np.stack([z.real, z.imag], -1).reshape(x.shape)])


HELPERS = """
def initialized(m):
    return any([p.is_initialized for p in m.params()])
def counted(m):
    seen = []
    m.visit(lambda name, param: seen.append(name))
    return sorted(seen)
def tripled(m):
    return m.map(lambda name, tensor: tensor * 0 + 3).bias.val().tolist()
"""

SECTIONS = {
    "Module methods": [
        Row("module.devices()", "m.backends() == [emberlet.get_backend()]"),
        Row("module.fork(device)", "m.fork('python') is not m and repr(m.fork('python').backends()[0]) == 'python'",
            note="a copy on another backend"),
        Row("module.to_device(device)", "repr(m.to('python').backends()[0]) == 'python'",
            note="moves the module itself"),
        Row("module.no_grad()", "not any([p.require_grad for p in m.no_grad().params()])"),
        Row("module.num_params()", "m.num_params() == 9 and not initialized(m)"),
        Row("module.visit(visitor)", "counted(m) == ['bias', 'weight'] and not initialized(m)",
            note="a function of (name, Param), an object with `visit`, or one with Burn's `visit_float(id, tensor)`"),
        Row("module.map(mapper)", "tripled(m) == [3, 3, 3]",
            note="a function of (name, tensor), an object with `map`, or one with Burn's `map_float(id, tensor)`"),
        Row("module.into_record()", "m.to_record()['weight'].shape == (2, 3)"),
        Row("module.load_record(record)", "m.load_record(m.to_record()) is m",
            note="also a dict of tensors or an open Burnpack; returns the module"),
        Row("module.save_file(file_path, recorder)", "m.save_file(path, 'half') > 0",
            note="a burnpack; the precision replaces the recorder"),
        Row("module.load_file(file_path, recorder)",
            "m.save_file(path) > 0 and m.load_file(path) is m and m.weight.dtype is emberlet.float32"),
        Row("module.valid()", "m.valid() is m", note="no backend differentiates"),
    ],
    "General": [
        Row("BatchNorm", "nn.BatchNorm(3)", torch("batch_norm"), note="`BatchNorm1d`, `2d`, `3d` are the same class"),
        Row("Dropout", "nn.Dropout(0.5)", same, note="passes its input through"),
        Row("Embedding", "nn.Embedding(7, 4)", torch("embedding")),
        Row("Gelu", "nn.Gelu()", torch("gelu")),
        Row("GroupNorm", "nn.GroupNorm(2, 6)", torch("group_norm")),
        Row("HardSigmoid", "nn.HardSigmoid(1 / 6)", torch("hard_sigmoid"), note="alpha is 0.2 by default, as in Burn"),
        Row("InstanceNorm", "nn.InstanceNorm(3)", torch("instance_norm")),
        Row("LayerNorm", "nn.LayerNorm((3, 4))", torch("layer_norm")),
        Row("LeakyRelu", "nn.LeakyRelu(0.2)", torch("leaky_relu")),
        Row("Linear", "nn.Linear(5, 3)", torch("linear", lambda s: dense(s, "", "")),
            note="weight (d_input, d_output), the transpose of PyTorch's"),
        Row("Prelu", "nn.PRelu(3)", torch("prelu_channels")),
        Row("Relu", "nn.Relu()", torch("relu")),
        Row("RmsNorm", "nn.RmsNorm(6)", torch("rms_norm")),
        Row("SwiGlu", "nn.SwiGlu(4, 5)", swiglu),
        Row("Interpolate1d", "nn.Interpolate1d(11, mode='linear')", torch("interpolate1d_linear")),
        Row("Interpolate2d", "nn.Interpolate2d((10, 5), mode='cubic')", torch("interpolate_cubic")),
    ],
    "Convolutions": [
        Row("Conv1d", "nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)", torch("conv1d")),
        Row("Conv2d", "nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))", torch("conv2d")),
        Row("Conv3d", "nn.Conv3d(2, 3, 2, stride=(1, 2, 1))", torch("conv3d")),
        Row("ConvTranspose1d", "nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)",
            torch("conv_transpose1d")),
        Row("ConvTranspose2d", "nn.ConvTranspose2d(3, 4, (3, 2), stride=2, padding=(1, 0), dilation=(2, 1))",
            torch("conv_transpose2d")),
        Row("ConvTranspose3d", "nn.ConvTranspose3d(2, 3, 2, stride=(1, 2, 2), output_padding=(0, 1, 0))",
            torch("conv_transpose3d")),
        Row("DeformConv2d", "nn.DeformConv2d(1, 1, 1, bias=False)", deformable, "m(a, b)"),
    ],
    "Pooling": [
        Row("AdaptiveAvgPool1d", "nn.AdaptiveAvgPool1d(3)", torch("adaptive_avg_pool1d")),
        Row("AdaptiveAvgPool2d", "nn.AdaptiveAvgPool2d((3, 5))", torch("adaptive_avg_pool2d")),
        Row("AvgPool1d", "nn.AvgPool1d(3, 2, 1)", torch("avg_pool1d")),
        Row("AvgPool2d", "nn.AvgPool2d(3, 2, 1, count_include_pad=False)", torch("avg_pool2d_exclude_pad")),
        Row("MaxPool1d", "nn.MaxPool1d(3, 2, 1)", torch("max_pool1d")),
        Row("MaxPool2d", "nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))", torch("max_pool2d")),
    ],
    "RNNs": [
        Row("Gru", "nn.Gru(4, 3)", torch("gru", lambda s: recurrent(s, GRU)), "m(a)[0]",
            "gives the last state too; `BiGru` reads both ways"),
        Row("Lstm", "nn.Lstm(4, 3)", torch("lstm", lambda s: recurrent(s, LSTM)), "m(a)[0]"),
        Row("BiLstm", "nn.BiLstm(4, 3)", torch("bilstm", bilstm), "m(a)[0]"),
        Row("GateController", "nn.GateController(3, 4)", gate, "m(a, b)"),
    ],
    "Transformer": [
        Row("MultiHeadAttention", "nn.MultiHeadAttention(6, 2)", torch("attention", attention),
            "m(a, b, c, mask_pad=d, mask_attn=e).context"),
        Row("TransformerDecoder", "nn.TransformerDecoder(6, 8, 2, 2)", torch("decoder", decoder),
            "m(a, b, mask_attn=c, memory_mask_pad=d)",
            "`new_cache()` for generating; norms are numbered in the order they act, norm_first or not"),
        Row("TransformerEncoder", "nn.TransformerEncoder(6, 8, 2, 2)", torch("encoder", encoder), "m(a, mask_pad=b)",
            "`new_cache()` makes it causal, step by step"),
        Row("PositionalEncoding", "nn.PositionalEncoding(6, 8)", sinusoids),
        Row("RotaryEncoding", "nn.RotaryEncoding(8, 6)", rotations, note="`interleaved=False` for Llama's layout"),
    ],
    "Loss": [
        Row("CrossEntropyLoss", "nn.CrossEntropyLoss()", torch("cross_entropy"), "m(a, b)"),
        Row("MseLoss", "nn.MseLoss()", torch("mse_loss"), "m(a, b)"),
        Row("HuberLoss", "nn.HuberLoss(0.7)", torch("huber_loss"), "m(a, b)"),
    ],
}  # fmt: skip
