"""Dtypes of scales and values: as ml_dtypes rounds them, through files, in every layer."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from statistics import NormalDist
from typing import Any

import emberlet
import ml_dtypes
import numpy as np
import pytest
from emberlet import Tensor, nn
from emberlet.errors import UnsupportedError
from emberlet.functional.quantized.codebooks import NF4
from emberlet.functional.quantized.weights import WeightScheme, fake_quantize
from emberlet.module.narrowing import PrecisionWarning

SCALES = ["float32", "float16", "bfloat16", "float8_e8m0fnu", "float8_e4m3fn"]
VALUES = [(8, "float8_e4m3fn"), (8, "float8_e5m2"), (4, "float4_e2m1fn")]
RNG = np.random.default_rng(0)


def layer(d_input: int = 40, d_output: int = 6, **scheme: Any) -> Any:
    """A Linear with weights of many sizes, quantized, and the weight (d_output, d_input) it had."""
    made = nn.Linear(d_input, d_output)
    w = (RNG.normal(size=(d_input, d_output)) * np.exp(RNG.normal(size=d_output) * 2)).astype(np.float32)
    made.weight.set(emberlet.asarray(w))
    made.quantize_weights(**scheme)
    return made, w.T


def numbers(param: Any) -> Any:
    """A narrow float's values as ml_dtypes reads their bytes."""
    tensor = param.val()
    raw = np.frombuffer(bytes(tensor.backend.to_bytes(tensor)), np.uint8)
    if tensor.dtype.bits == 4:
        raw = np.stack([raw & 15, raw >> 4], -1).reshape(-1)
    kind = getattr(ml_dtypes, tensor.dtype.name)
    return raw.view(kind).astype(np.float32).reshape(tensor.shape) if tensor.dtype.bits <= 8 else None


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("bits", "mode"), [(8, "symmetric"), (4, "symmetric"), (4, "affine"), (2, "affine")])
def test_a_rounded_scale_costs_little_and_is_that_of_the_levels(bits: int, mode: str, scale: str) -> None:
    made, w = layer(bits=bits, mode=mode, level=8, scale_dtype=scale)
    assert made.weight.scale.dtype.name == scale
    assert (made.weight.tensor_scale is not None) is (scale == "float8_e4m3fn")
    off = np.abs(np.asarray(made.weight.val()).T - w).reshape(6, 5, 8)
    # Half a step, and what a scale rounded down clips: up to 1/16 of all steps for three bits of mantissa.
    steps = np.asarray(made.weight.scales()).reshape(6, 5, 1)
    levels = 2 ** (bits - 1) - 1 if mode == "symmetric" else 2**bits - 1
    clipped = {"float16": 2**-11, "bfloat16": 2**-8, "float8_e4m3fn": 2**-4}.get(scale, 0.0) * levels
    tiny = steps.max() / 448 * 2**-10 if scale == "float8_e4m3fn" else 0.0  # half a step below its normal numbers
    assert (off <= steps * (0.5001 + clipped) + tiny * levels).all()


@pytest.mark.parametrize("size", [1, 1e-3, 1e-6])
@pytest.mark.parametrize("value", [None, "float4_e2m1fn"])
def test_a_block_of_zeros_takes_nothing_from_the_others(value: str | None, size: float) -> None:
    w = (RNG.normal(size=(64, 8)) * size).astype(np.float32)
    made = nn.Linear(64, 8)
    off = []
    for tiny in (None, 0.0, size * 1e-6):
        w[:16, 0] = w[:16, 0] if tiny is None else tiny
        net = made.clone()
        net.weight.set(emberlet.asarray(w))
        net.quantize_weights(4, level=16, scale_dtype="float8_e4m3fn", value_dtype=value)
        found = np.asarray(net.weight.val())
        off.append(np.abs(found - w)[:, 1:].max())
        if tiny is not None:
            assert np.abs(found[:16, 0] - tiny).max() <= tiny  # a step of the smallest scale, or exactly 0
    assert off[0] == off[1] == off[2]


@pytest.mark.parametrize("size", [1e-8, 1e6])
def test_scales_that_float16_does_not_hold_are_told(size: float) -> None:
    w = (RNG.normal(size=(64, 8)) * size).astype(np.float32)
    for scale in ("float16", "bfloat16", "float32"):
        made = nn.Linear(64, 8)
        made.weight.set(emberlet.asarray(w))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made.quantize_weights(4, level=16, scale_dtype=scale)
        assert [each.category for each in told] == ([PrecisionWarning] if scale == "float16" else [])
        if scale != "float16":
            np.testing.assert_allclose(np.asarray(made.weight.val()), w, atol=size * 0.4)


