"""The weights of PyTorch's quantized modules, under the names that its float modules give them.
https://docs.pytorch.org/docs/stable/quantization.html"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .pickles import Unknown
from .torch_tensors import TensorView

# Within a linear layer or an embedding, statically or dynamically quantized
PACKED = {
    "_packed_params._packed_params.0": "weight",
    "_packed_params._packed_params.1": "bias",
    "_packed_params._packed_weight": "weight",
}
CELLS = "_all_weight_values."  # of an LSTM or GRU: "0.param" is the first layer's, or its first direction's
Parts = dict[str, Any]


def float_names(leaves: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """(name, value) of a state dict's leaves, a quantized module's as its float module would name them."""
    cells: dict[str, list[Parts]] = {}
    for name, value in leaves:
        ending = next((e for e in PACKED if f".{name}".endswith(f".{e}")), None)
        last = name.split(".")[-1]
        stem, within, number = name.partition(CELLS)
        if ending is not None and value is not None:  # a layer without a bias has None
            yield name[: -len(ending)] + PACKED[ending], value
        elif last in ("_packed_weight_ih", "_packed_weight_hh") and (both := _linear(value)):
            for kind, tensor in zip((last[8:], "bias" + last[-3:]), both):
                yield name[: -len(last)] + kind, tensor
        elif within and number.endswith(".param") and (parts := _cell(value)):
            cells.setdefault(stem, []).append(parts)
        else:
            yield name, value
    for stem, layers in cells.items():
        for i, parts in enumerate(layers):
            layer, back = divmod(i, 2) if _both_ways(layers) else (i, 0)
            for kind, tensor in parts.items():
                yield f"{stem}{kind}_l{layer}{'_reverse' if back else ''}", tensor


def _both_ways(layers: list[Parts]) -> bool:
    """Whether every other entry is the other direction's of the same layer, by what they read. Of two entries that
    read as many numbers as they give, the second counts as another layer."""
    width, hidden = layers[0]["weight_ih"].shape[1], layers[0]["weight_hh"].shape[1]
    if len(layers) > 2:
        return bool(layers[2]["weight_ih"].shape[1] == 2 * hidden)
    return len(layers) == 2 and width != hidden and layers[1]["weight_ih"].shape[1] == width


def _state(value: Any) -> tuple[Any, ...]:
    """What a scripted object of PyTorch's holds, () of other values."""
    state = value.state if isinstance(value, Unknown) and value.name == "torch.ScriptObject" else None
    held = state[0] if isinstance(state, tuple) and state else ()
    return held if isinstance(held, tuple) else ()


def _linear(value: Any) -> tuple[TensorView, TensorView] | None:
    """(weight, bias) of packed parameters."""
    found = _state(value)
    matrix = len(found) == 2 and all(isinstance(one, TensorView) for one in found) and len(found[0].shape) == 2
    return (found[0], found[1]) if matrix else None


def _cell(value: Any) -> Parts | None:
    """The weights and biases of one direction of a recurrent layer: (kind, biases, …, packed weights)."""
    found = _state(value)
    held = found[-1] if len(found) == 5 and isinstance(found[-1], list) else []
    pairs = [_linear(one) for one in held]
    if len(pairs) != 2 or pairs[0] is None or pairs[1] is None:
        return None
    (ih, bias_ih), (hh, bias_hh) = pairs[0], pairs[1]
    return {"weight_ih": ih, "weight_hh": hh, "bias_ih": bias_ih, "bias_hh": bias_hh}
