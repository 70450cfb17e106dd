"""From a file's bytes to a ModelProto: by the `onnx` package where it is installed, by our own reader elsewhere."""

from __future__ import annotations

from typing import cast

from emberlet.errors import ModelError
from emberlet.host.extras import missing

from .. import protobuf
from ..protobuf import ModelProto


def parsed(data: bytes, origin: str) -> ModelProto:
    """The message in a file. Raises ModelError, which calls the file `origin`."""
    try:
        return by_onnx(data) if has_onnx() else protobuf.parse(ModelProto, data)
    except Exception as error:
        raise ModelError(f"{origin} is no ONNX model: {error}") from None


def has_onnx() -> bool:
    """Whether the `onnx` package is installed."""
    return not missing(["onnx"])


def by_onnx(data: bytes) -> ModelProto:
    """The message as onnx reads it; its objects have the fields and methods of ours."""
    import onnx

    return cast(ModelProto, onnx.ModelProto.FromString(data))