@pytest.mark.parametrize("method", ["rtn", "gptq", "awq"])
def test_one_warning_a_call_names_the_layers_and_the_line(method: str) -> None:
    x = emberlet.asarray(RNG.normal(size=(8, 64)).astype(np.float32))
    lines = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # once a line
        for _ in range(2):
            net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
            for layer, size in zip(net, (1e-8, 1.0, 1e-8), strict=True):
                layer.weight.set(emberlet.asarray((RNG.normal(size=(64, 64)) * size).astype(np.float32)))
            samples = None if method == "rtn" else [x]
            lines.append(sys._getframe().f_lineno + 1)
            net.quantize_weights(4, level=16, scale_dtype="float16", method=method, samples=samples)
    [one] = told
    assert (one.filename, one.lineno) == (__file__, lines[0])
    assert "do not hold the weights of '0', '2' well" in str(one.message)


def test_a_float_weight_that_is_set_or_loaded_is_told_of_at_the_users_line() -> None:
    made, net = nn.Linear(64, 8), emberlet.Module()
    net.fc = nn.Linear(64, 8)
    wanted = {"fc.weight": np.full((64, 8), 1e-8, np.float32), "fc.bias": np.zeros(8, np.float32)}
    for each in (made, net):
        each.quantize_weights(4, level=16, scale_dtype="float16")
    with pytest.warns(PrecisionWarning, match="do not hold these weights well") as told:
        made.weight.set(emberlet.asarray(wanted["fc.weight"]))
    with pytest.warns(PrecisionWarning, match="do not hold the weights of 'fc' well") as more:
        net.load_from(wanted, layout="burn")
    assert [each.filename for each in (*told, *more)] == [__file__] * 2


@pytest.mark.parametrize(("bits", "value"), [(4, None), *VALUES])
def test_gptq_and_loading_keep_the_dtype_of_scales(bits: int, value: str | None, tmp_path: Path) -> None:
    x = [emberlet.asarray(RNG.normal(size=(30, 40)).astype(np.float32))]
    for scale in SCALES:
        made = nn.Linear(40, 6)
        made.quantize_weights(bits, level=8, scale_dtype=scale, value_dtype=value, samples=x, correct_bias=True,
                              method="rtn" if value else "gptq")  # fmt: skip
        assert made.weight.scale.val().dtype.name == scale
        made.save_into(tmp_path / f"{scale}.bpk")
        same = nn.Linear(40, 6)
        same.quantize_weights(bits, level=8, scale_dtype=scale, value_dtype=value)
        assert same.load_from(tmp_path / f"{scale}.bpk").quantized == {}
        np.testing.assert_array_equal(np.asarray(same.weight.val()), np.asarray(made.weight.val()))


def looked_up(table: Any, at: Any) -> tuple[Any, int]:
    """The rows, and the elements of the largest tensor that was converted for them."""
    sizes = []
    kept = Tensor.astype

    def watched(self: Any, dtype: Any, *more: Any) -> Any:
        sizes.append(self.size)
        return kept(self, dtype, *more)

    Tensor.astype = watched
    try:
        return table(at), max(sizes)
    finally:
        Tensor.astype = kept


def test_an_embedding_with_float_values_converts_only_the_rows_that_it_looks_up() -> None:
    table = nn.Embedding(2000, 64)
    table.quantize_weights(4, level=32, scale_dtype="float8_e8m0fnu", value_dtype="float4_e2m1fn")
    at = emberlet.asarray(np.array([[3, 1999]]))
    wanted = np.asarray(table.weight.val())[[3, 1999]][None]
    found, most = looked_up(table, at)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert most <= 2 * 64


def test_an_embedding_of_squares_reads_only_the_scales_of_its_rows() -> None:
    table = nn.Embedding(2000, 64)
    table.quantize_weights(8, level=(16, 16))
    for at in (np.array([[3, 1999]]), np.array([-1, -16, -17, -2000, 0]), np.array([255], np.uint8)):
        wanted = np.asarray(table.weight.val())[at]
        found, most = looked_up(table, emberlet.asarray(at))
        np.testing.assert_array_equal(np.asarray(found), wanted)
        assert most <= at.size * 64
    partial = nn.Embedding(20, 16)
    partial.quantize_weights(8, level=(8, 8))
    every_row = np.arange(-20, 20)
    wanted = np.asarray(partial.weight.val())[every_row]
    np.testing.assert_array_equal(np.asarray(partial(emberlet.asarray(every_row))), wanted)


