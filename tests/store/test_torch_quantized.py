"""PyTorch's quantized tensors: the numbers are those that PyTorch dequantizes them to (make_quantized.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import Module, dtypes, nn, store
from emberlet.errors import FormatError
from emberlet.store.formats.pickles import Unknown
from emberlet.store.formats.torch_tensors import KNOWN, Storage

FIXTURES = Path(__file__).parent / "fixtures"
WANTED = np.load(FIXTURES / "quantized.npz")
MODULES = np.load(FIXTURES / "quantized_modules.npz")
TORCHAO = np.load(FIXTURES / "torchao.npz")


@pytest.mark.parametrize("name", WANTED.files)
def test_quantized_tensors_are_what_pytorch_makes_of_them(name: str) -> None:
    """With one scale or one for each index along an axis, in 8 and 32 bits, and a transposed view."""
    found = np.asarray(store.open(FIXTURES / "quantized.pt")[name])
    np.testing.assert_allclose(found, WANTED[name], rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["t", "u", "c"])
def test_their_integers_are_taken_as_they_are(name: str) -> None:
    made = nn.Linear(10, 6, bias=False)
    made.quantize_weights(8, "affine")
    weights = store.open(FIXTURES / "quantized.pt").filter([f"^{name}$"]).rename([(f"^{name}$", "weight")])
    assert max(made.load_from(weights).quantized.values()) < 1e-7
    np.testing.assert_allclose(np.asarray(made.weight.val()).T, WANTED[name], rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", MODULES.files)
def test_weights_within_quantized_modules_have_the_names_of_float_ones(name: str) -> None:
    """Of static and dynamic linear layers, a table, a cell, and recurrent layers with one direction and with two."""
    found = np.asarray(store.open(FIXTURES / "quantized_modules.pt")[name])
    np.testing.assert_allclose(found, MODULES[name], rtol=1e-6, atol=0)


def test_a_quantized_state_loads_into_float_layers() -> None:
    class Net(Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(4, 3)
            self.lower = nn.BiLstm(4, 3, batch_first=False)

    net = Net()
    renamed = store.open(FIXTURES / "quantized_modules.pt").rename(
        [("^static[.]", ""), ("^lstm[.](.*_l0.*)", r"lower.\1"), ("^linear", "other")]
    )
    assert not net.load_from(renamed, partial=True).missing
    np.testing.assert_allclose(np.asarray(net.fc.weight.val()).T, MODULES["static.fc.weight"], rtol=1e-6)
    assert net.fc.bias is not None
    np.testing.assert_array_equal(np.asarray(net.fc.bias.val()), MODULES["static.fc.bias"])
    gate = np.asarray(net.lower.reverse_layer.input_gate.input_transform.weight.val())
    np.testing.assert_allclose(gate.T, MODULES["lstm.weight_ih_l0_reverse"][:3], rtol=1e-6)


@pytest.mark.parametrize("name", TORCHAO.files)
def test_weights_that_torchao_quantized_are_what_it_makes_of_them(name: str) -> None:
    """With a scale for each output and for each group, with zero points, and of 8-bit floats."""
    opened = store.open(FIXTURES / "torchao.pt")
    np.testing.assert_allclose(np.asarray(opened[f"{name}.weight"]), TORCHAO[name], rtol=1e-6, atol=0)
    if name != "float8":  # the integers are taken as they are
        made = nn.Linear(64, 3)
        made.quantize_weights(8, "affine", 32 if name == "groups" else "channel")
        lost = made.load_from(opened.rename([(f"^{name}[.]", "")]), partial=True).quantized
        assert max(lost.values()) < 1e-7


def test_torchao_scales_that_do_not_fit_are_refused() -> None:
    rebuilt = KNOWN["torch._tensor._rebuild_from_type_v2"].call
    plain = KNOWN["torch._utils._rebuild_tensor"].call
    weight, wrapper = (
        plain(Storage(dtypes.int8, "0", 6), 0, (2, 3), (3, 1)),
        KNOWN["torch._utils._rebuild_wrapper_subclass"],
    )
    for shape in ((2, 2), (3, 1), (2,), (0, 1), (2, 1, 1)):
        scale = plain(Storage(dtypes.float32, "1", 6), 0, shape, (0,) * len(shape))
        with pytest.raises(FormatError, match="has scales or zero points of"):
            rebuilt(wrapper, None, (), {"qdata": weight, "scale": scale})
    for state in ({"qdata": weight}, {"qdata": weight, "scale": 0.5}, {"qdata": None, "scale": weight}, None):
        found = rebuilt(wrapper, None, (), state)
        assert isinstance(found, Unknown)


def of(params: Any, dtype: Any = dtypes.int8, shape: tuple[int, ...] = (2, 3)) -> Any:
    """What a pickle's call makes of a storage."""
    strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    return KNOWN["torch._utils._rebuild_qtensor"].call(Storage(dtype, "0", 6), 0, shape, strides, params, False, {})


@pytest.mark.parametrize(
    "params",
    [("per_tensor_affine", 0.5), ("per_tensor_affine", "0.5", 0), ("per_tensor_affine", 0.5, 1 << 40),
     ("per_tensor_affine", 1e300, 0), ("per_tensor_affine", float("nan"), 0), ("per_channel_affine", 0.5, 0, 0),
     ("per_channel_affine", 0.5, 0, 2), ("per_channel_affine", 0.5, 0)],
)  # fmt: skip
def test_scales_that_do_not_fit_are_refused(params: Any) -> None:
    with pytest.raises(FormatError, match="a quantized tensor"):
        of(params)


def test_scales_along_an_axis_are_plain_and_as_many() -> None:
    plain = KNOWN["torch._utils._rebuild_tensor"].call(Storage(dtypes.float64, "1", 6), 0, (2,), (1,))
    assert of(("per_channel_affine", plain, plain, 0)).scales == (plain, plain, 0)
    for bad in (plain, of(("per_tensor_affine", 0.5, 0), shape=(3,))):
        with pytest.raises(FormatError, match="along axis 1"):
            of(("per_channel_affine", bad, bad, 1))
