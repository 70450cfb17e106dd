"""Draws .tflite files that hold an LSTM, in int8 as TensorFlow's converter writes it, or in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from .tflite_files import File, Rng


def drawn_lstm(
    rng: Rng, steps: int, features: int, hidden: int, cell: float = 2.0**-11, dtype: str = "int8", **options: Any
) -> File:
    """A file with one LSTM. cell: the step of its cell; options: those of the operator."""
    file, real = File(), dtype == "float32"

    def grid(scale: float, zero: int = 0) -> tuple[float, int]:
        return (0.0, 0) if real else (scale, zero)

    source = float(10 ** rng.uniform(-2.2, -1.2)), int(rng.integers(-128, 128))
    state = float(rng.uniform(0.003, 0.009)), int(rng.integers(-60, 60))
    x = file.tensor((1, steps, features), dtype, *grid(*source))
    y = file.tensor((1, steps, hidden), dtype, *grid(*state))
    file.inputs, file.outputs = [x], [y]
    weights, scales = [], []
    for k in (*[features] * 4, *[hidden] * 4):
        w, scale = rng.integers(-127, 128, (hidden, k)), float(rng.uniform(0.6, 3) / 127 / np.sqrt(k))
        scales.append(scale)
        weights.append(
            file.constant((w * scale).astype(np.float32)) if real else file.constant(w.astype(np.int8), [scale], [0])
        )
    biases = []
    for scale in scales[:4]:
        b, step = rng.normal(0, 0.5, hidden), source[0] * scale
        steps_of_b = np.rint(b / step).astype(np.int32)
        biases.append(file.constant(b.astype(np.float32)) if real else file.constant(steps_of_b, [step], [0]))
    kept = file.variable((1, hidden), dtype, *grid(*state))
    cells = file.variable((1, hidden), "float32" if real else "int16", *grid(cell))
    if not real:
        gates = [file.tensor((0,), "int16", 2.0**-12) for _ in range(4)]
        result = state[0] * float(rng.uniform(0.9, 1.1)), state[1] + int(rng.integers(-5, 6))
        file.intermediates[0] = [*gates, file.tensor((0,), dtype, *result)]
    inputs = [x, *weights, -1, -1, -1, *biases, -1, -1, kept, cells, -1, -1, -1, -1]
    options = {"FusedActivationFunction": 4, "CellClip": 10.0, **options}
    file.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], "UnidirectionalSequenceLSTM", **options)
    return file
