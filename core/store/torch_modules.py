"""PyTorch's names for recurrent layers and attention, whose tensors each hold the weights of several layers.

torch.nn.LSTM, GRU, RNN      weight_ih_l0 (gates * d_hidden, d_input), weight_hh_l0, bias_ih_l0, bias_hh_l0, each
                             with _reverse in the other direction; l1, l2, … for layers that are in a list here
torch.nn.MultiheadAttention  in_proj_weight (3 * d_model, d_model), in_proj_bias, out_proj.weight, out_proj.bias
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import LoadError
from ..module import Module, items
from ..nn.attention import MultiHeadAttention
from ..nn.gru import BiGru, Gru
from ..nn.lstm import BiLstm, Lstm
from ..nn.rnn import BiRnn, Rnn
from ..tensor import Tensor
from .snapshot import Snapshot

# The gates in the order of PyTorch's rows: docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html, GRU, RNN
GATES: dict[type, tuple[str, ...]] = {
    Lstm: ("input_gate", "forget_gate", "cell_gate", "output_gate"),
    Gru: ("reset_gate", "update_gate", "new_gate"),
    Rnn: ("gate",),
}
BOTH = (BiLstm, BiGru, BiRnn)
TRANSFORMS = {"ih": "input_transform", "hh": "hidden_transform"}
PROJECTIONS = ("query", "key", "value")


def split(module: Module, at: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
    """Names of the module's parameters -> the part of a PyTorch tensor that each is, as far as `at` has them."""
    if not any("weight_ih_l" in name or "in_proj_" in name or "out_proj." in name for name in at):
        return {}
    found: dict[str, Snapshot] = {}
    for path, layer in modules(module, "", ()):
        if isinstance(layer, MultiHeadAttention):
            found.update(_attention(path, at))
        elif isinstance(layer, BOTH):
            found.update(_recurrent(path, path + "forward_layer.", layer.forward_layer, "", at))
            found.update(_recurrent(path, path + "reverse_layer.", layer.reverse_layer, "_reverse", at))
        elif type(layer) in GATES:
            found.update(_recurrent(path, path, layer, "", at))
    return found


def modules(value: Any, path: str, around: tuple[Any, ...]) -> Iterator[tuple[str, Module]]:
    if isinstance(value, Module):
        yield path, value
    for key, child in items(value):
        if isinstance(child, (Module, list, tuple, dict)) and not any(one is child for one in (*around, value)):
            yield from modules(child, f"{path}{key}.", (*around, value))


def _recurrent(
    path: str, own: str, layer: Any, direction: str, at: Mapping[str, Snapshot]
) -> Iterator[tuple[str, Snapshot]]:
    """The parts for a layer of one direction, whose parameters begin with `own`."""
    if not getattr(layer, "reset_after", True):
        return  # PyTorch's GRU resets after the product, so its weights have another meaning
    gates = GATES[type(layer)]
    places = [(path, "0")]
    if stacked := re.fullmatch(r"(.*\.)?(\d+)\.", path):  # the second of a list is PyTorch's l1
        places.append((stacked[1] or "", stacked[2]))
    if numbered := re.fullmatch(r"(.+)_(\d+)\.", path):  # and so is lstm_2 of a generated model, beside lstm
        places.append((numbered[1] + ".", str(int(numbered[2]) - 1)))
    for where, number in places:
        for kind in ("weight", "bias"):
            for short, transform in TRANSFORMS.items():
                whole = at.get(f"{where}{kind}_{short}_l{number}{direction}")
                if whole is not None and whole.shape and whole.shape[0] == len(gates) * layer.d_hidden:
                    for i, gate in enumerate(gates):
                        yield f"{own}{gate}.{transform}.{kind}", _rows(whole, i, layer.d_hidden)


def _attention(path: str, at: Mapping[str, Snapshot]) -> Iterator[tuple[str, Snapshot]]:
    for kind in ("weight", "bias"):
        whole = at.get(f"{path}in_proj_{kind}")
        for i, projection in enumerate(PROJECTIONS):
            if whole is not None and whole.shape and whole.shape[0] % 3 == 0:
                yield f"{path}{projection}.{kind}", _rows(whole, i, whole.shape[0] // 3)
        if (out := at.get(f"{path}out_proj.{kind}")) is not None:
            yield f"{path}output.{kind}", out


def joined(module: Module, found: Mapping[str, Snapshot]) -> dict[str, Snapshot]:
    """The parameters of a module, in PyTorch's layout, with those of recurrent layers and attention joined as in
    PyTorch: the inverse of `split`.

    A list of recurrent layers becomes one PyTorch module with as many layers (`l0`, `l1`, …). Raises LoadError for a
    GRU that PyTorch does not support, and if a filter keeps only a part of one PyTorch tensor.
    """
    out = dict(found)
    for path, layer in modules(module, "", ()):
        if isinstance(layer, MultiHeadAttention):
            for kind in ("weight", "bias"):
                _join(out, f"{path}in_proj_{kind}", [f"{path}{p}.{kind}" for p in PROJECTIONS])
                _join(out, f"{path}out_proj.{kind}", [f"{path}output.{kind}"])
        elif isinstance(layer, BOTH):
            _joined_gates(out, path, path + "forward_layer.", layer.forward_layer, "")
            _joined_gates(out, path, path + "reverse_layer.", layer.reverse_layer, "_reverse")
        elif type(layer) in GATES and not re.search(r"(^|\.)(forward|reverse)_layer\.$", path):
            _joined_gates(out, path, path, layer, "")
    return out


def _joined_gates(out: dict[str, Snapshot], path: str, own: str, layer: Any, direction: str) -> None:
    if not getattr(layer, "reset_after", True):
        raise LoadError(f"{own[:-1]} resets before the product, and PyTorch's GRU after it: it cannot be written there")
    stacked = re.fullmatch(r"(.*\.)?(\d+)\.", path)
    where, number = (stacked[1] or "", stacked[2]) if stacked else (path, "0")
    for kind in ("weight", "bias"):
        for short, transform in TRANSFORMS.items():
            parts = [f"{own}{gate}.{transform}.{kind}" for gate in GATES[type(layer)]]
            _join(out, f"{where}{kind}_{short}_l{number}{direction}", parts)


def _join(out: dict[str, Snapshot], name: str, parts: list[str]) -> None:
    """Replace parts by their concatenation along the rows."""
    there = [out.pop(part) for part in parts if part in out]
    if not there:
        return
    first = there[0]
    if len(there) < len(parts) or any(s.dtype is not first.dtype for s in there):
        raise LoadError(f"PyTorch keeps {', '.join(parts)} in one tensor, {name}: save all of them, in one dtype")
    if name in out:
        raise LoadError(f"two tensors would be called {name!r}")
    rows = sum(s.shape[0] for s in there)
    out[name] = Snapshot(
        name, first.dtype, (rows, *first.shape[1:]),
        make=lambda backend: backend.concat(tuple(s.tensor(backend) for s in there), 0),
    )  # fmt: skip


def _rows(whole: Snapshot, number: int, count: int) -> Snapshot:
    """Rows number * count to (number + 1) * count."""

    def part(x: Tensor) -> Tensor:
        return x[number * count : (number + 1) * count]

    return whole.mapped(part, whole.dtype, (count, *whole.shape[1:]))
