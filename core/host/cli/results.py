"""Model outputs as named arrays, including lists of dicts (scikit-learn's ZipMap), sequences and numbers."""

from __future__ import annotations

from typing import Any

from ...errors import EmberletError
from ...tensor import Tensor


def parts(name: str, value: Any) -> dict[str, Any]:
    """The arrays of an output, by names derived from its own.

    A list of dicts is a table with one row per dict: "probabilities" holds the values and "probabilities.keys" the
    sorted keys, which all dicts share. A sequence of tensors is "name[0]", "name[1]", …

    Raises EmberletError for what is neither.
    """
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, dict) for v in value):
        keys = sorted(value[0])  # in the order of onnxruntime, and of scikit-learn's classes
        if any(sorted(row) != keys for row in value):
            raise EmberletError(f"the rows of the output {name!r} have different keys, so they are not a table")
        return {name: _table([[_number(row[k]) for k in keys] for row in value]), f"{name}.keys": _table(keys)}
    if isinstance(value, (list, tuple)):
        return {part: held for i, v in enumerate(value) for part, held in parts(f"{name}[{i}]", v).items()}
    if isinstance(value, (bool, int, float, str)):
        return {name: _table(value)}
    if not hasattr(value, "shape"):
        raise EmberletError(f"the output {name!r} is of {type(value).__name__}; only tensors can be shown and saved")
    return {name: value}


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _table(values: Any) -> Any:
    from ...functional.arrays import asarray

    return asarray(values, backend="python")


def first_elements(x: Tensor, limit: int = 8) -> str:
    """The first elements, as a flat list."""
    values = x.backend.to_list(x.backend.reshape(x, (x.size,)))[:limit]
    shown = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values]
    return "[" + ", ".join(shown) + (", …]" if x.size > limit else "]")
