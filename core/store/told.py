"""What the burnpack of a generated model says of the checkpoints that its weights came from, as a text.

codegen/checkpoint_names.py writes it, checkpoints.py reads it.
"""

from __future__ import annotations

from typing import Any

from ..errors import EmberletError
from ..model import Model
from ..module import Module

SOURCES = "emberlet.sources"  # the key of the metadata
NORM = ("weight", "bias", "running_mean", "running_var")  # what a batch norm's tensors are called in a checkpoint


def text_of(module: Module) -> str | None:
    """What the burnpack of a generated model says of its keys; None for other modules, or where it is not found."""
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
            found = weights.beside(kind).metadata.get(SOURCES) if kind.WEIGHTS else None
    except (EmberletError, OSError):
        return None
    return found if isinstance(found, str) else None
