"""The cases that ONNX keeps as files: simple models and PyTorch's conversions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx.backend.test
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_tensor
from onnx import numpy_helper

from .cases import compare

DATA = Path(onnx.backend.test.__file__).parent / "data"
KINDS = ("simple", "pytorch-converted", "pytorch-operator")


@cache
def stored_cases() -> dict[str, Path]:
    """kind/name -> the case's folder."""
    folders = (folder for kind in KINDS for folder in sorted((DATA / kind).iterdir()) if folder.is_dir())
    return {f"{folder.parent.name}/{folder.name}": folder for folder in folders}


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are no weights."""
    weights = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def read(file: Path, info: onnx.ValueInfoProto) -> Any:
    """A stored value: an array, or a list for a sequence."""
    if info.type.HasField("sequence_type"):
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(file.read_bytes())
        return numpy_helper.to_list(sequence)
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return numpy_helper.to_array(tensor)


def run_stored_case(name: str, backend_name: str) -> None:
    """One case on one backend; raises whatever goes wrong."""
    folder, backend = stored_cases()[name], get_backend(backend_name)
    proto = onnx.load(folder / "model.onnx")
    model = load(folder / "model.onnx", backend)
    for data in sorted(folder.glob("test_data_set_*")):
        given = [read(data / f"input_{i}.pb", info) for i, info in enumerate(inputs_of(proto))]
        wanted = [read(data / f"output_{i}.pb", info) for i, info in enumerate(proto.graph.output)]
        results = model(*(to_tensor(v, backend) for v in given))
        results = results if isinstance(results, tuple) else (results,)
        for got, want in zip(results, wanted, strict=True):
            compare(name, got, want, rtol=1e-3, atol=1e-5)
