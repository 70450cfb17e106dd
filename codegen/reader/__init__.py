"""The reader: from an ONNX file to the typed IR. No other part of codegen knows protobuf.

A model is untrusted: sizes are checked before anything is fetched, external data cannot leave the model's folder,
nesting is limited, and every problem is collected so that one ModelError lists them all with the node each sits at.
Calls of model-local functions are read in place.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from emberlet.errors import ModelError

from ..budget import model_budget
from ..ir.graph import Model
from ..ir.problem import refusing
from ..protobuf import ModelProto
from .freezing import Frozen
from .graphs import NEWEST_OPSET, Reader
from .parsing import parsed
from .texts import broken_text

if TYPE_CHECKING:
    import onnx

    Source = str | os.PathLike[str] | bytes | ModelProto | onnx.ModelProto

__all__ = ["NEWEST_OPSET", "read_model"]


def read_model(
    source: Source, name: str | None = None, folder: Path | None = None, freeze: Frozen | None = None
) -> Model:
    """The typed IR of a model: a path, the bytes of a file, or a ModelProto.

    Raises ModelError, which lists every problem found with the node it sits at, and OSError for a path that cannot be
    read. External data is searched only beside the path or, without a path, in `folder`. freeze: values of inputs by
    name; such inputs become constants.
    """
    with refusing(source), model_budget():
        return _read(source, name, folder, freeze or {})


def _read(source: Source, name: str | None, folder: Path | None, freeze: Frozen) -> Model:
    if hasattr(source, "opset_import"):  # a ModelProto, of onnx or of our own
        proto, origin = cast(ModelProto, source), "model"
    elif isinstance(source, bytes):
        proto, origin = parsed(source, "model"), "model"
    else:
        path = Path(cast("str | os.PathLike[str]", source))
        folder, origin = path.parent, path.name
        proto = parsed(path.read_bytes(), origin)
    broken = broken_text(proto)
    if broken is not None:
        raise ModelError(f"{origin}: the text {broken[:40]!r} is not UTF-8")
    model = Reader(proto, folder, freeze).read(name or Path(origin).stem, origin)
    return replace(model, source=origin if origin != "model" else f"{model.name}.onnx")
