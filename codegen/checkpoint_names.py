"""Maps the keys of a generated model to their names in checkpoints of the model that it was exported from.

An exporter names initializers after parameters, so a key's initializer shows its name in a checkpoint, and whether the
matrix is transposed there. `metadata_entry` makes the entry of a burnpack's metadata, which core/store/checkpoints.py
reads.

Only exceptions are written: a key without an entry has the same name in checkpoints, and the weight of a dense layer is
transposed there. An entry is a dict:

    {"name": "x.weight"}                    another name
    {"name": ""}                            no name is known: an exporter computed the value of another tensor
    {"turned": true}                        whether the matrix is transposed in a checkpoint
    {"norm": "bn1", "epsilon": 1e-05, …}    the weight or bias of a layer with a batch norm folded into it; "norm" is
                                            the path of the norm, or the names of its four tensors
    {"name": null}                          computed of several tensors in another way
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .ir.value import Fill, Transposed, Value

if TYPE_CHECKING:
    from .ir.argument import Argument
    from .ir.graph import Node

_NAMED = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_MADE = re.compile(r"(val|_val|onnx|lifted_tensor|c_lifted_tensor|Constant)_?\d*|.*[0-9a-f]{32} \d+")


class Folded(NamedTuple):
    """The origin of a weight or bias into which the following batch norm is folded.

    part: "weight" or "bias"; weight, bias: the layer's own, None if it has none; norm: the initializers of scale,
    shift, mean and variance; axis, groups: the axis of the weight that is scaled, and in how many parts.
    """

    part: str
    weight: str
    bias: str | None
    norm: tuple[str, ...]
    epsilon: float
    axis: int
    groups: int


def folded(
    part: str, layer: Node[Any], norm: Sequence[Argument], epsilon: float, axis: int, groups: int
) -> Folded | None:
    """The origin of such a value, if all values that it is computed from have names."""
    own, names = _name(layer.inputs[1]), [_name(a) for a in norm]
    given = layer.inputs[2] if layer.has(2) else None
    bias = _name(given) if given else None
    zero = given is None or (given.value is not None and given.value.source == Fill(0.0))
    if own is None or None in names or (bias is None and not zero):
        return None
    return Folded(part, own, bias, tuple(n for n in names if n), epsilon, axis, groups)


def _name(a: Argument) -> str | None:
    """The initializer behind a constant. A fill does not keep its name, but the argument does."""
    if a.value is None or isinstance(a.value.source, Transposed):
        return None
    name = a.name if a.value.origin is None else a.value.origin
    return name if isinstance(name, str) and is_parameter_name(name) else None


def is_parameter_name(text: str) -> bool:
    """Whether an initializer's name is that of a parameter, not one that an exporter made: `onnx::MatMul_12`."""
    return bool(_NAMED.fullmatch(text)) and not _MADE.fullmatch(text)


def metadata_entry(record: Mapping[str, Value]) -> dict[str, str]:
    """The entry of a burnpack's metadata for the keys of a record."""
    from emberlet.store.source_mapping import SOURCES

    entries = {key: entry for key, value in record.items() if (entry := _entry(key, value))}
    for key, entry in entries.items():  # a weight without a name beside a bias that has one
        stem, _, last = key.rpartition(".")
        beside = entries.get(f"{stem}.bias", {}).get("name") if last == "weight" and entry.get("name") == "" else None
        if beside and beside.endswith("bias"):
            entry["name"] = beside[: -len("bias")] + "weight"
    return {SOURCES: json.dumps(entries, separators=(",", ":"), sort_keys=True)}


def _entry(key: str, value: Value) -> dict[str, Any]:
    turned = isinstance(value.source, Transposed)
    inner = value.source.matrix if isinstance(value.source, Transposed) else value
    origin: Hashable = inner.origin
    entry: dict[str, Any] = {}
    if isinstance(origin, Folded):
        entry = _norm(key, origin)
    elif isinstance(origin, str):
        name = origin if is_parameter_name(origin) else ""
        entry = {} if name == key else {"name": name}
    elif isinstance(origin, tuple):  # a piece of a larger tensor, as in recurrent layers, which are found by name
        return {}
    elif not isinstance(inner.source, Fill):
        return {"name": None}
    if len(value.shape) == 2 and entry.get("name") != "" and turned != (key.rpartition(".")[2] == "weight"):
        entry["turned"] = turned
    return entry


def _norm(key: str, origin: Folded) -> dict[str, Any]:
    from emberlet.store.source_mapping import NORM

    path = origin.norm[0].rpartition(".")[0]
    derived = origin.norm == tuple(f"{path}.{n}" for n in NORM)
    entry: dict[str, Any] = {"norm": path if derived else list(origin.norm), "epsilon": origin.epsilon}
    name = origin.weight if origin.part == "weight" else origin.bias
    if name != key:
        entry["name"] = name
    if origin.part == "weight" and (origin.axis, origin.groups) != (0, 1):
        entry.update(axis=origin.axis, groups=origin.groups)
    return entry