@pytest.mark.parametrize(
    "level", [("tensor", "tensor"), ("channel", "channel"), (None, None), (8.0, 8.0), (8, 8, 8), (0, 8), (True, 8)]
)
def test_blocks_have_sides_of_whole_numbers(level: Any) -> None:
    with pytest.raises(UnsupportedError, match="blocks of two axes are numbers"):
        WeightScheme(8, level=level)


@pytest.mark.parametrize("shape", [(8, 0), (0, 8), (0, 0)])
@pytest.mark.parametrize("more", [{"level": (8, 8)}, {"level": "tensor"}, {"level": 8}, {"mode": "affine"},
                                  {"level": "tensor", "calibration": "absolute-mean"}])  # fmt: skip
def test_weights_without_elements_have_every_scheme(shape: Any, more: Any) -> None:
    made = nn.QuantizedWeight(shape, 1, WeightScheme(8, **more))
    assert made.set(emberlet.zeros(shape)).val().shape == shape
    assert made.scales().size == made.values.shape[0] * made.values.shape[1]


@pytest.mark.parametrize("way", ["record", "safetensors", "bpk"])
@pytest.mark.parametrize(("one", "other"), [
    ({"level": 8}, {"level": (8, 8)}),
    ({"level": 8, "value_dtype": "float8_e4m3fn"}, {"level": (8, 8), "value_dtype": "float8_e4m3fn"}),
    ({"level": 8, "value_dtype": "float8_e4m3fn"}, {"level": 8, "value_dtype": "float8_e5m2"}),
    ({"level": 8, "value_dtype": "float8_e5m2"}, {"bits": 4, "level": 8, "value_dtype": "float4_e2m1fn"}),
    ({"level": 8, "scale_dtype": "float8_e8m0fnu"}, {"level": 8, "scale_dtype": "float8_e4m3fn"}),
])  # fmt: skip
def test_packed_weights_of_another_scheme_are_quantized_again_or_kept_exactly(
    one: Any, other: Any, way: str, tmp_path: Path
) -> None:
    for turn, (first, second) in enumerate(((one, other), (other, one))):
        given, _ = layer(40, 16, **first)
        wanted = nn.Linear(40, 16)
        wanted.weight.set(given.weight.val())
        wanted.quantize_weights(**second)
        made, _ = layer(40, 16, **second)
        if way == "record":
            made.load_record(given.to_record())
        else:
            given.save_into(tmp_path / f"{turn}.{way}")
            made.load_from(tmp_path / f"{turn}.{way}")
        if not np.array_equal(np.asarray(made.weight.val()), np.asarray(given.weight.val())):
            np.testing.assert_array_equal(np.asarray(made.weight.val()), np.asarray(wanted.weight.val()))


