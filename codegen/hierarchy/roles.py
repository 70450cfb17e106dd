"""Names the layers and constants of a block that the file does not name, alike for every block of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..emit.names import snake
from ..ir.argument import Argument
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ir.value import Fill, Value
from .repetition.patterns import embeds, excites

SMALL = 16
LAYER_SCALE = "gamma"
BOX = 4  # the numbers of a box; tables of these are no embeddings
_VIEWS = tuple("Reshape Transpose Unsqueeze Squeeze Mul Div Expand Cast Concat RotaryEmbedding Split".split())
_PRODUCTS = ("Linear", "MatMul", "Gemm", "QuantizedLinear")
_ATTENTIONS = ("Attention", "MultiHeadAttention", "GroupQueryAttention")
_ACTIVATIONS = ("Swish", "Gelu", "Relu", "Sigmoid", "HardSwish", "Mish")
_SCORES = ("Softmax", "LogSoftmax", "Sigmoid")
_BY_USE = {"Mul": "scale", "Add": "shift", "Sub": "shift", "Div": "scale", "MatMul": "weight", "Conv": "weight"}
_SHORT = {"embedding": "embedding", "batch_norm": "norm", "layer_norm": "norm", "rmsnorm": "norm", "rms_norm": "norm"}
STEPS = 8


def channels(value: Value | None) -> int:
    """The size of the only axis of a floating-point tensor that is longer than 1; 0 if there is none or another."""
    long = [d for d in value.shape if d > 1] if value is not None and value.dtype.is_float else []
    return long[0] if len(long) == 1 else 0


class Roles:
    """The names of the layers of one block. results: the model's outputs, if these are the layers around its blocks."""

    def __init__(self, nodes: Sequence[Node[Any]], results: Iterable[str] = ()) -> None:
        self.made = {o.name: node for node in nodes for o in node.outputs if o.present}
        self.users: dict[str, str] = {}
        for node in nodes:
            for a in node.inputs:
                if a.value is not None:
                    self.users.setdefault(a.name, node.op())
        self.known: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.ops: dict[str, int] = {}
        self.count: dict[str, int] = {}
        for node in nodes:
            self.ops[node.op()] = self.ops.get(node.op(), 0) + 1
            self._read(node)
        self._layers(nodes)
        for name in results:
            last = self.made.get(name)
            while last is not None and last.op() in (*_VIEWS, *_SCORES):
                last = self.made.get(last.inputs[0].name)
            if last is not None and last.op() in _PRODUCTS and last.value(1) is not None:
                self.known.setdefault(last.name, "head")

    def _read(self, node: Node[Any]) -> None:
        if node.op() in _ATTENTIONS and node.domain != "com.microsoft":
            for a, word in zip(node.inputs, ("query", "key", "value"), strict=False):
                self._trace(a.name, word)
            if len(node.inputs) > 3:
                self._masks(node.inputs[3], "bias")
        if node.op() in ("Cos", "Sin"):
            self._angles(node)
        if node.op() == "Add":
            self._scaled(node)
            self._placed(node)

    def _layers(self, nodes: Sequence[Node[Any]]) -> None:
        layers = [n.name for n in nodes if n.op() in (*_PRODUCTS, "Conv", "QuantizedConv")]
        if excites(nodes):
            self.known.update(zip(layers, ("reduce", "expand"), strict=True))
        elif embeds(nodes):
            self.known[layers[0]] = "project"
        for node in nodes:
            if node.op() in _PRODUCTS and self._follows_attention(node.inputs[0].name):
                self.known.setdefault(node.name, "project")
            elif node.op() in _PRODUCTS:
                self._gated(node)

    def _angles(self, node: Node[Any]) -> None:
        """Name the frequencies of a rotary embedding."""
        for _ in range(STEPS):
            found = self.made.get(node.inputs[0].name)
            if found is None:
                return
            node = found
            if node.op() in ("Mul", "MatMul"):
                self.constants.update({a.name: "inv_freq" for a in node.inputs if a.value is not None})
                return

    def _masks(self, a: Argument, word: str) -> None:
        """Name the tensors that are added to an attention's scores: a position bias and a mask."""
        if a.value is not None:
            self.constants.setdefault(a.name, word)
            return
        node = self.made.get(a.name)
        if node is not None and node.op() == "Add":
            for i, other in enumerate(node.inputs):
                self._masks(other, "bias" if other.value is not None and node.inputs[1 - i].value is None else "mask")
        elif node is not None and node.op() in ("Expand", "Reshape", "Unsqueeze", "Tile"):
            self._masks(node.inputs[0], word)

    def _scaled(self, node: Node[Any]) -> None:
        """Name the per-channel factors of a residual branch."""
        if any(a.value is not None for a in node.inputs):
            return
        for a in node.inputs:
            product = self.made.get(a.name)
            if product is not None and product.op() == "Mul":
                self.constants.update((b.name, LAYER_SCALE) for b in product.inputs if channels(b.value))

    def _placed(self, node: Node[Any]) -> None:
        """Name a table (1, length, width) that is added to a sequence (batch, length, width)."""
        for a, other in (node.inputs, node.inputs[::-1]):
            if a.value is None or other.value is not None or not a.value.dtype.is_float:
                continue
            shape, made = a.value.shape, self.made.get(other.name)
            table = len(shape) in (2, 3) and shape[:-2] in ((), (1,)) and shape[-2] > 1 and shape[-1] > BOX
            scaled = made is not None and made.op() == "Mul"
            if table and not scaled and isinstance(other.type, TensorType) and len(other.type.shape or ()) == 3:
                self.constants.setdefault(a.name, "position_embeddings")

    def _gated(self, node: Node[Any]) -> None:
        """Name the three layers of a gated feed-forward: `down(silu(gate(x)) * up(x))`."""
        product = self.made.get(node.inputs[0].name)
        if product is None or product.op() != "Mul":
            return
        sides = [self.made.get(a.name) for a in product.inputs]
        for act, up in (sides, sides[::-1]):
            gate = self.made.get(act.inputs[0].name) if act is not None and act.op() in _ACTIVATIONS else None
            if gate is None or up is None or not {gate.op(), up.op()} <= set(_PRODUCTS):
                continue
            if gate.inputs[0].name == up.inputs[0].name:
                self.known.update({gate.name: "gate", up.name: "up", node.name: "down"})

    def _trace(self, name: str, word: str) -> None:
        """Name the layer of which a value is a view."""
        node = self.made.get(name)
        for _ in range(STEPS):
            if node is None or node.op() not in _VIEWS:
                break
            inputs = node.inputs[::-1] if node.op() == "Concat" else node.inputs  # the new part comes after a cache
            node = next((self.made[a.name] for a in inputs if a.name in self.made), None)
        if node is not None and node.op() in _PRODUCTS:
            if self.known.get(node.name, word) != word:
                word = "qkv"  # one layer computes several of them
            self.known[node.name] = word

    def _follows_attention(self, name: str) -> bool:
        node = self.made.get(name)
        while node is not None and node.op() in _VIEWS:
            node = self.made.get(node.inputs[0].name)
        return node is not None and node.op() in _ATTENTIONS and node.domain != "com.microsoft"

    def layer(self, node: Node[Any], kind: str) -> str:
        """A layer's name: "query" if its result is an attention's first input, else "conv1", "norm2"."""
        if node.name in self.known and list(self.known.values()).count(self.known[node.name]) == 1:
            return self.known[node.name]
        base = snake(kind).rstrip("_0123456789").removesuffix("d").rstrip("_0123456789")
        base = _SHORT.get(base, base)
        if self.ops.get(node.op(), 0) == 1 and not self.count.get(base):
            self.count[base] = 1
            return base
        self.count[base] = self.count.get(base, 0) + 1
        return f"{base}{self.count[base]}"

    def constant(self, name: str) -> str:
        """A constant's name: "scale" of a factor, "shift" of a summand."""
        return self.constants.get(name) or _BY_USE.get(self.users.get(name, ""), "constant")

    def is_vector(self, value: Value) -> bool:
        """Whether a constant of one number represents a layer's vector, which other blocks hold in full."""
        long = [d for d in value.shape if d > 1]
        return isinstance(value.source, Fill) and value.dtype.is_float and len(long) == 1 and long[0] > SMALL
