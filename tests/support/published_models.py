"""The ONNX models of published Python packages: inputs as their packages give them, and onnxruntime's outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnxruntime

from tools import model_packages

Arrays = dict[str, np.ndarray[Any, Any]]


def image(name: str, *shape: int) -> Callable[[np.random.Generator], Arrays]:
    """Numbers between -1 and 1, as of a picture or a sound."""
    return lambda rng: {name: rng.uniform(-1, 1, shape).astype(np.float32)}


def voice(**states: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    """A window of 512 samples with the 64 before it, at 16 kHz, and states."""

    def drawn(rng: np.random.Generator) -> Arrays:
        given: Arrays = {"input": rng.uniform(-0.3, 0.3, (1, 576)).astype(np.float32), "sr": np.array(16000, np.int64)}
        return given | {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in states.items()}

    return drawn


def file_bytes(rng: np.random.Generator) -> Arrays:
    """Those of a file for magika: 1,024 from its beginning and its end, 256 where there is none."""
    return {"bytes": rng.integers(0, 257, (2, 2048)).astype(np.int32)}


MODELS: dict[str, Callable[[np.random.Generator], Arrays]] = {
    "basic-pitch/nmp": image("serving_default_input_2:0", 1, 43844, 1),
    "ddddocr/common_det": image("images", 1, 3, 416, 416),
    "ddddocr/common": image("input1", 1, 1, 64, 160),
    "ddddocr/common_old": image("input1", 1, 1, 64, 160),
    "magika/model": file_bytes,
    "nudenet/320n": image("images", 1, 3, 320, 320),
    "rapidocr/PP-OCRv6_det_small": image("x", 1, 3, 256, 320),
    "rapidocr/PP-OCRv6_rec_small": image("x", 1, 3, 48, 320),
    "rapidocr-onnxruntime/ch_PP-OCRv4_det_infer": image("x", 1, 3, 256, 320),
    "rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer": image("x", 1, 3, 48, 320),
    "rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer": image("x", 2, 3, 48, 192),
    "silero-vad/silero_vad": voice(state=(2, 1, 128)),
    "silero-vad/silero_vad_16k_op15": voice(state=(2, 1, 128)),
    "silero-vad/silero_vad_16k_sequence": voice(h=(1, 1, 128), c=(1, 1, 128)),
    "silero-vad/silero_vad_half": voice(state=(2, 1, 128)),
    "silero-vad/silero_vad_op18_ifless": voice(state=(2, 1, 128)),
    "silero-vad/silero_vad_openvino_16k": voice(state=(2, 1, 128)),
}
DYNAMIC = ("ddddocr/common_old",)
"""Quantized while they run: a number that rounds to the next of 255 steps changes all that follows."""


@cache
def expected(name: str) -> list[tuple[Arrays, list[np.ndarray[Any, Any]]]]:
    """Two times (inputs by name, in the model's order; onnxruntime's outputs)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    file = model_packages.FOLDER / f"{name}.onnx"
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    found = []
    rng = np.random.default_rng(7)
    for _ in range(2):
        drawn = MODELS[name](rng)
        given = {i.name: drawn[i.name] for i in session.get_inputs()}
        found.append((given, session.run(None, given)))
    return found
