"""From a file's bytes to a ModelProto: by our own reader for small files and without `onnx`, else by `onnx`.

Importing `onnx` takes longer than our own reader takes for a small file.
"""

from __future__ import annotations

import sys
from typing import cast

from emberlet.errors import ModelError
from emberlet.host.extras import missing

from .. import protobuf
from ..protobuf import ModelProto

SMALL = 1 << 23  # bytes of a file up to which `onnx` is not imported for it alone


def parsed(data: bytes, origin: str) -> ModelProto:
    """The message in a file. Raises ModelError, which calls the file `origin`."""
    try:
        small = len(data) < SMALL and "onnx" not in sys.modules
        return protobuf.parse(ModelProto, data) if small or not has_onnx() else by_onnx(data)
    except Exception as error:
        raise ModelError(f"{origin} is not an ONNX model: {error}") from None


def has_onnx() -> bool:
    """Whether the `onnx` package is installed."""
    return not missing(["onnx"])


def by_onnx(data: bytes) -> ModelProto:
    """The message as onnx reads it; its objects have the fields and methods of ours."""
    import onnx

    return cast(ModelProto, onnx.ModelProto.FromString(data))
