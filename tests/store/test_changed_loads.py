"""What a module takes from a store that differs from it in one place, with each option of `load_from`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import pytest
from emberlet import nn, store
from emberlet.errors import EmberletError
from emberlet.module import Module
from emberlet.param import Param


class Net(Module):
    def __init__(self) -> None:
        self.encoder = [nn.Linear(2, 3), nn.Linear(3, 3)]
        self.norm = nn.BatchNorm(3)
        self.head = {"conv": nn.Conv2d(3, 2, 3), "gate": nn.PRelu(1)}


class Stacked(Module):
    def __init__(self) -> None:
        self.layers = [nn.Rnn(2, 3), nn.Rnn(3, 3, bias=False)]
        self.both = nn.BiRnn(3, 2)


class Attending(Module):
    def __init__(self) -> None:
        self.attention = nn.MultiHeadAttention(4, 2)
        self.norm = nn.LayerNorm(4)


class Sharing(Module):
    def __init__(self) -> None:
        self.first = nn.Linear(2, 2, bias=False)
        self.second = self.first
        self.number = Param(emberlet.asarray(3))
        self.flags = Param(emberlet.asarray([True, False]))


MODULES: dict[str, Callable[[], Module]] = {
    "net": Net, "stacked": Stacked, "attending": Attending, "sharing": Sharing, "dense": lambda: nn.Linear(2, 3),
    "gru": lambda: nn.Gru(3, 2), "other gru": lambda: nn.Gru(3, 2, reset_after=False), "lstm": lambda: nn.Lstm(2, 1),
}  # fmt: skip


def filled(make: Callable[[], Module], at: int = 0) -> Module:
    """With distinct values."""
    module = make()
    for param in module.params():
        numbers = emberlet.arange(at, at + param.size, dtype="float32", backend="numpy").reshape(param.shape)
        param.set(emberlet.astype(numbers, param.dtype))
        at += param.size
    return module


Tensors = dict[str, Any]


def renamed(tensors: Tensors, old: str, new: str) -> Tensors:
    return {name.replace(old, new): x for name, x in tensors.items()}


def at(tensors: Tensors, place: int, change: Callable[[Any], Any]) -> Tensors:
    name = list(tensors)[place]
    return {**tensors, name: change(tensors[name])}


CHANGES: dict[str, Callable[[Tensors], Tensors]] = {
    "nothing": lambda t: t,
    "without the first": lambda t: dict(list(t.items())[1:]),
    "without the last": lambda t: dict(list(t.items())[:-1]),
    "one more": lambda t: {**t, "more": emberlet.asarray([1.0])},
    "a counter more": lambda t: {**t, "norm.num_batches_tracked": emberlet.asarray(1)},
    "another name": lambda t: renamed(t, next(iter(t)), next(iter(t)) + "s"),
    "a prefix": lambda t: {f"model.{name}": x for name, x in t.items()},
    "numbers with gaps": lambda t: renamed(renamed(t, ".1.", ".4."), ".0.", ".2."),
    "a variant": lambda t: {
        f"{n.rpartition('.')[0]}.Inner.{n.rpartition('.')[2]}".lstrip("."): x for n, x in t.items()
    },
    "the first turned": lambda t: at(t, 0, lambda x: x.mT if x.ndim > 1 else x),
    "the first longer": lambda t: at(t, 0, lambda x: emberlet.concat([x, x])),
    "the last longer": lambda t: at(t, -1, lambda x: emberlet.concat([x, x]) if x.ndim else x.reshape((1,))),
    "the first double": lambda t: at(t, 0, lambda x: emberlet.astype(x, "float64")),
    "the first of integers": lambda t: at(t, 0, lambda x: emberlet.astype(x, "int32")),
    "the last half": lambda t: at(t, -1, lambda x: emberlet.astype(x, "float16")),
    "a list": lambda t: at(t, -1, lambda x: x.tolist()),
    "nothing at all": lambda t: {},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "": {}, "partial": {"partial": True}, "pytorch": {"layout": "pytorch"},
    "unchecked and partial": {"validate": False, "partial": True},
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {  # of what fits, or would with one of them
    "unchecked": {"validate": False}, "burn": {"layout": "burn"}, "other": {"layout": "other"},
    "contiguous": {"contiguous": True}, "not contiguous": {"contiguous": False},
    "variants": {"skip_enum_variants": True}, "no variants": {"skip_enum_variants": False},
    "rename": {"rename": [(r"^model\.", ""), ("Inner.", "")]}, "one name": {"rename": lambda name: "one"},
    "filter": {"filter": "weight"}, "no filter": {"filter": ["none"]},
}  # fmt: skip


def values(module: Module) -> dict[str, Any]:
    return {n: (p.dtype.name, p.val().tolist()) for n, p in module.named_params()}


@pytest.mark.parametrize(
    ("name", "layout"),
    # PyTorch has no GRU that resets before the product.
    [(n, layout) for n in MODULES for layout in ("burn", "pytorch") if (n, layout) != ("other gru", "pytorch")],
)
def test_a_module_takes_back_what_it_gave(name: str, layout: str) -> None:
    given = filled(MODULES[name])
    held = store.from_module(given, layout=layout)
    tensors = {n: s.tensor("numpy") for n, s in held.items()}
    taken = filled(MODULES[name], -1000)
    result = taken.load_from(store.Store(dict(store.store_of(tensors)), format="pytorch", layout=held.layout))
    assert values(taken) == values(given) and not result.missing and not result.unused


@pytest.mark.parametrize(
    ("name", "layout"),
    # PyTorch has no GRU that resets before the product.
    [(n, layout) for n in MODULES for layout in ("burn", "pytorch") if (n, layout) != ("other gru", "pytorch")],
)
def test_a_load_takes_all_or_changes_nothing(name: str, layout: str) -> None:
    """Whatever was changed and whatever option is given; a partial load takes what fits."""
    held = store.from_module(filled(MODULES[name]), layout=layout)
    tensors = {n: s.tensor("numpy") for n, s in held.items()}
    refused = 0
    for change, function in CHANGES.items():
        source = store.Store(dict(store.store_of(function(tensors))), format="pytorch", layout=held.layout)
        for option, more in {**OPTIONS, **MORE}.items():
            module = filled(MODULES[name], -1000)
            before = values(module)
            try:
                result = module.load_from(source, **more)
            except EmberletError:
                refused += 1
                assert values(module) == before, (change, option)
                continue
            if not result.missing and not more.keys() & {"partial", "validate", "filter"}:
                changed = {n for n, value in values(module).items() if value != before[n]}
                assert changed >= set(before) - {"flags"}, (change, option)  # filled with the same flags
    assert refused > 20
