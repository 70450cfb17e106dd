"""Coverage-guided fuzzing of the reader of .tflite files: python tests/fuzz/fuzz_tflite.py [-max_total_time=60].

Needs atheris. Any file becomes a graph of layers, or is refused with an EmberletError.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz import harness, multiplied  # noqa: E402

harness.instrument("emberlet.micro.builder.tflite", "emberlet.micro.builder.importer", "emberlet.micro.builder.kernels")

import flatbuffers  # noqa: E402
import tflite  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from emberlet.micro.builder.tflite.importing import read_tflite  # noqa: E402


def read(data: bytes) -> None:
    try:
        read_tflite(data, "x")
    except EmberletError as error:
        assert len(str(error)) < 20_000


def shared(n: multiplied.Numbers) -> bytes:
    """A file whose tables share a few others, and whose vectors name the same table again and again."""
    b = flatbuffers.Builder(1024)
    data, name = b.CreateByteVector(bytes(size := n.count(1 << 14))), b.CreateString("t" * n.count(1024))
    tflite.BufferStart(b)
    tflite.BufferAddData(b, data)
    buffers = vector(b, tflite.ModelStartBuffersVector, tflite.BufferEnd(b), n.count(512))
    shape = b.CreateNumpyVector(numbers([size] if n.below(2) else [1] * n.count(1024)))
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddName(b, name)
    tflite.TensorAddType(b, n.below(20))
    tensors = vector(b, tflite.SubGraphStartTensorsVector, tflite.TensorEnd(b), most := n.count(4096))
    inputs = b.CreateNumpyVector(numbers(range(min(most, n.count(2048)))))
    outputs = b.CreateNumpyVector(numbers(range(min(most, n.count(2048)))))
    tflite.OperatorStart(b)
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    operators = vector(b, tflite.SubGraphStartOperatorsVector, tflite.OperatorEnd(b), n.count(2048))
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddBuiltinCode(b, n.below(160))
    codes = vector(b, tflite.ModelStartOperatorCodesVector, tflite.OperatorCodeEnd(b), 1)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensors)
    tflite.SubGraphAddInputs(b, outputs if n.below(2) else inputs)
    tflite.SubGraphAddOutputs(b, outputs)
    tflite.SubGraphAddOperators(b, operators)
    graphs = vector(b, tflite.ModelStartSubgraphsVector, tflite.SubGraphEnd(b), n.count(2048))
    tflite.ModelStart(b)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, buffers)
    tflite.ModelAddOperatorCodes(b, codes)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def numbers(values):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.asarray(values, np.int32)


def vector(b, start, table, count):  # type: ignore[no-untyped-def]
    start(b, count)
    for _ in range(count):
        b.PrependUOffsetTRelative(table)
    return b.EndVector()


def seeds() -> dict[str, bytes]:
    """Small models of drawn layers."""
    import numpy as np

    from tools.microcontrollers.tflite_files import Drawn

    return {
        f"{dtype} {k}": Drawn(np.random.default_rng(k), dtype).grown(1 + k % 3)
        for dtype in ("int8", "float32")
        for k in range(20)
    }


if __name__ == "__main__":
    harness.run(read, seeds(), 6144, 64, build=shared)
