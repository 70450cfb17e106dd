"""Make the models of `architectures/` that onnxruntime optimized, NAME_optimized.onnx.gz, of the exports beside them.

    python tests/models/optimize_architectures.py             # all of them
    python tests/models/optimize_architectures.py qwen2       # these

onnxruntime saves them itself (`optimized_model_filepath`), at the level "extended": products with their scales, biases
with GELUs, and convolutions with their activations are operators of com.microsoft, and the metadata of all nodes is
gone. Its next level writes files for one processor.
"""

import gzip
import shutil
import sys
import tempfile
from pathlib import Path

import onnxruntime

HERE = Path(__file__).parent / "architectures"
OPTIMIZED = ("bert", "llama_traced", "qwen2", "resnet50", "resnet50_traced", "timm_regnety", "timm_vit")


def optimize(name: str) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        options.optimized_model_filepath = str(path)
        data = gzip.decompress((HERE / f"{name}.onnx.gz").read_bytes())
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        (HERE / f"{name}_optimized.onnx.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    shutil.copyfile(HERE / f"{name}.json", HERE / f"{name}_optimized.json")


if __name__ == "__main__":
    for name in sys.argv[1:] or OPTIMIZED:
        optimize(name)
