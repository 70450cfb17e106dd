"""PyTorch's names for recurrent layers and attention, which keep the weights of several layers in one tensor.

torch.nn.LSTM, GRU, RNN      weight_ih_l0 (gates * d_hidden, d_input), weight_hh_l0, bias_ih_l0, bias_hh_l0, each
                             with _reverse in the other direction; l1, l2, … where layers lie in a list here
torch.nn.MultiheadAttention  in_proj_weight (3 * d_model, d_model), in_proj_bias, out_proj.weight, out_proj.bias
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    for path, layer in _modules(module, "", ()):
        if isinstance(layer, MultiHeadAttention):
            found.update(_attention(path, at))
        elif isinstance(layer, BOTH):
            found.update(_recurrent(path, path + "forward_layer.", layer.forward_layer, "", at))
            found.update(_recurrent(path, path + "reverse_layer.", layer.reverse_layer, "_reverse", at))
        elif type(layer) in GATES:
            found.update(_recurrent(path, path, layer, "", at))
    return found


def _modules(value: Any, path: str, around: tuple[Any, ...]) -> Iterator[tuple[str, Module]]:
    if isinstance(value, Module):
        yield path, value
    for key, child in items(value):
        if isinstance(child, (Module, list, tuple, dict)) and not any(one is child for one in (*around, value)):
            yield from _modules(child, f"{path}{key}.", (*around, value))


def _recurrent(
    path: str, own: str, layer: Any, direction: str, at: Mapping[str, Snapshot]
) -> Iterator[tuple[str, Snapshot]]:
    """The parts for a layer of one direction, whose parameters begin with `own`."""
    if not getattr(layer, "reset_after", True):
        return  # PyTorch's GRU resets after the product: its weights mean something else there
    gates = GATES[type(layer)]
    stacked = re.fullmatch(r"(.*\.)?(\d+)\.", path)  # the second of a list is PyTorch's l1
    places = [(path, "0")] + ([(stacked[1] or "", stacked[2])] if stacked else [])
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


def _rows(whole: Snapshot, number: int, count: int) -> Snapshot:
    """Rows number * count to (number + 1) * count."""

    def part(x: Tensor) -> Tensor:
        return x[number * count : (number + 1) * count]

    return whole.mapped(part, whole.dtype, (count, *whole.shape[1:]))
