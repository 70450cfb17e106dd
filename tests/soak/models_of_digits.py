"""Two versions of the digit recognizer, with weights that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tools.paths import ROOT


def versions(folder: Path) -> tuple[list[Path], Path]:
    """(two models of the same shapes, an input), written on first use."""
    import onnx
    from onnx import numpy_helper

    paths = [folder / label / "digits.onnx" for label in ("a", "b")]
    image = folder / "image.npy"
    if not image.exists():
        np.save(image, np.full((1, 1, 8, 8), 0.5, np.float32))
        for factor, path in enumerate(paths, 1):
            model = onnx.load(ROOT / "examples" / "digits" / "digits.onnx")
            for weight in model.graph.initializer:
                if weight.data_type == onnx.TensorProto.FLOAT:
                    value = numpy_helper.to_array(weight) * np.float32(factor)
                    weight.CopyFrom(numpy_helper.from_array(value, weight.name))
            model.graph.node[0].name += "x" * factor
            path.parent.mkdir()
            onnx.save(model, path)
    return paths, image
