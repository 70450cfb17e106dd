"""Parses a file's bytes into a ModelProto: by our own reader for small files or without `onnx`, else by `onnx`.

Importing `onnx` takes longer than our own reader takes for a small file.
"""

from __future__ import annotations

import sys
from typing import cast

from emberlet.errors import ModelError
from emberlet.host.extras import missing
from emberlet.host.memory import ADVICE, OutOfMemoryError, error_text, out_of_memory
from emberlet.host.other_formats import other_format

from .. import protobuf
from ..protobuf import ModelProto

SMALL = 1 << 23  # bytes of the largest file for which `onnx` is not imported


def parsed(data: bytes, origin: str) -> ModelProto:
    """The message in a file. Raises ModelError, which names the file as `origin`."""
    try:
        small = len(data) < SMALL and "onnx" not in sys.modules
        return protobuf.parse(ModelProto, data) if small or not has_onnx() else by_onnx(data)
    except Exception as error:
        if out_of_memory(error):
            raise OutOfMemoryError(f"{origin}: {error_text(error)}; {ADVICE}") from None
        other = other_format(data[:16])
        raise ModelError(f"{origin} is " + (other or f"not an ONNX model: {error}")) from None


def has_onnx() -> bool:
    """Whether the `onnx` package is installed."""
    return not missing(["onnx"])


def by_onnx(data: bytes) -> ModelProto:
    """The message as read by onnx, whose objects have the same fields and methods as ours."""
    import onnx

    protobuf.check(ModelProto, data)
    return cast(ModelProto, onnx.ModelProto.FromString(data))
