"""onnxruntime's exceptions: their names, their base (Exception) and the form of their messages."""

from __future__ import annotations

from typing import ClassVar


class _Error(Exception):
    """The base of the exceptions here; onnxruntime's have only Exception in common."""

    STATUS: ClassVar[tuple[int, str]]

    def __init__(self, text: str) -> None:
        super().__init__("[ONNXRuntimeError] : {} : {} : {}".format(*self.STATUS, text))


class Fail(_Error):
    """Something failed."""

    STATUS = (1, "FAIL")


class InvalidArgument(_Error):
    """An input, an output's name or a model is invalid."""

    STATUS = (2, "INVALID_ARGUMENT")


class NoSuchFile(_Error):
    """The model's file does not exist."""

    STATUS = (3, "NO_SUCHFILE")


class NoModel(_Error):
    """There is no model."""

    STATUS = (4, "NO_MODEL")


class EngineError(_Error):
    """The engine failed."""

    STATUS = (5, "ENGINE_ERROR")


class RuntimeException(_Error):
    """A model failed while it ran."""

    STATUS = (6, "RUNTIME_EXCEPTION")


class InvalidProtobuf(_Error):
    """The bytes are not an ONNX model."""

    STATUS = (7, "INVALID_PROTOBUF")


class ModelLoaded(_Error):
    """A model is loaded already."""

    STATUS = (8, "MODEL_LOADED")


class NotImplemented(_Error):
    """The request is not supported."""

    STATUS = (9, "NOT_IMPLEMENTED")


class InvalidGraph(_Error):
    """The model's graph is malformed, or has an operator that is not supported."""

    STATUS = (10, "INVALID_GRAPH")


class EPFail(_Error):
    """An execution provider failed."""

    STATUS = (11, "EP_FAIL")
