"""What breaks the contract and is not mended yet. An entry names the cause; test_known.py holds that its program still
breaks, so that the entry goes when the cause does."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .kinds.layers import Drawn


class Known(NamedTuple):
    """kinds: of cases; difference and program: regular expressions that are found in what is printed; example: the case
    that shows it."""

    cause: str
    kinds: tuple[str, ...]
    difference: str
    program: str = ""
    example: Any = None


KNOWN: list[Known] = [
    Known(
        "pools and convolutions take kernels, strides and dilations below 1, and negative padding, and backends differ",
        ("layers", "invalid"),
        "",
        r"pool|[cC]onv|Pool|[uU]nfold|col2im",
        Drawn("nn.AvgPool1d(0, 1, 1)(X(1, 2, 4))", 1),
    ),
    Known(
        "group_query_attention does not check lengths; each backend refuses them by another error, or computes",
        ("invalid",),
        "",
        "group_query_attention|rotary_embedding",
        Drawn("rotary_embedding(X(1, 3, 8), X(5, 2), X(5, 2), V([[9]]))", 1),
    ),
    Known(
        "gather_block_quantized does not check the shapes of scales",
        ("invalid", "layers"),
        "",
        "gather_block_quantized",
        Drawn("gather_block_quantized(X(3, 0, dtype='bool'), V([2]), P())", 1),
    ),
    Known(
        "a plan refuses an index with other words where a layer explains it",
        ("invalid",),
        "is outside axis.*eager NumPy raises IndexingError",
    ),
    Known(
        "linear_attention with open sizes takes k and v of different lengths",
        ("invalid",),
        "open sizes",
        "linear_attention",
    ),
    Known(
        "functions that index without a check: computed on wgpu and wasm, refused by NumPy's own error",
        ("invalid", "layers"),
        "",
        "tensor_scatter|matmul_nbits|searchsorted|slice_axes|pad_axes|attention",
        Drawn("tensor_scatter(X(1, 4, 2), X(1, 2, 2), V([9]))", 1),
    ),
    Known(
        "cross_entropy and nll_loss in WebAssembly and on the GPU do not check targets",
        ("invalid",),
        "returns .*IndexingError",
        "CrossEntropyLoss|cross_entropy|nll_loss",
    ),
    Known("scatter does not check its reduction on every backend", ("invalid",), "", "scatter"),
    Known("bools as scales of quantized functions", ("layers", "invalid"), "", "quantize.*bool"),
    Known(
        "saved plans do not check pairs of indices",
        ("invalid",),
        "saved for .*returns .*IndexingError",
        "",
        Drawn("gather_nd(X(1, 3), V([[0, 1], [1, -3]]))", 1),
    ),
]


def cause(kind: str, difference: str, program: str) -> str | None:
    """The known cause of a difference, or None."""
    for known in KNOWN:
        if kind in known.kinds and re.search(known.difference, difference) and re.search(known.program, program):
            return known.cause
    return None
