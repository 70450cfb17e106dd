"""What PyTorch and Burn call the methods of modules, and the keywords of layers' constructors."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ....errors import ArgumentError
from .names import Absent, renamed

# our method -> its names elsewhere that mean the same
_SAME = {
    "backends": "devices collect_devices",
    "load_record": "load_state_dict",
    "named_params": "named_parameters",
    "params": "parameters",
    "to": "to_device",
    "to_record": "into_record state_dict",
}
METHODS = {theirs: ours for ours, names in _SAME.items() for theirs in names.split()}

METHOD_ADVICE = {
    "add_module": "a module as an attribute is a child: write self.name = module",
    "apply": "write visit(function), which gets each parameter, or module = module.map(function), a copy with other "
    "values",
    "bfloat16": "write module.cast('bfloat16')",
    "buffers": "a plain tensor as an attribute is a constant, a Param with require_grad=False is saved with the others",
    "children": "the attributes are the children: vars(module)",
    "cpu": "write to('numpy')",
    "cuda": "write to('wgpu')",
    "double": "write module.cast('float64')",
    "float": "write module.cast('float32')",
    "from_pretrained": "write load_file(path), or load_from(path) for files of other libraries",
    "get_parameter": "write dict(module.named_params())[name]",
    "half": "write module.cast('float16')",
    "load": "write load_file(path), or load_from(path) for files of other libraries",
    "modules": "the attributes are the children: vars(module)",
    "named_children": "the attributes are the children: vars(module).items()",
    "named_modules": "the attributes are the children: vars(module).items()",
    "predict": "call the module: module(x)",
    "register_buffer": "a plain tensor as an attribute is a constant: write self.name = tensor; a Param with "
    "require_grad=False is also saved",
    "register_module": "a module as an attribute is a child: write self.name = module",
    "register_parameter": "write self.name = nn.Param(tensor)",
    "requires_grad_": "write no_grad(), or param.set_require_grad(True) for each of params()",
    "save": "write save_file(path), or save_into(path) for files of other libraries",
    "train_mode": "write train()",
    "zero_grad": "gradients are values that backward returns, and nothing needs to be reset",
}

# a keyword elsewhere -> ours, the first one that the constructor has
_KEYWORDS = {
    "in_features": "d_input", "out_features": "d_output", "input_size": "d_input", "hidden_size": "d_hidden",
    "embedding_dim": "d_model", "embed_dim": "d_model", "n_embedding": "num_embeddings", "num_heads": "n_heads",
    "nhead": "n_heads", "num_layers": "n_layers", "dim_feedforward": "d_ff", "num_features": "num_channels",
    "num_channels": "num_features", "channels": "num_features num_channels", "eps": "epsilon",
    "layer_norm_eps": "epsilon", "elementwise_affine": "affine", "dim": "axis", "p": "prob", "init": "alpha",
    "size": "output_size", "weight": "weights", "label_smoothing": "smoothing", "device": "backend",
    "lambda": "lambd", "min_val": "min_value", "max_val": "max_value", "d_hidden": "d_output",
    "weight_offset_groups": "offset_groups", "num_groups": "groups", "output_features": "d_output",
    "input_features": "d_input", "keepdim": "keepdims", "in1_features": "d_input1", "in2_features": "d_input2",
}  # fmt: skip
# Options of PyTorch's layers that change nothing here at these values, so that they may be left out.
_LEFT_OUT = {
    "inplace": False, "padding_mode": "zeros", "track_running_stats": True, "return_indices": False,
    "divisor_override": None, "padding_idx": None, "max_norm": None, "norm_type": 2.0, "sparse": False,
    "scale_grad_by_freq": False, "recompute_scale_factor": None, "size_average": None, "reduce": None,
    "reduction": "mean", "bidirectional": False, "num_layers": 1, "dropout": 0.0, "proj_size": 0,
    "add_bias_kv": False, "add_zero_attn": False, "kdim": None, "vdim": None, "norm": None, "batch_first": True,
    "enable_nested_tensor": True, "mask_check": True, "threshold": 20.0, "nonlinearity": "tanh",
}  # fmt: skip
_INSTEAD = {
    "bidirectional": "there are nn.BiLstm, nn.BiGru and nn.BiRnn",
    "num_layers": "build one layer for each, for example in nn.ModuleList",
    "inplace": "tensors are not changed in place",
    "return_indices": "F.max_pool_with_indices gives both",
    "padding_idx": "set that row of weight to 0",
    "padding_mode": "write a layer such as nn.ReflectionPad2d before it",
}


def find_method(self: Any, name: str) -> Any:
    """A method of a Module that is called `name` elsewhere. Raises AttributeError, saying what to write."""
    kind = type(self)
    if name[:2] != "__":
        if name in METHODS:
            return getattr(self, METHODS[name])
        if name == "eval":
            return lambda: _inferring(self)
        if name == "collect":
            return lambda *args: _collected(self, *args)
    raise Absent(kind.__name__, name, lambda: {*dir(kind), *vars(self)}, METHOD_ADVICE)


def _inferring(self: Any) -> Any:
    """PyTorch's eval(), for a module that is not in training."""
    if any(hasattr(backend, "from_inner") for backend in self.backends()):
        raise ArgumentError("eval: this module is in training; write module = module.valid(), which is a copy for "
                            "inference")  # fmt: skip
    return self


def _collected(module: Any, filter: Any = None, adapter: Any = None, skip_enum_variants: bool = False) -> list[Any]:
    """Burn's collect: the parameters as a list of Snapshots."""
    # By name: the stores import Module.
    from_module = import_module("emberlet.store.sources").from_module
    return list(from_module(module, filter=filter, layout="burn" if adapter is None else adapter.layout).values())


def renamed_keywords(layer: type[Any], init: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The keyword arguments of a layer's constructor `init` by other libraries' names, under ours; None if none of
    them is another's. Raises ArgumentError for an option that the layer does not have."""
    return renamed(init, kwargs, f"nn.{layer.__name__}", _KEYWORDS, _LEFT_OUT, _INSTEAD)
