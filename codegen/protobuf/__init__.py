"""ONNX's protobuf messages without the protobuf library, to read models if `onnx` is not installed."""

from .messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from .wire import DecodeError, check, parse

__all__ = [
    "AttributeProto",
    "DecodeError",
    "FunctionProto",
    "GraphProto",
    "ModelProto",
    "NodeProto",
    "SparseTensorProto",
    "TensorProto",
    "TypeProto",
    "ValueInfoProto",
    "check",
    "parse",
]
