"""Writes a PyTorch module as a small ONNX file; all training scripts of the examples use it.

pip install torch==2.13.0 onnx onnxscript
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    import torch


def export(
    model: torch.nn.Module, x: torch.Tensor, path: Path, given: str, result: str, *, dynamic_batch: bool = False
) -> None:
    """Write a network with one input and one output as one file, in opset 20.

    x: an example of the input. given, result: the names of input and output in the file. dynamic_batch: the first axis
    may have any length, instead of `x`'s.
    """
    import torch

    proto = torch.onnx.export(
        model,
        (x,),
        input_names=[given],
        output_names=[result],
        dynamic_shapes=({0: torch.export.Dim("batch")},) if dynamic_batch else None,
        opset_version=20,
        dynamo=True,
        verbose=False,
    ).model_proto
    strip_notes(proto)
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def strip_notes(proto: onnx.ModelProto) -> None:
    """Remove the path of each node's Python source on this machine, which is useless elsewhere and half of a small
    file."""
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info, *proto.graph.initializer):
        del value.metadata_props[:]
    del proto.graph.metadata_props[:], proto.metadata_props[:]
