"""The reader: from an ONNX file to the typed IR. The only place that knows protobuf.

A model is untrusted: sizes are checked before anything is fetched, external data cannot leave the model's folder,
nesting is limited, and every problem is collected so that one ModelError lists them all with the node each sits at.
Calls of model-local functions, and of ONNX's function operators that have no class of their own, are read in place.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from emberlet.errors import ModelError
from onnx import ModelProto

from ..budget import model_budget
from ..ir.graph import Model
from ..ir.problem import refusing
from .graphs import NEWEST_OPSET, Reader
from .texts import broken_text

__all__ = ["NEWEST_OPSET", "read_model"]


def read_model(source: str | os.PathLike[str] | bytes | ModelProto, name: str | None = None) -> Model:
    """The typed IR of a model: a path, the bytes of a file, or a ModelProto.

    Raises ModelError, which lists every problem found with the node it sits at, and OSError for a path that cannot be
    read. External data is looked for beside the path, and nowhere else.
    """
    with refusing(source), model_budget():
        return _read(source, name)


def _read(source: str | os.PathLike[str] | bytes | ModelProto, name: str | None) -> Model:
    folder: Path | None = None
    if isinstance(source, ModelProto):
        proto, origin = source, "model"
    else:
        if isinstance(source, bytes):
            data, origin = source, "model"
        else:
            path = Path(source)
            data, folder, origin = path.read_bytes(), path.parent, path.name
        proto = ModelProto()
        try:
            proto.ParseFromString(data)
        except Exception as error:
            raise ModelError(f"{origin} is no ONNX model: {error}") from None
        del data
    broken = broken_text(proto)
    if broken is not None:
        raise ModelError(f"{origin}: the text {broken[:40]!r} is not UTF-8")
    model = Reader(proto, folder).read(name or Path(origin).stem, origin)
    return replace(model, source=origin if folder is not None else f"{model.name}.onnx")
