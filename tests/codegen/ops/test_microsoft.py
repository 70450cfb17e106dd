"""Activations, normalization and products of com.microsoft, against onnxruntime where it has them on a CPU."""

import re
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.codegen.ops import REGISTRY
from emberlet.errors import ModelError
from support.contrib_node import check, generated, levels, normal, one_node

from tools.generated import contrib_page

F32 = np.float32


def gelu(x: np.ndarray) -> np.ndarray:
    return (x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))).astype(F32)


def silu(x: np.ndarray) -> np.ndarray:
    return (x / (1 + np.exp(-x))).astype(F32)


def test_bias_split_gelu() -> None:
    x, bias = normal(1, 2, 3, 8), normal(2, 8)
    left, right = np.split(x + bias, 2, axis=-1)
    check("BiasSplitGelu", [x, bias], want=[left * gelu(right)])


def test_bias_softmax_over_the_last_axis() -> None:
    x, bias = normal(4, 2, 3, 5), normal(5, 1, 5)
    shares = np.exp(x + bias)
    want = shares / shares.sum(-1, keepdims=True)
    check("BiasSoftmax", [x, bias], want=[want], axis=2, is_inner_broadcast=0)


# -- normalization ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constants", [(2, 3, 4), ()])
def test_skip_layer_normalization_with_its_statistics(constants: tuple[int, ...]) -> None:
    x, skip, (gamma, beta, bias) = normal(10, 2, 3, 16), normal(11, 3, 16), (normal(12 + i, 16) for i in range(3))
    total = x + skip + bias
    mean, inverse = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    y = (total - mean) * inverse * gamma + beta
    inputs, results = [x, skip, gamma, beta, bias], (F32,) * 4
    want: list[np.ndarray | None] = [y, mean, inverse, total]
    check("SkipLayerNormalization", inputs, constants=constants, results=results, want=want, epsilon=1e-5)
    check("SkipLayerNormalization", inputs, constants=constants, epsilon=1e-5)


def test_skip_layer_normalization_of_tokens() -> None:
    inputs = [normal(14, 7, 16), normal(15, 7, 16), normal(16, 16)]
    check("SkipSimplifiedLayerNormalization", inputs, constants=(2,), results=(F32, None, None, F32))


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_simplified_layer_normalization(axis: int) -> None:
    x = normal(17, 2, 3, 16)
    scale = normal(18, *x.shape[axis:])
    check("SimplifiedLayerNormalization", [x, scale], constants=(1,), domain="", axis=axis, epsilon=1e-4)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_embed_layer_normalization_with_positions_and_its_sum(segments: bool, masked: bool) -> None:
    ids = np.array([[1, 4, 2], [0, 3, 3]], dtype=np.int32)
    positions = np.array([[2, 1, 0]], dtype=np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], dtype=np.int32) if masked else None
    segment = [ids % 2, normal(19, 2, 8)] if segments else [None, None]
    tables, affine = [normal(20, 6, 8), normal(21, 5, 8)], [normal(22, 8), normal(23, 8)]
    inputs = [ids, segment[0], *tables, segment[1], *affine, mask, positions]
    check("EmbedLayerNormalization", inputs, results=(F32, np.int32, F32), constants=(2, 3, 4, 5, 6))


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_group_norm(channels_last: int, activation: int) -> None:
    x, gamma, beta = normal(24, 2, 6, 4, 5), normal(25, 6), normal(26, 6)
    grouped = x.reshape(2, 3, -1)
    flat = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    want = flat.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    want = silu(want) if activation else want
    if channels_last:
        x, want = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.moveaxis(want, 1, -1)
    given = {"groups": 3, "activation": activation, "channels_last": channels_last}
    check("GroupNorm", [x, gamma, beta], want=[want], constants=(1, 2), **given)


# -- products ---------------------------------------------------------------------------------------------------------


def test_fused_mat_mul_and_an_activation() -> None:
    a, b = normal(28, 2, 3, 4), normal(29, 4, 5)
    z = 0.5 * (a @ b)
    given = {"activation": "LeakyRelu", "activation_alpha": 0.1, "alpha": 0.5}
    check("FusedMatMulActivation", [a, b], constants=(1,), want=[np.where(z < 0, z * 0.1, z).astype(F32)], **given)


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
def test_conv_with_channels_last(op: str) -> None:
    x, w, b = normal(43, 2, 6, 5, 4), normal(44, 6, 4, 3, 3), normal(45, 6)
    turned = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    given = {"pads": [1, 1, 1, 1], "strides": [1, 2]}
    (plain,) = generated(one_node("FusedConv", [turned, w, b], (F32,), (1, 2), **given), {"x": turned})
    check(op, [x, w, b], constants=(1, 2), want=[plain.transpose(0, 2, 3, 1)], **given)


