"""The mapping from a generated model's parameters to its source's checkpoints, as a text in the burnpack.

codegen/checkpoint_names.py writes it, checkpoints.py reads it.
"""

from __future__ import annotations

from typing import Any

from ..errors import EmberletError
from ..model import Model
from ..module import Module

SOURCES = "emberlet.sources"  # the key of the metadata
NORM = ("weight", "bias", "running_mean", "running_var")  # the names of a batch norm's tensors in a checkpoint


def text_of(module: Module) -> str | None:
    """The mapping in a generated model's burnpack; None for other modules, or if the burnpack is not found."""
    from ..burnpack import Burnpack
    from ..model import weights

    kind: Any = type(module)
    said: str | None = getattr(kind, "SOURCES", None)
    if isinstance(said, str) or not isinstance(module, Model):
        return said
    try:
        if kind.EMBEDDED is not None:
            found = Burnpack.from_bytes(kind.EMBEDDED).metadata.get(SOURCES)
        else:
            found = weights.weights_file(kind).metadata.get(SOURCES) if kind.WEIGHTS else None
    except (EmberletError, OSError):
        return None
    return found if isinstance(found, str) else None
