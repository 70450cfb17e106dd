"""Empty tensors, numbers in place of tensors, values at the ends of ranges and other rare arguments, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emberlet import functional as F
from emberlet.errors import DTypeError, EmberletError, ShapeError
from emberlet.functional.onnx_ml.text import as_numbers, as_strings
from emberlet.functional.quantized.tensors import QuantScheme
from support.backends import same, tensor
from support.rows import every

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_a_power_of_two_is_rounded_up_down_or_to_the_nearest(backend: Any, mode: str) -> None:
    values = np.float32([1.0, 1.25, 1.49, 1.5, 1.75, 2.0, 3.1, 0.3, 0.37, 0.4, 1e-9, 5e7])
    exponent = np.log2(values.astype(np.float64))
    floor = 2.0 ** np.floor(exponent)
    wanted = {
        "up": 2.0 ** np.ceil(exponent),
        "down": floor,
        "nearest": np.where(values < 1.5 * floor, floor, 2 * floor),
    }
    found = F.cast(tensor(values), "float8_e8m0fnu", round_mode=mode)
    np.testing.assert_array_equal(F.astype(found, "float64").tolist(), wanted[mode])


def test_a_number_is_scattered_to_every_index(backend: Any) -> None:
    x, index = tensor(np.zeros((3, 2), np.float32)), tensor(np.array([[0, 2], [2, 2]]))
    same(F.scatter(x, 0, index, 1.5), np.float32([[1.5, 0], [0, 0], [1.5, 3.0]]))
    with pytest.raises(ShapeError, match=r"values of shape \(2,\)"):
        F.scatter(x, 0, index, F.ones((2,)))


def test_integers_are_scaled_in_a_product(backend: Any) -> None:
    a, b, c = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4), np.arange(4)
    same(F.gemm(tensor(a), tensor(b), tensor(c), alpha=0.5, beta=2.0), (a @ b * 0.5).astype(int) + 2 * c)
    same(F.gemm(tensor(a.T), tensor(b.T), alpha=3.0, trans_a=True, trans_b=True), a @ b * 3)


def test_joining_in_another_dtype(backend: Any) -> None:
    x, y = tensor(np.int32([1, 2])), tensor(np.float32([2.5]))
    same(F.concat([x, y]), np.float32([1, 2, 2.5]))
    same(F.concat([x, y], dtype="int64"), np.array([1, 2, 2]))
    for call in (lambda: F.concat([]), lambda: F.stack([]), lambda: F.concat([x, F.zeros((1, 2))])):
        with pytest.raises(EmberletError):
            call()


@every("split", [None, 1, 2, 3, 5, [2, 3], [0, 4, 1], (5,)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_splitting_into_a_list(backend: Any, split: Any, axis: int) -> None:
    a = np.arange(25).reshape(5, 5)
    step = 1 if split is None else split
    ends = np.cumsum(split)[:-1] if isinstance(split, (list, tuple)) else range(step, 5, step)
    expected = np.split(a, ends, axis)
    for keepdims in (True, False):
        found = F.split_to_sequence(tensor(a), split, axis, keepdims)
        assert len(found) == len(expected)
        for x, part in zip(found, expected, strict=True):
            same(x, part if keepdims or split is not None else part.squeeze(axis))


def test_results_for_no_elements(backend: Any) -> None:
    none = F.zeros((0, 3))
    assert F.logsumexp(none, 0).tolist() == [-INF] * 3 and F.logsumexp(none).item() == -INF
    assert (F.sum(none).item(), F.prod(none).item(), F.all(none).item(), F.any(none).item()) == (0, 1, True, False)
    assert math.isnan(F.mean(none).item()) and F.norm(none).item() == 0
    assert F.group_norm(F.zeros((0, 4, 2)), 2).shape == (0, 4, 2) and F.hardmax(none).shape == (0, 3)
    assert F.topk(F.zeros((2, 3)), 0).shape == (2, 0) and F.sort(none, axis=0).shape == (0, 3)
    assert [x.shape for x in F.unique_all(F.zeros((0,)))] == [(0,)] * 4
    assert F.tile(none, (2, 2)).shape == (0, 6) and F.repeat(none, 2, axis=0).shape == (0, 3)
    assert F.take(F.zeros((3, 2)), F.zeros((0,)), axis=0).shape == (0, 2)
    for call in (lambda: F.max(none), lambda: F.min(none, axis=0), lambda: F.argmax(none), lambda: F.argmin(none, 0)):
        with pytest.raises(ShapeError, match="undefined"):
            call()
    assert F.argmax(none, axis=1).shape == (0,) and F.max(none, axis=1).shape == (0,)


@every("layer", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_recurrent_layer_over_no_steps_keeps_its_states(backend: Any, layer: str, direction: str) -> None:
    gates, count = {"rnn": 1, "gru": 3, "lstm": 4}[layer], 2 if direction == "bidirectional" else 1
    h = np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3)
    w, r = F.ones((count, gates * 3, 5)), F.ones((count, gates * 3, 3))
    y, last, *_ = getattr(F, layer)(F.zeros((0, 2, 5)), w, r, initial_h=tensor(h), direction=direction)
    assert y.shape == (0, count, 2, 3)
    same(last, h)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_vectors_of_a_given_length_at_least_epsilon(backend: Any, p: int) -> None:
    x = np.float32([[3, 4], [0, 0], [1e-3, 0]])
    length = np.linalg.norm(x, p, axis=-1, keepdims=True)
    same(F.lp_normalize(tensor(x), p, epsilon=0.1), x / np.maximum(length, np.float32(0.1)), 1e-5, 1e-7)
    same(F.lp_normalize(tensor(x), p), x / np.where(length == 0, 1, length), 1e-5, 1e-7)


def test_numbers_are_written_as_onnx_casts_them(backend: Any) -> None:
    assert as_strings(F.asarray([INF, -INF, NAN, 0.1, -2.5, 1e-7])).tolist() == [
        "INF",
        "-INF",
        "NaN",
        "0.1",
        "-2.5",
        "1e-07",
    ]
    assert as_strings(F.asarray([3, -4])).tolist() == ["3", "-4"]
    assert as_strings(F.asarray([True, False])).tolist() == ["True", "False"]
    assert as_strings(F.asarray(["a"])).tolist() == ["a"]


def test_strings_are_read_as_numbers(backend: Any) -> None:
    def read(texts: list[str], dtype: str) -> Any:
        x = as_numbers(F.asarray(texts), dtype)
        assert x.dtype.name == dtype
        return x.tolist()

    assert read(["1e-3", "inf", "-INF", " 2 "], "float64") == [1e-3, INF, -INF, 2.0]
    assert math.isnan(read(["NaN"], "float32")[0])
    assert read(["7", "-8", "2.9", "-2.9", "1e3", "9007199254740993"], "int64") == [
        7,
        -8,
        2,
        -2,
        1000,
        9007199254740993,
    ]
    assert read(["True", "false", "0", "1", " False ", "", "yes"], "bool") == [
        True,
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    for wrong, dtype in (("a", "int64"), ("1.x", "int64"), ("", "float32"), ("one", "float64")):
        with pytest.raises(DTypeError, match="is not a number"):
            as_numbers(F.asarray([wrong]), dtype)
    with pytest.raises(DTypeError, match="as_numbers"):
        as_numbers(F.asarray([1]), "int64")


def test_tokens(backend: Any) -> None:
    x = F.asarray(["ab cd", "efg", ""])
    assert F.tokenize(x, "#", [" "]).tolist() == [["ab", "cd"], ["efg", "#"], ["#", "#"]]
    marked = F.tokenize(x, "#", [" "], mark=True)
    assert marked.tolist() == [["\x02", "ab", "cd", "\x03"], ["\x02", "efg", "\x03", "#"], ["\x02", "\x03", "#", "#"]]
    assert F.tokenize(x, "#", [" "], shortest=3).tolist() == [["#"], ["efg"], ["#"]]
    assert F.tokenize(x, "#", expression="[a-e]+").tolist() == [["ab", "cd"], ["e", "#"], ["#", "#"]]
    assert F.tokenize(x[1:2], "#", [""]).tolist() == [["e", "f", "g"]]
    assert F.tokenize(F.asarray(["", ""]), "#", [" "]).shape == (2, 0)
    with pytest.raises(ShapeError, match="tokenize takes"):
        F.tokenize(F.asarray([[["a"]]]), "#", [" "])


@every("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows_of_packed_weights_in_any_order_of_blocks(backend: Any, bits: int, zeros: str) -> None:
    draw = np.random.default_rng(bits)
    rows, columns, size, each = 21, 3, 8, 8 // bits
    blocks = -(-rows // size)
    levels = draw.integers(0, 1 << bits, (columns, blocks * size)).astype(np.uint8)
    weight = sum(levels.reshape(columns, -1, each)[..., i].astype(int) << bits * i for i in range(each)).astype(
        np.uint8
    )
    scales = draw.normal(size=(columns, blocks)).astype(np.float32)
    points = draw.integers(0, 1 << bits, (columns, -(-blocks // each) * each)).astype(np.uint8)
    zero = points[:, :blocks].astype(np.float32) if zeros != "none" else np.full_like(scales, 1 << (bits - 1))
    given = None
    if zeros == "packed":
        packed = sum(points.reshape(columns, -1, each)[..., i].astype(int) << bits * i for i in range(each))
        given = tensor(packed.astype(np.uint8).reshape(-1))
    elif zeros == "float":
        given = tensor(zero.reshape(-1))
    for order in (None, draw.integers(0, blocks, rows)):
        at = np.arange(rows) // size if order is None else order
        expected = (levels[:, :rows].astype(np.float32) - zero[:, at]) * scales[:, at]
        indices = None if order is None else tensor(order)
        options = {"rows": rows, "columns": columns, "bits": bits, "block_size": size, "group_indices": indices}
        found = F.dequantize_nbits(tensor(weight.reshape(-1)), tensor(scales.reshape(-1)), given, **options)
        same(found, expected, 1e-5, 1e-6)
        x = draw.normal(size=(2, 4, rows)).astype(np.float32)
        found = F.matmul_nbits(tensor(x), tensor(weight.reshape(-1)), tensor(scales.reshape(-1)), given, **options)
        same(found, x @ expected.T, 1e-4, 1e-4)
    with pytest.raises(ShapeError, match="are not 3 columns"):
        F.dequantize_nbits(tensor(weight.reshape(-1)[1:]), tensor(scales.reshape(-1)), rows=rows, columns=columns,
                           bits=bits, block_size=size)  # fmt: skip
    with pytest.raises(ShapeError, match="does not fit a weight of 21 rows"):
        F.matmul_nbits(F.ones((2, 20)), tensor(weight), tensor(scales), rows=21, columns=3, bits=bits, block_size=8)


def test_schemes_of_quantization_are_printed() -> None:
    assert repr(QuantScheme("uint8", "affine")) == "QuantScheme('uint8', 'affine')"
    assert repr(QuantScheme.named(None)) == "QuantScheme('int8', 'symmetric')"
    assert repr(QuantScheme.named("affine")) == "QuantScheme('int8', 'affine')"
    assert repr(QuantScheme.named("int4")) == "QuantScheme('int4', 'symmetric')"
    x = F.ones((2, 3), backend="numpy").quantize("uint8")
    assert repr(x) == "Quantized(shape=(2, 3), dtype=uint8, backend=numpy)"
    with pytest.raises(DTypeError, match="cannot quantize to int32"):
        QuantScheme("int32")


@pytest.mark.parametrize("length", [3, 5, 6])
def test_a_square_mask_counts_the_past(backend: Any, length: int) -> None:
    draw = np.random.default_rng(length)
    q, k = draw.normal(size=(2, 1, 3, 4)).astype(np.float32), draw.normal(size=(2, 1, length, 4)).astype(np.float32)
    mask = draw.integers(0, 2, (2, 1, 8, 8)).astype(np.int32)
    mask[..., 0] = 1
    seen = mask[:, :, length - 3 : length, :length]
    scores = q @ k.swapaxes(2, 3) / 2 + np.where(seen == 1, 0, -1e4)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares / shares.sum(-1, keepdims=True) @ k
    past = (
        {"past_key": tensor(k[:, :, : length - 3]), "past_value": tensor(k[:, :, : length - 3])} if length > 3 else {}
    )
    new = tensor(k[:, :, length - 3 :])
    y = F.multi_head_attention(tensor(q[:, 0]), new, new, mask=tensor(mask), num_heads=1, **past)[0]
    same(y, expected[:, 0].astype(np.float32), 1e-4, 1e-5)
    with pytest.raises(ShapeError, match="a mask of shape"):
        F.multi_head_attention(tensor(q[:, 0]), new, new, mask=tensor(mask[:, :, :2, :2]), num_heads=1, **past)
