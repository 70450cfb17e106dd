"""Loading checkpoints of the model from which a generated one was exported: maps its parameters to their tensors.

The model's burnpack holds the mapping (codegen/checkpoint_names.py): names, transposed matrices, and weights with a
batch norm folded into them. These are folded again, with the norms of the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import dtypes
from ..errors import LoadError
from ..functional.elementwise.transcendental import sqrt
from ..module import Module
from ..tensor import Tensor
from .snapshot import Snapshot
from .source_mapping import NORM, text_of
from .sources import Place


class Checkpoint:
    """A model's mapping to checkpoints of its architecture, from its burnpack. `known` is False if there is none."""

    FUSED = (
        "a batch norm of the file that the model does not have: PyTorch's exporter has folded it into other weights. "
        "Export the model with optimize=False (the older exporter: with training=torch.onnx.TrainingMode.PRESERVE), "
        "or pass validate=False to load the weights as they are"
    )

    def __init__(self, text: str | None) -> None:
        self.known = text is not None
        try:
            entries = json.loads(text or "{}")
        except (ValueError, RecursionError):
            entries = {}
        self.entries: dict[str, dict[str, Any]] = {
            k: v for k, v in (entries if isinstance(entries, dict) else {}).items() if isinstance(v, dict)
        }

    @classmethod
    def of(cls, module: Module, layout: str | None) -> Checkpoint:
        """layout: the file's; a file in Burn's layout was written by emberlet, and its keys are the module's."""
        return cls(None if layout == "burn" else text_of(module))

    def find(self, place: Place, at: Mapping[str, Snapshot]) -> tuple[Snapshot, tuple[str, ...]] | None:
        """(the tensor for a parameter, the names it is read from), or None if the mapping does not rename it."""
        if not self.known:
            return None
        entry = self.entries.get(place.name, {})
        if entry.get("norm"):
            return _folded(place, entry, at)
        name = entry.get("name", place.name)
        if name is None and place.name in at:
            raise LoadError(
                "was computed from several tensors when the model was generated; generate it with passes that keep "
                "them separate (emberlet codegen --passes)"
            )
        if not name or name not in at:
            return None
        s = at[name]
        return s, (s.name,)

    def is_transposed(self, place: Place) -> bool | None:
        """Whether a checkpoint holds the transpose of a parameter; None if unknown."""
        if not self.known or len(place.param.shape) != 2:
            return None
        entry = self.entries.get(place.name, {})
        if "turned" in entry:
            return bool(entry["turned"])
        return place.transposed_in_pytorch or None

    def is_constant(self, place: Place) -> bool:
        """Whether a parameter is a constant of the exported graph, such as a table or a mask, rather than a layer's."""
        return self.known and not type(place.holder).__module__.startswith("emberlet.")


def _folded(
    place: Place, entry: Mapping[str, Any], at: Mapping[str, Snapshot]
) -> tuple[Snapshot, tuple[str, ...]] | None:
    """The weight or bias of a layer, with the following batch norm folded in."""
    path, epsilon = entry["norm"], float(entry.get("epsilon", 1e-5))
    if not isinstance(path, (str, list)):
        return None
    names = [f"{path}.{n}" for n in NORM] if isinstance(path, str) else [str(n) for n in path]
    is_bias = place.key == "bias"
    own = entry.get("name", place.name)
    needed = names if own is None else [str(own), *names]
    if not any(n in at for n in names):
        if own in at:
            raise LoadError(f"has a batch norm folded into it, and the file lacks {', '.join(names)}")
        return None
    if lacking := [n for n in needed if n not in at]:
        raise LoadError(f"is computed of {', '.join(needed)}; the file lacks {', '.join(lacking)}")
    parts = [at[n] for n in needed]
    first = parts[0]
    channels = parts[-1].shape
    axis, groups = int(entry.get("axis", 0)), int(entry.get("groups", 1))
    if any(s.shape != channels or len(channels) != 1 for s in parts[-4:]):
        raise LoadError(f"the tensors of the batch norm {', '.join(names)} differ in shape")
    size = None if is_bias or axis >= len(first.shape) else first.shape[axis] * groups
    if (first.shape if is_bias else (size,)) != channels:
        raise LoadError(f"shape {first.shape} of {own} does not fit the batch norm's {channels}")

    def make(backend: Any) -> Tensor:
        wide = [s.tensor(backend).astype(dtypes.float32 if backend.name == "wgpu" else dtypes.float64) for s in parts]
        scale, shift, mean, var = wide[-4:]
        scale = scale / sqrt(var + epsilon)
        if is_bias:
            made = shift + (wide[0] - mean if own is not None else -mean) * scale
        else:
            made = _scaled(wide[0], scale, axis, groups)
        return made.astype(place.param.dtype)

    shape = first.shape
    made = Snapshot(place.name, place.param.dtype, shape, make=make, original=first.original)
    return made, tuple(s.name for s in parts)


def _scaled(weight: Tensor, scale: Tensor, axis: int, groups: int) -> Tensor:
    """A weight whose channels along an axis are scaled; with groups, each has its own part of the scale."""
    ones = (1,) * (len(weight.shape) - axis - 1)
    if groups == 1:
        return weight * scale.reshape((1,) * axis + (-1,) + ones)
    parts = weight.reshape((groups, weight.shape[0] // groups, *weight.shape[1:]))
    scaled: Tensor = (parts * scale.reshape((groups, 1, weight.shape[1], *ones))).reshape(weight.shape)
    return scaled
