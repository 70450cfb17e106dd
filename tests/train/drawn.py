"""Drawn data for metrics, in batches of different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, CLASSES, PAD = 60, 6, 3
BATCHES = ((0, 1), (1, 18), (18, 50), (50, 60))


def data() -> dict[str, Any]:
    """Arrays of ROWS rows, lists of as many texts. The last class never occurs, and no row of `scores` is for it."""
    r = np.random.RandomState(5)
    scores = r.randn(ROWS, CLASSES).astype(np.float32)
    scores[:, -1] -= 20
    words = "a car runs over the long dark road at night".split()
    written = [" ".join(r.choice(words, 1 + i % 7)) for i in range(ROWS)]
    said = [" ".join(w if r.rand() < 0.7 else str(r.choice(words))[:-1] or "of" for w in t.split()) for t in written]
    images = r.rand(ROWS, 2, 14, 16).astype(np.float32)
    numbers = r.randn(ROWS).astype(np.float32) * 3 + 20
    return {
        "scores": scores,
        "classes": r.randint(0, CLASSES - 1, ROWS),
        "chances": (r.randint(0, 40, (ROWS, CLASSES)) / 41).astype(np.float32),
        "labels": r.randint(0, 2, (ROWS, CLASSES)),
        "chance": (r.randint(0, 40, ROWS) / 41).astype(np.float32),
        "truth": r.randint(0, 2, ROWS),
        "logits": r.randn(ROWS, 4, 9).astype(np.float32),
        "tokens": r.randint(0, 9, (ROWS, 4)),
        "said": said,
        "written": written,
        "numbers": numbers,
        "guesses": (numbers + r.randn(ROWS)).astype(np.float32),
        "images": images,
        "noisy": np.clip(images + r.randn(*images.shape) / 9, 0, 1).astype(np.float32),
    }
