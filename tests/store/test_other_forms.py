"""Weights that lie in another form than the module's: another library's arrays, and dense layers quantized or not."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn, store
from emberlet.burnpack import Burnpack
from emberlet.errors import LoadError
from emberlet.module import Module

BURN = Path(__file__).parents[1] / "core" / "fixtures" / "burn"
RNG = np.random.default_rng(5)


class Net(Module):
    def __init__(self) -> None:
        self.inner = nn.Linear(10, 6)
        self.outer = nn.Linear(6, 6, bias=False)
        self.norm = nn.BatchNorm(6)

    def forward(self, x: Any) -> Any:
        return self.norm(self.outer(self.inner(x)))


def made(*scheme: Any, fake: bool = False) -> Net:
    """A net with values of its own, its dense layers quantized by the scheme."""
    net = Net()
    for p in net.params():
        p.set(emberlet.asarray(RNG.normal(size=p.shape).astype(np.float32) ** 2))
    if scheme:
        net.quantize_weights(*scheme, fake=fake)
    return net


def array(x: Any) -> Any:
    return np.asarray(x.val() if hasattr(x, "val") else x)


class Foreign:
    """What a state dict of PyTorch holds, as far as loading asks."""

    def __init__(self, value: Any) -> None:
        self.value, self.shape, self.dtype = value, value.shape, "torch.float32"

    def detach(self) -> Foreign:
        return self

    cpu = contiguous = detach

    def numpy(self) -> Any:
        return self.value


def state_dict() -> dict[str, Any]:
    """Of the same network in PyTorch: dense weights transposed, and a counter of the batch norm's."""
    net = made()
    found = {name: array(p) for name, p in net.to_record().items()}
    for name in ("inner.weight", "outer.weight"):
        found[name] = np.ascontiguousarray(found[name].T)
    return {**found, "norm.num_batches_tracked": np.array(3)}


@pytest.mark.parametrize("wrap", [Foreign, np.asarray], ids=["tensors", "arrays"])
def test_a_state_dict_of_pytorch_loads_as_it_is(wrap: Any) -> None:
    state, net = state_dict(), Net()
    given = {name: wrap(value) for name, value in state.items()}
    assert net.load_record(given, layout="pytorch") is net
    assert np.array_equal(array(net.outer.weight), state["outer.weight"].T)
    state["inner.bias"][:] = 7  # the state dict stays the caller's, and the values the module's
    assert not (array(net.inner.bias) == 7).any()
    other = Net()
    other.load_from(given, layout="pytorch")
    assert np.array_equal(array(other.inner.weight), array(net.inner.weight))


def test_a_file_of_one_scheme_loads_into_layers_of_another_and_into_fake_ones(tmp_path: Path) -> None:
    first, second, fake, wide = made(8, "affine", "channel"), made(4), made(2, fake=True), made()
    first.save_into(tmp_path / "a.bpk")
    second.load_from(tmp_path / "a.bpk")
    wide.load_from(tmp_path / "a.bpk")
    wanted = wide.clone()
    wanted.quantize_weights(4)
    assert np.array_equal(array(second.inner.weight.values), array(wanted.inner.weight.values))
    fake.load_from(tmp_path / "a.bpk")
    assert np.array_equal(array(fake.inner.weight.real), array(wide.inner.weight))
    fake.save_file(tmp_path / "b.bpk")
    for net in (second, made()):
        net.load_file(tmp_path / "b.bpk")
        assert np.array_equal(array(net.inner.bias), array(first.inner.bias))


@pytest.mark.parametrize("name", ["quant_flex.bpk.xz", "quant_wgpu.bpk.xz"])
def test_burns_quantized_files_load_into_float_and_quantized_layers(name: str, tmp_path: Path) -> None:
    (tmp_path / "q.bpk").write_bytes(lzma.decompress((BURN / name).read_bytes()))
    pack = Burnpack.from_file(tmp_path / "q.bpk")
    key = next(k for k, t in pack.tensors.items() if t.is_quantized and len(t.shape) == 2)
    net, small = Module(), Module()
    net.fc = nn.Linear(*pack.tensors[key].shape, bias=False)
    small.fc = nn.QuantizedLinear(*pack.tensors[key].shape, bias=False)
    for one in (net, small):
        one.load_from(tmp_path / "q.bpk", filter="^fc", rename={key: "fc.weight"})
    exact = array(pack.tensor(key))
    assert np.array_equal(array(net.fc.weight), exact)
    net.quantize_weights(8)
    assert np.array_equal(array(small.fc.weight.values), array(net.fc.weight.values))


def test_what_does_not_fit_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    small = made(4)
    before = array(small.inner.weight.values)
    square = {"inner.weight": np.ones((10, 6), "f4"), "inner.bias": np.ones(6, "f4"),
              "outer.weight": np.ones((6, 6), "f4"), **{f"norm.{k}": np.ones(6, "f4") for k in
              ("weight", "bias", "running_mean", "running_var")}}  # fmt: skip
    for load in (small.load_from, small.load_record):
        with pytest.raises(LoadError, match=r"outer\.weight.*square.*pass layout"):
            load(square)
        with pytest.raises(LoadError, match=r"inner\.weight.*shape \(9, 6\)"):
            load({**square, "inner.weight": np.ones((9, 6), "f4")}, layout="burn")
    store.store_of({"inner.weight.values": np.zeros((6, 3, 5), "u1"), "inner.weight.scale": np.ones(18, "f4")}).save(
        tmp_path / "bad.npz"
    )
    with pytest.raises(LoadError, match=r"packed weights \(6, 3, 5\)"):
        made().load_from(tmp_path / "bad.npz", partial=True)
    assert np.array_equal(array(small.inner.weight.values), before)


@pytest.mark.parametrize("theirs", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("own", ["float32", "float16", "bfloat16", "float8_e8m0fnu"])
def test_records_with_scales_of_another_dtype_lose_no_more_than_the_scheme(own: str, theirs: str) -> None:
    """Scales that the module's dtype holds stay as they are, with their integers; others are chosen anew."""

    def made(scale: str) -> Any:
        net = emberlet.Module()
        net.fc = nn.Linear(64, 6)
        net.quantize_weights(4, "affine", 16, scale_dtype=scale)
        return net

    given, net, anew = made(theirs), made(own), made(own)
    weight = np.asarray(given.fc.weight.val())
    anew.fc.weight.set(given.fc.weight.val())
    net.load_record(given.to_record())
    assert net.fc.weight.scale.dtype.name == own
    scale = given.fc.weight.scale.val().astype("float32")
    held = bool((scale.astype(own).astype("float32") == scale).all())
    wanted = weight if held else np.asarray(anew.fc.weight.val())
    np.testing.assert_array_equal(np.asarray(net.fc.weight.val()), wanted)
    if held:
        np.testing.assert_array_equal(np.asarray(net.fc.weight.values.val()), np.asarray(given.fc.weight.values.val()))
