"""The typed intermediate representation: types, values, arguments, nodes, graphs.

`read(path)` returns a model's IR to other tools: importers, linters, cost models. docs/codegen.md describes it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

    from .graph import Model

__all__ = ["read"]


def read(source: str | os.PathLike[str] | bytes | ModelProto, name: str | None = None) -> Model:
    """The typed IR of an ONNX model before any pass: `.graph` has the nodes in topological order.

    source: the path of an ONNX file, its bytes, or a ModelProto. External data are searched beside the path, and read
    only when a constant's elements are needed. Raises ModelError, which lists every problem found, and OSError.
    """
    from ..reader import read_model

    return read_model(source, name)
