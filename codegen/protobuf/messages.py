"""ONNX's messages: each field with its number and its type, as onnx.proto (proto2) declares them.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Unused fields are declared too, so that files damaged
within them are refused. A test compares all of them with the descriptors of the `onnx` package.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any

from .message import Message

# A field's type is Annotated[its Python type, its number, its wire type]; that of a message needs no wire type.


class StringStringEntryProto(Message):
    key: Annotated[str, 1, "string"]
    value: Annotated[str, 2, "string"]


class OperatorSetIdProto(Message):
    domain: Annotated[str, 1, "string"]
    version: Annotated[int, 2, "int64"]


class Dimension(Message):
    ONEOF = ("dim_value", "dim_param")

    dim_value: Annotated[int, 1, "int64"]
    dim_param: Annotated[str, 2, "string"]
    denotation: Annotated[str, 3, "string"]


class TensorShapeProto(Message):
    dim: Annotated[list[Dimension], 1]


class TensorTypeProto(Message):
    elem_type: Annotated[int, 1, "int32"]
    shape: Annotated[TensorShapeProto, 2]


class SequenceTypeProto(Message):
    elem_type: Annotated[TypeProto, 1]


class MapTypeProto(Message):
    key_type: Annotated[int, 1, "int32"]
    value_type: Annotated[TypeProto, 2]


class OptionalTypeProto(Message):
    elem_type: Annotated[TypeProto, 1]


class OpaqueTypeProto(Message):
    domain: Annotated[str, 1, "string"]
    name: Annotated[str, 2, "string"]


class TypeProto(Message):
    ONEOF = ("tensor_type", "sequence_type", "map_type", "optional_type", "sparse_tensor_type", "opaque_type")

    tensor_type: Annotated[TensorTypeProto, 1]
    sequence_type: Annotated[SequenceTypeProto, 4]
    map_type: Annotated[MapTypeProto, 5]
    optional_type: Annotated[OptionalTypeProto, 9]
    sparse_tensor_type: Annotated[TensorTypeProto, 8]
    opaque_type: Annotated[OpaqueTypeProto, 7]
    denotation: Annotated[str, 6, "string"]


class Segment(Message):
    begin: Annotated[int, 1, "int64"]
    end: Annotated[int, 2, "int64"]


class DataLocation(IntEnum):
    DEFAULT = 0
    EXTERNAL = 1


class TensorProto(Message):
    dims: Annotated[list[int], 1, "int64"]
    data_type: Annotated[int, 2, "int32"]
    segment: Annotated[Segment, 3]
    float_data: Annotated[Sequence[float], 4, "float"]
    int32_data: Annotated[Sequence[int], 5, "int32"]
    string_data: Annotated[list[bytes], 6, "bytes"]
    int64_data: Annotated[Sequence[int], 7, "int64"]
    name: Annotated[str, 8, "string"]
    raw_data: Annotated[bytes, 9, "view"]
    double_data: Annotated[Sequence[float], 10, "double"]
    uint64_data: Annotated[Sequence[int], 11, "uint64"]
    external_data: Annotated[list[StringStringEntryProto], 13]
    data_location: Annotated[DataLocation, 14]
    doc_string: Annotated[str, 12, "string"]
    metadata_props: Annotated[list[StringStringEntryProto], 16]


class SparseTensorProto(Message):
    values: Annotated[TensorProto, 1]
    indices: Annotated[TensorProto, 2]
    dims: Annotated[list[int], 3, "int64"]


class AttributeType(IntEnum):
    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


class AttributeProto(Message):
    name: Annotated[str, 1, "string"]
    ref_attr_name: Annotated[str, 21, "string"]
    type: Annotated[AttributeType, 20]
    doc_string: Annotated[str, 13, "string"]
    f: Annotated[float, 2, "float"]
    i: Annotated[int, 3, "int64"]
    s: Annotated[bytes, 4, "bytes"]
    t: Annotated[TensorProto, 5]
    g: Annotated[GraphProto, 6]
    sparse_tensor: Annotated[SparseTensorProto, 22]
    tp: Annotated[TypeProto, 14]
    floats: Annotated[Sequence[float], 7, "float"]
    ints: Annotated[Sequence[int], 8, "int64"]
    strings: Annotated[list[bytes], 9, "bytes"]
    graphs: Annotated[list[GraphProto], 11]
    tensors: Annotated[list[TensorProto], 10]
    sparse_tensors: Annotated[list[SparseTensorProto], 23]
    type_protos: Annotated[list[TypeProto], 15]


class ValueInfoProto(Message):
    name: Annotated[str, 1, "string"]
    type: Annotated[TypeProto, 2]
    doc_string: Annotated[str, 3, "string"]
    metadata_props: Annotated[list[StringStringEntryProto], 4]


class NodeProto(Message):
    input: Annotated[list[str], 1, "string"]
    output: Annotated[list[str], 2, "string"]
    name: Annotated[str, 3, "string"]
    op_type: Annotated[str, 4, "string"]
    attribute: Annotated[list[AttributeProto], 5]
    domain: Annotated[str, 7, "string"]
    doc_string: Annotated[str, 6, "string"]
    overload: Annotated[str, 8, "string"]
    metadata_props: Annotated[list[StringStringEntryProto], 9]
    device_configurations: Annotated[list[NodeDeviceConfigurationProto], 10]


class GraphProto(Message):
    node: Annotated[list[NodeProto], 1]
    name: Annotated[str, 2, "string"]
    initializer: Annotated[list[TensorProto], 5]
    doc_string: Annotated[str, 10, "string"]
    input: Annotated[list[ValueInfoProto], 11]
    output: Annotated[list[ValueInfoProto], 12]
    value_info: Annotated[list[ValueInfoProto], 13]
    quantization_annotation: Annotated[list[TensorAnnotation], 14]
    sparse_initializer: Annotated[list[SparseTensorProto], 15]
    metadata_props: Annotated[list[StringStringEntryProto], 16]


class FunctionProto(Message):
    name: Annotated[str, 1, "string"]
    input: Annotated[list[str], 4, "string"]
    output: Annotated[list[str], 5, "string"]
    attribute: Annotated[list[str], 6, "string"]
    node: Annotated[list[NodeProto], 7]
    doc_string: Annotated[str, 8, "string"]
    opset_import: Annotated[list[OperatorSetIdProto], 9]
    domain: Annotated[str, 10, "string"]
    attribute_proto: Annotated[list[AttributeProto], 11]
    value_info: Annotated[list[ValueInfoProto], 12]
    overload: Annotated[str, 13, "string"]
    metadata_props: Annotated[list[StringStringEntryProto], 14]


class TensorAnnotation(Message):
    tensor_name: Annotated[str, 1, "string"]
    quant_parameter_tensor_names: Annotated[list[StringStringEntryProto], 2]


class TrainingInfoProto(Message):
    initialization: Annotated[GraphProto, 1]
    algorithm: Annotated[GraphProto, 2]
    initialization_binding: Annotated[list[StringStringEntryProto], 3]
    update_binding: Annotated[list[StringStringEntryProto], 4]


class IntIntListEntryProto(Message):
    key: Annotated[int, 1, "int64"]
    value: Annotated[list[int], 2, "int64"]


class SimpleShardedDimProto(Message):
    ONEOF = ("dim_value", "dim_param")

    dim_value: Annotated[int, 1, "int64"]
    dim_param: Annotated[str, 2, "string"]
    num_shards: Annotated[int, 3, "int64"]


class ShardedDimProto(Message):
    axis: Annotated[int, 1, "int64"]
    simple_sharding: Annotated[list[SimpleShardedDimProto], 2]


class ShardingSpecProto(Message):
    tensor_name: Annotated[str, 1, "string"]
    device: Annotated[list[int], 2, "int64"]
    index_to_device_group_map: Annotated[list[IntIntListEntryProto], 3]
    sharded_dim: Annotated[list[ShardedDimProto], 4]


class NodeDeviceConfigurationProto(Message):
    configuration_id: Annotated[str, 1, "string"]
    sharding_spec: Annotated[list[ShardingSpecProto], 2]
    pipeline_stage: Annotated[int, 3, "int32"]


class DeviceConfigurationProto(Message):
    name: Annotated[str, 1, "string"]
    num_devices: Annotated[int, 2, "int32"]
    device: Annotated[list[str], 3, "string"]


class ModelProto(Message):
    ir_version: Annotated[int, 1, "int64"]
    producer_name: Annotated[str, 2, "string"]
    producer_version: Annotated[str, 3, "string"]
    domain: Annotated[str, 4, "string"]
    model_version: Annotated[int, 5, "int64"]
    doc_string: Annotated[str, 6, "string"]
    graph: Annotated[GraphProto, 7]
    opset_import: Annotated[list[OperatorSetIdProto], 8]
    metadata_props: Annotated[list[StringStringEntryProto], 14]
    functions: Annotated[list[FunctionProto], 25]
    training_info: Annotated[list[TrainingInfoProto], 20]
    configuration: Annotated[list[DeviceConfigurationProto], 26]


class DataType(IntEnum):
    """TensorProto.DataType."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A node; `name` and `domain` are its own, every other keyword is an attribute: an int, a float, a list of ints."""
    made = NodeProto()
    made.op_type = op_type
    made.input.extend(inputs)
    made.output.extend(outputs)
    made.name, made.domain = attributes.pop("name", ""), attributes.pop("domain", "")
    for name, value in attributes.items():
        a = AttributeProto()
        a.name = name
        if isinstance(value, int):
            a.type, a.i = AttributeType.INT, value
        elif isinstance(value, float):
            a.type, a.f = AttributeType.FLOAT, value
        else:
            a.type, a.ints = AttributeType.INTS, list(value)
        made.attribute.append(a)
    return made
