"""The description of a session's model: NodeArg and ModelMetadata, read from the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# TensorProto.DataType -> onnxruntime's name
NAMES = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1",
}  # fmt: skip
# onnxruntime's name of a type -> the dtype name in NumPy or ml_dtypes
DTYPES = {
    "float": "float32", "double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float4e2m1": "float4_e2m1fn",
}  # fmt: skip


class NodeArg(NamedTuple):
    """An input or output. type: such as "tensor(float)"; shape: a list in which an int is a fixed size, a string a
    symbolic size (equal names, equal sizes), and None an unknown one."""

    name: str
    type: str
    shape: list[Any]


class ModelMetadata(NamedTuple):
    """The file's own metadata."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


def metadata(proto: Any) -> ModelMetadata:
    """The ModelMetadata of a ModelProto."""
    version = proto.model_version if proto.HasField("model_version") else (1 << 63) - 1
    custom = {p.key: p.value for p in proto.metadata_props}
    graph = proto.graph
    described = (proto.doc_string, graph.doc_string)
    return ModelMetadata(proto.producer_name, graph.name, proto.domain, *described, version, custom)


def node_arg(info: Any, fixed: Mapping[str, int], by_denotation: Mapping[str, int]) -> NodeArg:
    """The NodeArg of a ValueInfoProto, with the sizes that the session's options fix."""
    return NodeArg(info.name, _type(info.type), _shape(info.type, fixed, by_denotation))


def _type(t: Any) -> str:
    kind = t.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        word = "tensor" if kind == "tensor_type" else "sparse_tensor"
        code = getattr(t, kind).elem_type
        return f"{word}({NAMES.get(code, code)})"
    if kind == "sequence_type":
        return f"seq({_type(t.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type(t.optional_type.elem_type)})"
    if kind == "map_type":
        key = NAMES.get(t.map_type.key_type, t.map_type.key_type)
        return f"map({key},{_type(t.map_type.value_type)})"
    return ""


def _shape(t: Any, fixed: Mapping[str, int], by_denotation: Mapping[str, int]) -> list[Any]:
    if t.WhichOneof("value") == "optional_type":
        return _shape(t.optional_type.elem_type, fixed, by_denotation)
    return [_size(d, fixed, by_denotation) for d in t.tensor_type.shape.dim]


def _size(d: Any, fixed: Mapping[str, int], by_denotation: Mapping[str, int]) -> Any:
    if d.WhichOneof("value") == "dim_value":
        return d.dim_value
    if d.denotation in by_denotation:
        return by_denotation[d.denotation]
    return fixed.get(d.dim_param, d.dim_param or None)
