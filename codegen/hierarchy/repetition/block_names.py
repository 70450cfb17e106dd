"""Names blocks that the file does not name, by their operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Node
from ...records import dataclass
from .patterns import LONGEST_GATE, MEANS, embeds, excites

CONVOLUTIONS = ("Conv", "FusedConv", "ConvTranspose", "ConvInteger", "QLinearConv", "QuantizedConv")
_PRODUCTS = ("Linear", "MatMul", "Gemm", "FusedMatMul", "MatMulNBits", "MatMulInteger", "QLinearMatMul",
             "QuantizedLinear")  # fmt: skip
_ATTENTIONS = ("Attention", "MultiHeadAttention", "GroupQueryAttention", "DecoderMaskedMultiHeadAttention")
_NORMS = ("BatchNormalization", "InstanceNormalization", "GroupNormalization")
POOLS = ("MaxPool", "AveragePool", "LpPool")
_SUMS = ("Add", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "QLinearAdd", "Sum")


@dataclass(frozen=True)
class Part:
    """The nodes of a block, and its number of inputs."""

    nodes: Sequence[Node[Any]]
    takes: int

    def count(self, *ops: str) -> int:
        return sum(n.op() in ops for n in self.nodes)


def kind_of(part: Part) -> str:
    """A class's name for a block: "Bottleneck" for three convolutions and a sum, "Block" if nothing is known."""
    if embeds(part.nodes):
        return "PatchEmbedding"
    if excites(part.nodes):
        return "SqueezeExcitation"
    attention = part.count(*_ATTENTIONS) or part.count("Softmax")
    if attention:
        return _transformer(part, attention)
    if part.count(*CONVOLUTIONS):
        return _convolutional(part)
    if part.count("LSTM", "GRU", "RNN"):
        return "RecurrentLayer"
    if part.count(*_PRODUCTS):
        if part.count(*_PRODUCTS) > 1 or _adds(part):
            return "FeedForward"
        return "LinearBlock"
    return "Block"


def _transformer(part: Part, attention: int) -> str:
    products = part.count(*_PRODUCTS) + part.count("Attention") * any(n.domain == "com.microsoft" for n in part.nodes)
    if attention > 1:
        return "DecoderLayer" if part.takes > 1 else "Block"
    if _after_attention(part) < 2 or products < 3:
        return "Attention"
    causal = any(getattr(n.config, "causal", False) for n in part.nodes)
    return "DecoderLayer" if causal else "EncoderLayer"


def _after_attention(part: Part) -> int:
    """The number of products after the attention."""
    last = max(i for i, n in enumerate(part.nodes) if n.op() in (*_ATTENTIONS, "Softmax"))
    return sum(n.op() in _PRODUCTS and n.value(_weight_input(n)) is not None for n in part.nodes[last:]) - 1


def _convolutional(part: Part) -> str:
    gates = {n.name for n in _gates(part.nodes)}
    convolutions = [n for n in part.nodes if n.op() in CONVOLUTIONS and n.name not in gates]
    deep = [n for n in convolutions if _depthwise(n)]
    joined = [n for n in part.nodes if n.op() == "Concat"]
    if joined:
        made = {o.name for n in part.nodes for o in n.outputs}
        width = len(joined[-1].inputs)
        if any(a.name not in made for a in joined[-1].inputs):
            return "DenseLayer"
        if len(convolutions) == 3 and width == 2:
            return "Fire"
        if width > 2 and not deep:
            return "InceptionBlock"
    if part.count("Reshape") > 1 and part.count("Transpose"):
        return "ShuffleBlock"
    if deep:
        return "InvertedResidual" if len(convolutions) > 2 else "SeparableConv"
    if _adds(part):
        if len(convolutions) < 2:
            return "ConvBlock"
        kind = "Bottleneck" if len(convolutions) > 2 + _projects(part) else "ResidualBlock"
        return "Projection" * _projects(part) + kind
    sizes = [size for size in map(_kernel, convolutions) if size]
    if len(sizes) == len(convolutions) == 3 and max(sizes[0] + sizes[2]) == 1 < min(sizes[1]):
        return "Bottleneck"
    if len(convolutions) == 1 and part.nodes[-1].op() in POOLS and part.nodes[0] is not convolutions[0]:
        return "Transition"
    return "ConvBlock"


def _gates(nodes: Sequence[Node[Any]]) -> Sequence[Node[Any]]:
    """The nodes of the first squeeze-and-excitation among these."""
    for i, node in enumerate(nodes):
        if node.op() in MEANS:
            for end in range(i + 5, min(len(nodes), i + LONGEST_GATE) + 1):
                if excites(nodes[i:end]):
                    return nodes[i:end]
    return ()


def around(kind: str, nodes: Sequence[Node[Any]]) -> str:
    """A name for a block that contains a block of this kind."""
    return f"Residual{kind}" if _adds(Part(nodes, 1)) and "Residual" not in kind else f"{kind}Group"


def _projects(part: Part) -> bool:
    """Whether the shortcut of a residual block has its own convolution: both summands come from convolutions."""
    made = {o.name: n for n in part.nodes for o in n.outputs}
    for node in part.nodes:
        if node.op() in _SUMS:
            both = [made.get(a.name) for a in node.inputs if a.present and a.value is None]
            if len(both) > 1 and all(n is not None and n.op() in (*CONVOLUTIONS, *_NORMS) for n in both):
                return True
    return False


def _weight_input(node: Node[Any]) -> int:
    """The number of a layer's input that is its weight: scale and zero point of x come before it in QLinearConv."""
    return 3 if node.op().startswith("QLinear") else 1


def _kernel(node: Node[Any]) -> tuple[int, ...]:
    """The kernel of a convolution; empty if it is not known."""
    if node.op() == "QuantizedConv":
        return tuple(node.config.shape[2:])
    return tuple(node.config.window.kernel) if node.op() in ("Conv", "FusedConv") else ()


def _depthwise(node: Node[Any]) -> bool:
    packed = node.op() == "QuantizedConv"
    config = node.config.conv if packed else node.config
    weight = node.config.shape if packed else node.shape(_weight_input(node)) if len(node.inputs) > 1 else None
    groups = getattr(config, "groups", 1)
    return groups > 1 and weight is not None and len(weight) > 1 and weight[1] == 1


def _adds(part: Part) -> bool:
    """Whether a node adds two computed values."""
    return any(n.op() in _SUMS and sum(a.present and a.value is None for a in n.inputs) > 1 for n in part.nodes)
