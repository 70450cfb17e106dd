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


CONTROL = (118, 119, 129, 31, 142, 143, 144)  # IF, WHILE, CALL_ONCE, CALL, and those of variables
UNARY = (22, 43, 14, 19, 21, 25, 28)  # RESHAPE, SQUEEZE, LOGISTIC, RELU, RELU6, SOFTMAX, TANH


def deep(n: multiplied.Numbers) -> bytes:
    """Chains of operators in subgraphs whose control flow names one another and themselves; any table may stand for
    the options of any operator, and offsets are moved to other tables at last."""
    codes = [(CONTROL[n.below(7)], UNARY[n.below(7)], n.below(160))[n.below(3)] for _ in range(1 + n.below(4))]
    chain = n.count(256)
    b = flatbuffers.Builder(1024)
    empty, data = (b.CreateByteVector(bytes(size)) for size in (0, 4 * n.count(64)))
    text, longer = b.CreateString("x" * n.count(16)), b.CreateNumpyVector(numbers(range(n.count(16))))
    shape = b.CreateNumpyVector(numbers([1 + n.below(2)] * n.below(6)))
    buffers = b_vector(b, [table(b, {0: ("offset", found)}) for found in (empty, data)])
    scale = b.CreateNumpyVector(floats([0.5]))
    grid = table(b, {2: ("offset", scale), 3: ("offset", longer)})
    most = 1 + n.count(256)
    kinds = [
        table(b, {0: ("offset", shape), 1: ("int8", (0, 9, n.below(20))[n.below(3)]), 2: ("uint32", k),
                  3: ("offset", text), 4: ("offset", (0, grid)[n.below(2)])})
        for k in (0, 1)
    ]  # fmt: skip
    tensors = b_vector(b, [kinds[k % 3 == 2] for k in range(most)])
    count = 1 + n.below(3) * n.below(3)
    operator_codes = b_vector(b, [table(b, {3: ("int32", code)}) for code in codes])
    options = [
        table(b, {0: [("int32", n.below(count)), ("offset", longer), ("offset", text)][n.below(3)],
                  1: [("int32", n.below(count)), ("offset", text), ("offset", grid)][n.below(3)]})
        for _ in range(1 + n.below(3))
    ]  # fmt: skip
    operators = []
    for k in range(chain):
        inputs = b.CreateNumpyVector(numbers([k % most, (2 * k) % most][: 1 + k % 2]))
        outputs = b.CreateNumpyVector(numbers([(k + 1) % most]))
        kind = (16, 17, 92, 93, 103, 111, 10, 30)[(k + codes[0]) % 8]
        operators.append(
            table(b, {0: ("uint32", k % len(codes)), 1: ("offset", inputs), 2: ("offset", outputs),
                      3: ("uint8", kind), 4: ("offset", options[k % len(options)])})
        )  # fmt: skip
    steps, ends = b_vector(b, operators), b.CreateNumpyVector(numbers([0] * (1 + n.below(2))))
    graph = table(b, {0: ("offset", tensors), 1: ("offset", ends), 2: ("offset", ends), 3: ("offset", steps)})
    model = {0: ("uint32", 3), 1: ("offset", operator_codes), 2: ("offset", b_vector(b, [graph] * count)),
             4: ("offset", buffers)}  # fmt: skip
    b.Finish(table(b, model), b"TFL3")
    made = bytearray(b.Output())
    for _ in range(n.below(2) * n.below(4)):  # a number that can be an offset becomes another one
        at = 4 * n.below(max(1, len(made) // 4)) if len(made) < 1024 else 4 * (n.below(256) * n.below(256))
        if at + 8 < len(made):
            made[at : at + 4] = (4 * n.below(256)).to_bytes(4, "little")
    return bytes(made)


def table(b, fields):  # type: ignore[no-untyped-def]
    """A table of a flatbuffer from {number of a field: (kind, value)}."""
    add = {"offset": b.PrependUOffsetTRelativeSlot, "int8": b.PrependInt8Slot, "uint8": b.PrependUint8Slot,
           "int32": b.PrependInt32Slot, "uint32": b.PrependUint32Slot}  # fmt: skip
    b.StartObject(1 + max(fields))
    for number, (kind, value) in fields.items():
        add[kind](number, value, 0)
    return b.EndObject()


def b_vector(b, tables):  # type: ignore[no-untyped-def]
    b.StartVector(4, len(tables), 4)
    for each in reversed(tables):
        b.PrependUOffsetTRelative(each)
    return b.EndVector()


def floats(values):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.asarray(values, np.float32)


def built(n: multiplied.Numbers) -> bytes:
    return deep(n) if n.below(2) else shared(n)


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
    harness.run(read, seeds(), 6144, 64, build=built)