@pytest.mark.parametrize("level", ["tensor", "channel", 16])
def test_powers_of_two_do_not_clip(level: Any) -> None:
    made, w = layer(bits=8, level=level, scale_dtype="float8_e8m0fnu")
    scale = numbers(made.weight.scale)
    exact, _ = layer(bits=8, level=level)
    assert np.array_equal(np.exp2(np.rint(np.log2(scale))), scale)
    assert np.abs(np.asarray(made.weight.val())).max() >= np.abs(w).max() * (1 - 1 / 127)
    assert exact.weight.scale.shape == made.weight.scale.shape


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("bits", "value"), VALUES)
def test_float_values_are_those_of_ml_dtypes(bits: int, value: str, scale: str) -> None:
    """MXFP4 is (4, float4_e2m1fn) with blocks of 32 and scales that are powers of two, NVFP4 with blocks of 16 and
    float8_e4m3fn."""
    made, w = layer(bits=bits, level=16, scale_dtype=scale, value_dtype=value)
    kind = getattr(ml_dtypes, value)
    scales = np.repeat(np.asarray(made.weight.scales()).reshape(6, 3), 16, axis=1)[:, :40]
    top = float(ml_dtypes.finfo(kind).max)
    wanted = np.clip(w / scales, -top, top).astype(kind).astype(np.float32)
    np.testing.assert_array_equal(numbers(made.weight.values).reshape(6, 48)[:, :40], wanted)
    np.testing.assert_allclose(np.asarray(made.weight.val()).T, wanted * scales, rtol=1e-6)
    x = RNG.normal(size=(3, 40)).astype(np.float32)
    product = x @ np.asarray(made.weight.val()) + np.asarray(made.bias.val())
    np.testing.assert_allclose(np.asarray(made(emberlet.asarray(x))), product, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        np.asarray(made.compile(backend="numpy")(emberlet.asarray(x))), product, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("ending", ["bpk", "safetensors"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("bits", "value"), [(4, None), (8, None), *VALUES])
def test_files_hold_every_scheme(bits: int, value: str | None, scale: str, ending: str, tmp_path: Path) -> None:
    scheme = {"bits": bits, "level": 16, "scale_dtype": scale, "value_dtype": value}
    made, _ = layer(**scheme)
    wanted = np.asarray(made.weight.val())
    path = tmp_path / f"w.{ending}"
    made.save_into(path)
    same, wide, other = (nn.Linear(40, 6) for _ in range(3))
    same.quantize_weights(**scheme)
    other.quantize_weights(8)
    for net in (same, wide, other):
        net.load_from(path, layout="burn")
    np.testing.assert_array_equal(np.asarray(same.weight.val()), wanted)
    np.testing.assert_allclose(np.asarray(wide.weight.val()), wanted, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(other.weight.val()), wanted, atol=np.abs(wanted).max() / 200)
    wide.weight.set(emberlet.asarray(wanted))
    same.load_from(wide, layout="burn")  # a float file into the scheme
    assert same.weight.scale.dtype.name == scale


@pytest.mark.parametrize("value", [None, "float4_e2m1fn"])
def test_embeddings_and_convolutions_have_them_too(value: str | None) -> None:
    table, conv = nn.Embedding(9, 24), nn.Conv2d(3, 5, 3)
    words = np.asarray(table.weight.val())
    for each in (table, conv):
        each.quantize_weights(4, level=8, scale_dtype="float8_e8m0fnu", value_dtype=value)
    at = np.array([[3, 8], [0, 3]])
    found = np.asarray(table(emberlet.asarray(at)))
    np.testing.assert_array_equal(found, np.asarray(table.weight.val())[at])
    np.testing.assert_allclose(found, words[at], atol=np.abs(words).max() * 0.3)
    x = emberlet.asarray(RNG.normal(size=(1, 3, 6, 6)).astype(np.float32))
    assert conv(x).shape == (1, 5, 4, 4)


def test_fake_weights_are_the_packed_ones() -> None:
    w = emberlet.asarray(RNG.normal(size=(24, 5)).astype(np.float32))
    for scale in SCALES:
        for bits, value in [(4, None), *VALUES]:
            made = nn.Linear(24, 5)
            made.weight.set(w)
            made.quantize_weights(bits, level=8, scale_dtype=scale, value_dtype=value)
            found = fake_quantize(w, WeightScheme(bits, level=8, scale=scale, value=value))
            np.testing.assert_allclose(np.asarray(found), np.asarray(made.weight.val()), rtol=1e-6)


def test_other_dtypes_are_refused() -> None:
    for words, why in (
        ({"scale_dtype": "float64"}, "scales is one of float32, float16"),
        ({"value_dtype": "float4_e2m1fn"}, "values of 8 bits are integers or float8_e4m3fn or float8_e5m2"),
        ({"bits": 2, "value_dtype": "float8_e5m2"}, "values of 2 bits are integers, and"),
        ({"value_dtype": "float8_e5m2", "mode": "affine"}, "symmetric and min-max"),
        ({"value_dtype": "float8_e5m2", "method": "gptq", "samples": [1]}, "gptq chooses integers"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            nn.Linear(8, 8).quantize_weights(**words)


def test_nf4_has_the_levels_and_thresholds_of_its_publication() -> None:
    """Quantiles of a normal distribution as QLoRA's Appendix E makes them; the nearest level by the midpoints."""
    offset = 0.9677083
    normal = NormalDist()
    upper = [normal.inv_cdf(p) for p in np.linspace(offset, 0.5, 9)[:-1]]
    lower = [-normal.inv_cdf(p) for p in np.linspace(offset, 0.5, 8)[:-1]]
    table = np.sort(np.array([*upper, 0.0, *lower])) / max(upper)
    np.testing.assert_allclose(NF4, table, atol=2e-7)
    made, w = layer(64, 6, bits=4, level=16, value_dtype="nf4")
    blocks = w.reshape(6, 4, 16)
    most = np.abs(blocks).max(-1, keepdims=True)
    exact = np.array(NF4, np.float32)
    numbers_of = np.abs((blocks / most)[..., None] - exact).argmin(-1)
    np.testing.assert_array_equal(np.asarray(made.weight.val()).T, (exact[numbers_of] * most).reshape(6, 64))
    raw = np.asarray(made.weight.values.val())
    np.testing.assert_array_equal(np.stack([raw & 15, raw >> 4], -1).reshape(6, 4, 16), numbers_of)


@pytest.mark.parametrize(("bits", "value"), [(8, "float8_e4m3fn"), (8, None), (4, None), (4, "nf4")])
@pytest.mark.parametrize("shape", [(24, 20), (8, 8), (9, 17), (4, 20)])
def test_square_blocks_share_the_scale_of_their_largest_weight(bits: int, value: Any, shape: tuple[int, int]) -> None:
    """DeepSeek-V3's weights: one scale for 128 × 128, here 8 × 8."""
    made, w = layer(*shape, bits=bits, level=(8, 8), value_dtype=value)
    rows, columns = w.shape
    top = 448.0 if value == "float8_e4m3fn" else 1.0 if value else 2 ** (bits - 1) - 1
    scale = np.zeros(w.shape, np.float32)
    for i in range(0, rows, 8):
        for k in range(0, columns, 8):
            scale[i : i + 8, k : k + 8] = np.abs(w[i : i + 8, k : k + 8]).max() / np.float32(top)
    if value is None:
        real = np.rint(w / scale) * scale
    elif value == "nf4":
        exact = np.array(NF4, np.float32)
        real = exact[np.abs((w / scale)[..., None] - exact).argmin(-1)] * scale
    else:
        real = (w / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale
    np.testing.assert_allclose(np.asarray(made.weight.val()).T, real, rtol=1e-6)
    if columns >= 8:
        assert made.weight.scale.shape == (-(-rows // 8) * -(-columns // 8),)
    x = RNG.normal(size=(3, shape[0])).astype(np.float32)
    wanted = x @ real.T + np.asarray(made.bias.val())
    np.testing.assert_allclose(np.asarray(made(emberlet.asarray(x))), wanted, rtol=1e-4, atol=1e-4 * np.abs(w).max())
    table = nn.Embedding(rows, columns)
    table.weight.set(emberlet.asarray(w))
    table.quantize_weights(bits, level=(8, 8), value_dtype=value)
    ids = [0, rows - 1, 0]
    np.testing.assert_allclose(np.asarray(table(emberlet.asarray(ids))), real[ids], rtol=1e-6)
    fake = fake_quantize(emberlet.asarray(w), made.weight.scheme, 0)
    np.testing.assert_allclose(np.asarray(fake), real, rtol=1e-6)


@pytest.mark.parametrize("backend", ["python", "numpy", "wasm"])
def test_nf4_and_square_blocks_are_the_same_on_other_backends(backend: str) -> None:
    if backend == "wasm":
        pytest.importorskip("wasmtime")
    x = RNG.normal(size=(2, 40)).astype(np.float32)
    for scheme in ({"value_dtype": "nf4", "level": 8}, {"level": (8, 8)}):
        made, _ = layer(bits=4, **scheme)
        wanted = np.asarray(made(emberlet.asarray(x, backend="numpy")))
        other = made.fork(backend)
        got = np.asarray(other(emberlet.asarray(x, backend=backend)))
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))
        if backend != "python":
            compiled = made.fork(backend).compile(backend=backend)
            got = np.asarray(compiled(emberlet.asarray(x, backend=backend)))
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize(
    "scheme",
    [{"level": (8, 4), "calibration": "absolute-mean"}, {"bits": 8, "value_dtype": "nf4"}, {"level": (8, 0)},
     {"bits": 4, "value_dtype": "nf4", "mode": "affine"}, {"level": (8, 8, 8)}, {"bits": 4, "level": (3, 3)}],
)  # fmt: skip
def test_squares_and_nf4_have_no_other_form(scheme: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        nn.Linear(8, 8).quantize_weights(**scheme)