@pytest.mark.parametrize("bias", [False, True])
def test_gemm_fast_gelu(bias: bool) -> None:
    x, w, b = normal(46, 2, 3, 4), normal(47, 4, 5), normal(48, 5)
    z = x @ w + (b if bias else 0)
    want = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    check("GemmFastGelu", [x, w, *([b] if bias else [])], want=[want.astype(F32)])


# -- weights of few bits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_mat_mul_n_bits_with_unpacked_zero_points(bits: int) -> None:
    k, n, block = 40, 6, 16
    blocks = -(-k // block)
    scales, zeros = np.abs(normal(50, n * blocks)) * 0.1, normal(51, n * blocks) + 2 ** (bits - 1)
    inputs = [normal(52, 3, k), levels(53, n, blocks, block * bits // 8), scales, zeros]
    check(
        "MatMulNBits", inputs, constants=(1, 2, 3), atol=1e-4, want=_n_bits(*inputs, bits, block), **_bits(k, n, bits)
    )


def _bits(k: int, n: int, bits: int) -> dict[str, int]:
    return {"K": k, "N": n, "bits": bits, "block_size": 16}


def _n_bits(
    x: np.ndarray, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray, bits: int, block: int
) -> list[Any]:
    n, blocks, _ = packed.shape
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    values = (packed[..., None] >> shifts & (2**bits - 1)).reshape(n, blocks, block)
    real = (values - zeros.reshape(n, blocks, 1)) * scales.reshape(n, blocks, 1)
    return [(x @ real.reshape(n, -1)[:, : x.shape[1]].T).astype(F32)]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gather_block_quantized_bytes(bits: int) -> None:
    table = levels(54, 10, 32 * bits // 8)
    inputs = [table, np.array([[1, 9], [-2, 0]], dtype=np.int64), np.abs(normal(55, 10, 2))]
    given = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": bits}
    check("GatherBlockQuantized", inputs, constants=(0, 2), **given)


def test_gather_block_quantized_along_another_axis() -> None:
    from ml_dtypes import int4

    table = np.random.default_rng(56).integers(-8, 8, size=(32, 6)).astype(int4)
    inputs = [table, np.array([5, 0, 2], dtype=np.int32), np.abs(normal(57, 2, 6))]
    want = (table.astype(F32) * inputs[2].repeat(16, axis=0))[:, inputs[1]]
    given = {"gather_axis": 1, "quantize_axis": 0, "block_size": 16}
    check("GatherBlockQuantized", inputs, constants=(0, 2), want=[want], **given)


# -- what the reader says ---------------------------------------------------------------------------------------------


def test_an_activation_nobody_knows_is_named() -> None:
    model = one_node("FusedConv", [normal(1, 1, 1, 4, 4), normal(2, 1, 1, 3, 3)], (F32,), activation="Magic")
    with pytest.raises(ModelError, match=r"'Magic'.*Clip"):
        load(model)


@pytest.mark.parametrize(("name", "most"), [("HardSigmoid", 2), ("Clip", 2), ("LeakyRelu", 1)])
def test_an_activation_with_too_many_parameters_is_refused(name: str, most: int) -> None:  # as by onnxruntime
    parameters = [0.5] * (most + 1)
    x, w = normal(1, 1, 1, 4, 4), normal(2, 1, 1, 3, 3)
    model = one_node("FusedConv", [x, w], (F32,), (1,), activation=name, activation_params=parameters)
    with pytest.raises(ModelError, match=f"'{name}' has {most} parameters, found {most + 1}"):
        load(model)


def test_the_page_about_com_microsoft_lists_what_there_is() -> None:
    page = (Path(__file__).parents[3] / "docs" / "contrib-operators.md").read_text(encoding="utf-8")
    assert contrib_page.page() == page, "run python3 dev.py check --fix"
    listed = set(re.findall(r"^\| ([A-Z]\w+) \|", page, re.MULTILINE))
    assert listed == {op for domain, op in REGISTRY if domain == "com.microsoft"}


@pytest.mark.parametrize("rank", [0, 1, 2, 6])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_queries_keys_and_values_of_another_rank_are_refused_by_name(which: int, rank: int) -> None:
    inputs = [normal(i, 1, 4, 8) for i in range(3)]
    inputs[which] = normal(9, *(2,) * rank)
    with pytest.raises(ModelError, match="MultiHeadAttention") as raised:
        load(one_node("MultiHeadAttention", inputs, (F32,), num_heads=2))
    assert raised.value.__cause__ is None
