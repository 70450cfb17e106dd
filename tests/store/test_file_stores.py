"""Burn's stores: files with the options of `load_from` and `save_into` as methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from emberlet import nn, store
from emberlet.errors import EmberletError, LoadError
from emberlet.module import Module


class Net(Module):
    def __init__(self) -> None:
        self.encoder = [nn.Linear(4, 3), nn.Linear(3, 3)]
        self.norm = nn.BatchNorm(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.encoder[1](self.encoder[0](x)))


def test_a_module_is_saved_into_a_store_and_loaded_from_it(tmp_path: Path) -> None:
    net, other = Net(), Net()
    for kind, name in ((store.BurnpackStore, "a.bpk"), (store.SafetensorsStore, "a.safetensors")):
        path = tmp_path / name
        net.save_into(kind.from_file(path).metadata("author", "me"))
        assert store.open(path).metadata["author"] == "me"
        assert len(other.load_from(kind.from_file(path)).applied) == 8
        assert other.encoder[0].weight.val().tolist() == net.encoder[0].weight.val().tolist()
        with pytest.raises(EmberletError, match="exists"):
            net.save_into(kind.from_file(path))
        assert net.save_into(kind.from_file(path).overwrite(True)) == path.stat().st_size


def test_filters_select_what_is_loaded_and_saved() -> None:
    memory = store.BurnpackStore.from_bytes().with_regex("^encoder").with_full_path("norm.weight")
    Net().save_into(memory)
    assert {*memory.keys()} == {f"encoder.{i}.{key}" for i in (0, 1) for key in ("weight", "bias")} | {"norm.weight"}
    with pytest.raises(LoadError, match="missing"):
        Net().load_from(store.BurnpackStore.from_bytes(memory.get_bytes()))
    whole = store.BurnpackStore.from_bytes(memory.get_bytes()).allow_partial(True)
    assert len(Net().load_from(whole).missing) == 3
    chosen = store.PathFilter().with_predicate(lambda name, container: name.endswith("bias"))
    assert Net().load_from(whole.with_filter(chosen)).applied == ["encoder.0.bias", "encoder.1.bias"]


def test_renames_follow_one_another_until_they_are_replaced() -> None:
    memory = store.SafetensorsStore.from_bytes()
    Net().save_into(memory)
    renamed = memory.with_key_remapping("^encoder", "e").with_key_remapping(r"^e\.(\d)", "encoder.$1")
    assert len(Net().load_from(renamed).applied) == 8
    with pytest.raises(LoadError):
        Net().load_from(memory.remap(store.KeyRemapper([("^encoder", "e")])))


def test_what_has_no_meaning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmberletError, match="in memory"):
        store.BurnpackStore.from_file(tmp_path / "a.bpk").get_bytes()
    with pytest.raises(EmberletError, match="SafetensorsStore"):
        Net().save_into(store.PytorchStore.from_file(tmp_path / "a.pt"))
    with pytest.raises(EmberletError, match="pattern"):
        store.PathFilter().with_regex("(")
