"""What a module takes from a store that differs from it in one place, with each option of `load_from`, is as recorded.

A line of the record is an outcome, with a digest of all that the result says and of the module's new values, and the
cases with that outcome: what was changed, and the option.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import pytest
from emberlet import nn, store
from emberlet.errors import EmberletError
from emberlet.module import Module
from emberlet.param import Param
from emberlet.store.loading import RefusedError
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "recorded_loads.txt"


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
FITTING = ("nothing", "a prefix", "numbers with gaps", "a variant", "the first turned")
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{n} in {layout}'s layout": (n, {"layout": layout}) for n in MODULES for layout in ("burn", "pytorch")},
    "net with burn's names": ("net", {"names": "burn"}), "net as halves": ("net", {"precision": "half"}),
    "weights of net": ("net", {"filter": "weight"}), "net in another layout": ("net", {"layout": "other"}),
    "net with other names": ("net", {"names": "other"}), "net as it is": ("net", {"precision": "full"}),
}  # fmt: skip


def outcome(module: Module, source: Any, options: dict[str, Any]) -> tuple[str, str]:
    """(in a line, in full)."""
    before = values(module)
    try:
        result = module.load_from(source, **options)
    except EmberletError as error:
        found = error.result if isinstance(error, RefusedError) else None
        assert values(module) == before
        line = str(found).splitlines()[0] if found else type(error).__name__
        line = line.replace(", 0 skipped", "").replace(", 0 wrong", "")
        return f"refused: {line}", f"{error}\n{vars(found) if found else ''}"
    line = str(result).splitlines()[0] + f", {len(result.transposed)} transposed"
    return line, f"{result}\n{vars(result)}\n{values(module)}"


def values(module: Module) -> str:
    held = [(n, p.dtype.name, p.shape, bytes(p.val().backend.to_bytes(p.val()))) for n, p in module.named_params()]
    return hashlib.sha256(repr(held).encode()).hexdigest()[:8]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_load_ends_as_recorded(written: str) -> None:
    name, told = WRITTEN[written]
    make = MODULES[name]
    try:
        given = store.from_module(filled(make), **told)
    except EmberletError as error:
        assert_recorded(RECORDED, written, str(error))
        return
    tensors = {n: s.tensor("numpy") for n, s in given.items()}
    alike: dict[str, list[str]] = {}
    for change, function in CHANGES.items():
        plain = store.store_of(function(tensors))
        for source in ("a dict", "a store") if change in FITTING else ("a store",):
            whole = plain if source == "a dict" else store.Store(dict(plain), format="pytorch", layout=given.layout)
            for option, said in {**OPTIONS, **(MORE if change in FITTING else {})}.items():
                line, full = outcome(filled(make, -1000), whole, said)
                digest = hashlib.sha256(full.encode()).hexdigest()[:6]
                label = f"{change} {option}".strip() + (" in a dict" if source == "a dict" else "")
                alike.setdefault(f"{line} ({digest})", []).append(label)
    listing = [f"{n} {s.dtype} {s.shape} {s.tensor('numpy').reshape((-1,)).tolist()[:3]}" for n, s in given.items()]
    lines = [
        f"{line}: {labels[0]}" + f" and {len(labels) - 1} more" * (len(labels) > 1) for line, labels in alike.items()
    ]
    assert_recorded(RECORDED, written, "\n".join([*listing, *lines]))
