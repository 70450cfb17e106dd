"""Words for variables: the results of layers and functions, and their arguments."""

from __future__ import annotations

import re

from .expression import Attribute, Call, Expr, Index, Name
from .names import MAX_LOCAL, snake
from .traversal import is_layer

_ROLES = (
    ("query", ("query", "q", "q_proj", "to_q", "wq", "q_lin", "q_linear", "queries")),
    ("key", ("key", "k", "k_proj", "to_k", "wk", "k_lin", "k_linear", "keys")),
    ("value", ("value", "v", "v_proj", "to_v", "wv", "v_lin", "v_linear", "values")),
    ("gate", ("gate", "gate_proj", "w1")),
    ("qkv", ("qkv", "c_attn", "in_proj", "qkv_proj", "query_key_value")),
)
LAYER_ROLES = {attribute: role for role, attributes in _ROLES for attribute in attributes}
FUNCTION_ROLES = {
    **dict.fromkeys(("logical_and", "logical_or", "logical_not"), "mask"),
    "arange": "positions",
    "softmax": "weights",
    "concat": "joined",
    "stack": "stacked",
    "silu": "gate",
    "sigmoid": "gate",
    "cos": "cos",
    "sin": "sin",
    "split": "part",
    "mean": "mean",
    "var": "variance",
    "topk": "best",
    "one_hot": "one_hot",
    "argmax": "best",
}
ARGUMENT_ROLES = {
    "attention": ("query", "key", "value", "mask"),
    "logical_and": ("mask", "mask"),
    "non_max_suppression": ("boxes", "scores"),
    "rotary_embedding": ("", "cos", "sin"),
    "cos": ("angles",),
    "sin": ("angles",),
}
OPTION_ROLES = {"kv_lengths": "lengths"}
WEAK = ("joined", "stacked", "part")  # words that say less than a value's use
KEEP = ("reshape", "permute", "expand", "astype", "squeeze", "flatten")
PLAIN = ("x", "y", "z")  # the main value of a model is x
ASIDE = "hidden"  # a value computed beside it
EMBEDDINGS = ("_embeddings", "_embedding")
FAR = 2  # statements between a value and the concatenation to which it skips
# Words of a field that say how a layer computes rather than what.
_LAYER_KINDS = frozenset(
    "conv linear fc dense norm layer layers block blocks bn ln proj mlp group instance batch embedding p relu prelu "
    "features stem head down up mix in out bottom encoder decoder body net model module main seq act self dw pw se "
    "transpose shortcut reduce expand downsample pool ff ffn gemm matmul layernorm batchnorm rmsnorm "
    "before after".split()
)


def is_function(e: Expr, *names: str) -> bool:
    return isinstance(e, Call) and isinstance(e.function, Attribute) and e.function.name in names


def layer_word(e: Expr) -> str:
    """The name of the layer whose result an expression only reshapes or passes through elementwise functions; empty if
    the name only says what kind of layer it is."""
    while True:
        match e:
            case Call(Attribute(Name("F"), _), (first, *rest), _) if not any(isinstance(r, Name | Call) for r in rest):
                e = first
            case Call(Attribute(base, method), _, _) if method in KEEP and base != Name("F"):
                e = base
            case Call() if is_layer(e):
                field = e.function
                while isinstance(field, Index):
                    field = field.object
                word = snake(field.name) if isinstance(field, Attribute) else ""
                parts = {re.sub(r"\d+", "", w) for w in word.split("_")} - {""}
                return "" if not parts or parts & _LAYER_KINDS or len(word) > MAX_LOCAL else word
            case _:
                return ""
