"""Models over data sets: `Predictor`, a callable on batches for Ray Data, Spark, Daft and process pools, and the
implementation of `emberlet score` (docs/many-machines.md).

predictor.py holds the model; columns.py converts columns to its inputs; pieces.py splits batches into a few sizes;
pictures.py decodes images. These need NumPy. files.py and rows.py read inputs with pyarrow. scoring.py and its imports
need Ray, which does the scheduling, the retries and the checkpoint.
"""

from __future__ import annotations

from ..host.extras import require

require("emberlet.batch", "numpy")

from .predictor import Predictor  # noqa: E402  (imports numpy)

__all__ = ["Predictor"]
