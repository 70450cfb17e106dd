"""Reads the file of a session's model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import EmberletError
from .errors import InvalidProtobuf, NoSuchFile


def read(source: str | bytes | os.PathLike[str]) -> tuple[Any, Path | None]:
    """(the ModelProto, the folder of its external data). Raises NoSuchFile, NotImplementedError, InvalidProtobuf."""
    from ..codegen.reader.parsing import parsed

    if isinstance(source, bytes):
        data, name, folder = source, "model", None
    else:
        path = Path(source)
        if not path.is_file():
            raise NoSuchFile(f"Load model from {path} failed:Load model {path} failed. File doesn't exist")
        if path.suffix == ".ort":
            raise NotImplementedError(
                f"{path}: the ORT format is not supported; use the ONNX file that it was made from"
            )
        data, name, folder = path.read_bytes(), path.name, path.parent
    try:
        proto = parsed(data, name)
    except EmberletError as error:
        raise InvalidProtobuf(f"Failed to load model because protobuf parsing failed. {error}") from None
    return proto, folder
