"""Files that are no ONNX models: what they are, by their first bytes, and what reads them."""

from __future__ import annotations

import os

_WEIGHTS = "`emberlet inspect` shows it, and `emberlet convert` writes other formats"
# (position, bytes, what it is, what to do with it)
_KNOWN = (
    (4, b"TFL3", "a TensorFlow Lite model",
     "`emberlet micro build` reads it, for microcontrollers; for everything else convert it to ONNX with "
     "`python -m tf2onnx.convert --tflite FILE --output model.onnx`"),
    (4, b"ORTM", "a model in onnxruntime's own format", "use the .onnx file that it was made from"),
    (0, b"\x89HDF\r\n", "an HDF5 file, as Keras writes", 'write ONNX with `model.export("model.onnx", format="onnx")`'),
    (0, b"PK\x03\x04", "a zip archive, as PyTorch, Keras and NumPy write",
     "export a model with `torch.onnx.export` or Keras's `model.export`; for weights, `emberlet inspect` shows them"),
    (0, b"NRUB", "a burnpack of weights", _WEIGHTS),
    (0, b"GGUF", "a GGUF file of weights", _WEIGHTS),
)  # fmt: skip


def other_format(head: bytes) -> str | None:
    """'a TensorFlow Lite model; `emberlet micro build` reads it …' for the first bytes of a file, None if unknown."""
    for at, magic, what, advice in _KNOWN:
        if head[at : at + len(magic)] == magic:
            return f"{what}; {advice}"
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") < 1 << 32:
        return f"a safetensors file of weights; {_WEIGHTS}"
    return None


def described(path: str) -> str | None:
    """`other_format` of a file; None too where there is none."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return other_format(file.read(16))


def refusal(path: str, expected: str) -> str:
    """The message for a file that is not what a command expected."""
    found = described(path)
    return f"{path}: expected {expected}" if found is None else f"{path} is {found}"
