"""Models over data sets: `Predictor`, a callable on batches for Ray Data, Spark, Daft and pools of processes, and what
`emberlet score` runs (docs/many-machines.md).

predictor.py holds the model; columns.py brings columns to what it takes; pieces.py cuts batches to a few sizes;
pictures.py decodes. They need NumPy. files.py and rows.py read inputs with pyarrow; scoring.py and what it imports is
for Ray: scheduling, retries and the checkpoint are Ray's.
"""

from __future__ import annotations

from ..host.extras import require

require("emberlet.batch", "numpy")

from .predictor import Predictor  # noqa: E402  (imports numpy)

__all__ = ["Predictor"]
