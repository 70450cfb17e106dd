"""The typed intermediate representation: types, values, arguments, nodes, graphs.

`read(path)` gives a model's to whoever wants to look at it: other importers, linters, cost models. docs/codegen.md says
what it holds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

    from .graph import Model

__all__ = ["read"]


def read(source: str | os.PathLike[str] | bytes | ModelProto, name: str | None = None) -> Model:
    """The typed IR of an ONNX model, as it is read and before any pass: `.graph` has the nodes in an order they run in.

    source: the path of an ONNX file, its bytes, or a ModelProto. External data is looked for beside the path, and read
    only where a constant's elements are asked for. Raises ModelError, which lists every problem found, and OSError.
    """
    from ..reader import read_model

    return read_model(source, name)
