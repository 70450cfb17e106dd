"""The importer: its time compared with the start of onnxruntime's session for ResNet-50, its memory for large models.

ResNet-50 is ONNX's light model with its constant fills replaced by random weights. Both read the same file from a warm
cache, in turns, each in its own process: one writes a module and a burnpack, the other gets ready to run.

Memory is VmHWM of a process that only generates: the peak of all its resident pages, anonymous and file-backed, the
interpreter and its libraries included (Linux only). The models are dense layers with random weights, every second one
stored transposed; each burnpack is read back and compared with the weights that went in. Writes
benches/results/codegen.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from emberlet.burnpack import Burnpack
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results" / "codegen.md"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
SINE = ROOT / "examples" / "sine" / "sine.onnx"

GENERATE = """
import time, sys
from emberlet.codegen import generate
{warm}
start = time.perf_counter()
generate(sys.argv[1], sys.argv[2])
print(time.perf_counter() - start)
"""
SESSION = """
import time, sys
import onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
start = time.perf_counter()
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(time.perf_counter() - start)
"""
PEAK = """
import re, sys
from pathlib import Path
from emberlet.codegen import generate
generate(sys.argv[1], sys.argv[2])
try:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    most = int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) * 1024
except OSError:  # macOS
    import resource
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(most / 1e6)
"""


def resnet50(file: Path) -> tuple[float, int]:
    """Write the light model with random weights; returns its size in MB and its number of nodes."""
    model = onnx.load(LIGHT)
    random = np.random.default_rng(0)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shape = tuple(shapes[node.input[0]])
            values = random.standard_normal(shape).astype(np.float32)
            if len(shape) == 1:
                values = np.abs(values) + 0.5
            else:
                values *= np.float32(np.sqrt(2 / np.prod(shape[1:])))
            model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    onnx.save(model, file)
    return file.stat().st_size / 1e6, len(kept)


def weights_of(i: int, width: int) -> np.ndarray[Any, Any]:
    """The weights of layer i."""
    return np.random.default_rng(i).standard_normal((width, width), np.float32)


def large(file: Path, external: bool, layers: int = 32, width: int = 2000) -> tuple[float, float]:
    """Write a chain of dense layers of 512 MB in all; returns (MB of weights, MB of the largest tensor)."""
    nodes, weights = [], []
    data = file.with_suffix(".data")
    with open(data if external else os.devnull, "wb") as out:
        for i in range(layers):
            values = weights_of(i, width)
            t = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=values.shape)
            if external:
                t.data_location = TensorProto.EXTERNAL
                for key, value in (("location", data.name), ("offset", out.tell()), ("length", values.nbytes)):
                    t.external_data.add(key=key, value=str(value))
                out.write(values.tobytes())
            else:
                t.raw_data = values.tobytes()
            weights.append(t)
            nodes.append(helper.make_node("Gemm", [f"x{i}", f"w{i}"], [f"h{i}"], transB=i % 2))
            nodes.append(helper.make_node("Relu", [f"h{i}"], [f"x{i + 1}"]))
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", width]) for n in ("x0", f"x{layers}")]
    graph = helper.make_graph(nodes, "large", infos[:1], infos[1:])
    graph.initializer.extend(weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    file.write_bytes(model.SerializeToString())
    return 4 * layers * width * width / 1e6, 4 * width * width / 1e6


def compare(pack: Path, layers: int, width: int) -> None:
    """Raise unless the burnpack has the model's weights."""
    found = Burnpack.from_file(pack)
    assert len(found.tensors) == layers, list(found.tensors)
    for i in range(layers):
        values = np.frombuffer(found.raw(f"linear{i + 1}.weight"), np.float32).reshape(width, width)
        assert (values == (weights_of(i, width).T if i % 2 else weights_of(i, width))).all(), i


def run(code: str, *arguments: object, threads: str = "") -> float:
    """The output of a new process."""
    environment = {**os.environ, **({"OMP_NUM_THREADS": threads} if threads else {})}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return float(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is timed; the median counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        size, count = resnet50(folder / "resnet50.onnx")
        ours, theirs, cold = [], [], []
        warm = f"generate({str(SINE)!r}, {str(folder / 'warm')!r})"
        for _ in range(options.rounds):
            theirs.append(run(SESSION, folder / "resnet50.onnx"))
            ours.append(run(GENERATE.format(warm=warm), folder / "resnet50.onnx", folder / "out"))
            cold.append(run(GENERATE.format(warm=""), folder / "resnet50.onnx", folder / "out"))
        (folder / "resnet50.onnx").unlink()
        rows = []
        for external, layers, width in ((True, 32, 2000), (False, 32, 2000), (True, 36, 4000)):
            total, largest = large(folder / "large.onnx", external, layers, width)
            rows.append((external, total, largest, run(PEAK, folder / "large.onnx", folder / "out")))
            compare(folder / "out" / "large.bpk", layers, width)
            for file in (*folder.glob("large.*"), *(folder / "out").iterdir()):
                file.unlink()
    a, b, c = (statistics.median(t) * 1e3 for t in (ours, theirs, cold))
    text = f"""# The importer

{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, onnx {onnx.__version__}. Written by
`python3 dev.py bench codegen`: medians of {options.rounds} processes.

| ResNet-50, {size:.0f} MB, {count} nodes | ms |
|---|---|
| emberlet, module and burnpack written | {a:.0f} |
| emberlet, the first model of a process | {c:.0f} |
| onnxruntime, session created | {b:.0f} |
| ratio | {a / b:.1f} |

Memory is the peak of all resident pages of the process (VmHWM: anonymous and file-backed, the interpreter and its
libraries included). Every burnpack was read back and held the weights that went in.

| model | weights MB | largest tensor MB | peak MB | beyond the largest tensor | of the weights |
|---|---|---|---|---|---|
"""
    for external, total, largest, peak in rows:
        name = "dense layers, external data" if external else "dense layers, weights inline"
        text += f"| {name} | {total:.0f} | {largest:.0f} | {peak:.0f} | {peak - largest:.0f} | {peak / total:.2f} |\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
