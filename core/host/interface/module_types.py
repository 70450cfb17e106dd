"""The types in the stubs of `Module`, `Param`, `Model`, `Session` and the layers (module_stubs.py)."""

from .declarations import ARRAY_LIKE, SIZES, TYPES

_RECORD = "Record | Burnpack | Mapping[str, Tensor]"
# Parameters and attributes by name: as functions have them, except that layers take tensors only. `| None` is added
# where the default is None.
PARAMETERS = {
    **{name: type for name, type in TYPES.items() if type != ARRAY_LIKE},
    **dict.fromkeys(
        "cell context hidden key lengths mask mask_attn mask_pad memory memory_mask_attn memory_mask_pad offset "
        "query target targets tensor value weight weights x x1 x2 var anchor positive negative "
        "log_probs logits".split(),
        "Tensor",
    ),
    "activation": "Callable[[Tensor], Tensor]", "clip": "float", "content": "Content", "data": "Any", "dims": "Any",
    "examples": "Any", "fan_in": "int", "fan_out": "int", "fans": "tuple[int, int]", "flag": "bool",
    "function": "Callable[[Tensor], Tensor]", "groups": "int", "id": "ParamId", "in_channels": "int",
    "init": "Callable[[tuple[int, ...], DType, Backend], Tensor]", "initializer": "Initializer", "layer": "Linear",
    "layout": "str", "mapper": "Any", "metadata": "Mapping[str, str]", "name": "str", "names": "str",
    "normalized_shape": SIZES, "out_channels": "int", "outer": "DisplaySettings", "pad_tokens": "Sequence[int]",
    "path": "str | PathLike[str]", "precision": "str", "record": _RECORD, "require_grad": "bool",
    "scale_factor": "float | Sequence[float]", "scaling": "Any", "scheme": "Any", "seq": "int", "seq_k": "int",
    "seq_q": "int", "shape": "Sequence[int]", "smoothing": "float", "spaces": "int", "state": "Any", "std": "float",
    "visitor": "Any", "modules": "Any", "unflattened_size": "Sequence[int]", "dim": "int", "upscale_factor": "int",
    "downscale_factor": "int", "k": "float", "p": "float", "norm_type": "float", "threshold": "float",
    "lower": "float", "upper": "float", "distance_function": "Callable[[Tensor, Tensor], Tensor]", "margin": "float",
    **dict.fromkeys("input_lengths target_lengths logit_lengths".split(), "Tensor | Sequence[int]"),
}  # fmt: skip
OWN_TYPES = {
    "AttentionOutput.weights": "Tensor | None", "Constant.value": "float", "Content.value": "Any",
    "CrossEntropyLoss.weights": "Sequence[float]", "Gru.state": "Tensor", "BiGru.state": "Tensor",
    "Rnn.state": "RnnState", "BiRnn.state": "RnnState", "Lstm.state": "LstmState", "BiLstm.state": "LstmState",
    "GateController.bias": "bool", "_Numbered.layer": "Module", "ModuleDict.layer": "Module",
    "_Numbered.key": "Any", "Sequential.key": "Any", "_Pad.padding": SIZES, "_ConstantPad.padding": SIZES,
    "_ConstantPad.value": "float", "Upsample.size": SIZES, "LocalResponseNorm.size": "int",

    "Threshold.value": "float", "AdaptiveAvgPool.output_size": "int | Sequence[int | None]",
    "Upsample.align_corners": "bool",
    "TransformerEncoder.cache": "list[AttentionCache]", "TransformerEncoderLayer.cache": "AttentionCache | None",
    "TransformerDecoder.cache": "list[tuple[AttentionCache, AttentionCache]]",
    "TransformerDecoderLayer.cache": "tuple[AttentionCache, AttentionCache] | None",
    "MultiHeadAttention.cache": "AttentionCache", "Conv.bias": "Tensor | None",
    "ConvTranspose.bias": "Tensor | None", "ParamId.value": "int", "ParamId.other": "object", "Param.memo": "Any",
    "AttentionCache.key": "Tensor | None", "AttentionCache.value": "Tensor | None",
    "TransformerDecoderLayer.mask_pad": "Tensor | None", "TransformerDecoderLayer.mask_attn": "Tensor | None",
    "TransformerDecoderLayer.memory_mask_pad": "Tensor | None",
    "TransformerDecoderLayer.memory_mask_attn": "Tensor | None",
    "Module.loss": "Callable[..., Any]", "Module.optimizer": "Any",
    "Module.source": "Any", "Module.level": "str | int | tuple[int, int]", "Module.capacity": "int | None",
    "Module.initial": "Mapping[str, Any] | None", "Module.dims": "Mapping[str, int] | None",
    "Module.state": "Sequence[Sequence[Any]] | None", "Session.model": "Module", "Session.capacity": "int | None",
    "Session.initial": "Mapping[str, Any] | None", "Session.dims": "Mapping[str, int] | None",
    "Session.state": "Sequence[Sequence[Any]] | None", "Session.n": "int", "Session.new": "int",
    "Module.target": "str | PathLike[str] | IO[bytes]", "Module.filter": "Filtering",
    "QuantizedLinear.weight": "Any", "QuantizedEmbedding.weight": "Any", "QuantizedConv.weight": "Any",
    "QuantizedWeight.param": "Param",
    "QuantizedWeight.scheme": "Any", "QuantizedWeight.weight": "Tensor", "QuantizedWeight.shape": "Sequence[int]",
    "FakeQuantizedWeight.real": "Param", "FakeQuantizedWeight.scheme": "Any", "Module.keep": "Sequence[str]",
    "Module.scale_dtype": "DType | str", "Module.value_dtype": "DType | str | None",
    "Module.samples": "Sequence[Any]", "Module.tell": "Callable[[str], None]",
    "Module.rename": "Renaming | None", "Module.contiguous": "bool | None", "Module.format": "str | None",
    "Module.skip_enum_variants": "bool | None", "Module.shard": "int | None", "Module.layout": "str | None",
}  # fmt: skip
# Results by class and method, or by method.
RESULTS = {
    "append": "Any", "extend": "Any", "_Numbered.__iter__": "Iterator[Any]", "ModuleDict.__iter__": "Iterator[str]",
    "__getitem__": "Any", "__setitem__": "None", "__contains__": "bool", "ModuleDict.update": "None",
    "ModuleDict.keys": "Any", "ModuleDict.values": "Any", "ModuleDict.items": "Any",
    "AttentionCache.add": "tuple[Tensor, Tensor]", "MultiHeadAttention.forward": "AttentionOutput",
    "Gru.forward": "tuple[Tensor, Tensor]", "BiGru.forward": "tuple[Tensor, Tensor]",
    "Lstm.forward": "tuple[Tensor, LstmState]", "BiLstm.forward": "tuple[Tensor, LstmState]",
    "Rnn.forward": "tuple[Tensor, RnnState]", "BiRnn.forward": "tuple[Tensor, RnnState]",
    "Gru.gates": "tuple[GateController, ...]", "Lstm.gates": "tuple[GateController, ...]",
    "Rnn.gates": "tuple[GateController, ...]",
    "TransformerEncoder.new_cache": "list[AttentionCache]",
    "TransformerDecoder.new_cache": "list[tuple[AttentionCache, AttentionCache]]",
    "Module.forward": "Any", "forward": "Tensor", "make": "Tensor", "convolve": "Tensor",
    "weight_shape": "tuple[int, ...]", "causal_mask": "Tensor", "pad_mask": "Tensor", "fans_of": "tuple[int, int]",
    "Initializer.__call__": "Tensor", "__len__": "int", "__init__": "None", "__repr__": "str", "__str__": "str",
    "__eq__": "bool", "__hash__": "int", "named_params": "Iterator[tuple[str, Param]]", "params": "list[Param]",
    "num_params": "int", "visit": "None", "Module.map": "Self", "no_grad": "Self", "train": "Self", "valid": "Self",
    "backends": "list[Backend]", "Module.to": "Self", "Param.to": "Self", "cast": "Self",
    "QuantizedWeight.cast_values": "None", "QuantizedWeight.scales": "Tensor", "Module.clone": "Self", "fork": "Self",
    "compile": "_Compiled[_R]", "compile_step": "Any", "session": "Session", "to_record": "Record",
    "load_record": "Self", "save_file": "int", "load_file": "Self",
    "load_from": "LoadResult", "quantize_weights": "list[str]", "QuantizedWeight.of": "QuantizedWeight",
    "QuantizedWeight.quantized": "dict[str, Tensor]", "QuantizedWeight.set": "QuantizedWeight",
    "QuantizedWeight.fill": "QuantizedWeight",
    "bits": "int", "block_size": "int", "save_into": "int",
    "custom_settings": "DisplaySettings | None", "custom_content": "Content | None",
    "from_file": "Self", "from_bytes": "Self", "from_embedded": "Self", "default": "Self",
    "uninitialized": "Param", "zeros": "Param", "val": "Tensor", "set": "Self", "Param.shape": "tuple[int, ...]",
    "Param.dtype": "DType", "Param.backend": "Backend", "loaded": "Tensor", "is_initialized": "bool",
    "Param.id": "ParamId", "size": "int", "Param.clone": "Param", "__copy__": "Param", "__deepcopy__": "Param",
    "Param.map": "Self", "init_mapper": "Self", "load_mapper": "Self", "save_mapper": "Self",
    "set_require_grad": "Self", "saved": "Tensor", "__reduce__": "Any",
    "Session.step": "Any", "Session.step_async": "Any", "Session.state": "Tensor", "Session.reset": "Self",
    "Session.snapshot": "int", "Session.rewind": "Self", "Session.positions": "Tensor",
    "Session.attention_mask": "Tensor",
}  # fmt: skip
# Attributes whose type cannot be read from their value in `__init__`.
ATTRIBUTES = {
    "activation": "Callable[[Tensor], Tensor]", "d_head": "int", "normalized_shape": "tuple[int, ...]",
    "pad_tokens": "list[int]", "padding": "str | tuple[tuple[int, int], ...]", "require_grad": "bool",
    "capacity": "int | None", "stride": "tuple[int, ...]", "value": "int", "weights": "Any",
    "output_size": "tuple[int | None, ...]",
}  # fmt: skip
