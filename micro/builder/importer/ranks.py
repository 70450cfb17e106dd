"""What an ensemble of trees reads: the rank of each feature among the thresholds, in place of the feature."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet.codegen.ir.graph import Model
from emberlet.codegen.ops import movement as m
from emberlet.codegen.ops.constant import Cast
from emberlet.codegen.ops.machine_learning_features import Imputer, Scaler, ZipMap
from emberlet.codegen.ops.machine_learning_trees import (
    TreeEnsemble,
    TreeEnsembleClassifier,
    TreeEnsembleRegressor,
)

from ..graph import Sums

Ensemble = TreeEnsemble | TreeEnsembleClassifier | TreeEnsembleRegressor


ON_RANKS = (Scaler, Imputer, ZipMap, Cast, m.Identity, m.Reshape, m.Flatten, m.Squeeze, m.Unsqueeze)


def ranks_alone(model: Model) -> bool:
    """Whether the model is one ensemble of trees, apart from nodes that prepare its input or only pass on its
    outputs."""
    made = {a.name for node in model.graph.nodes for a in node.outputs if isinstance(node, Ensemble)}
    for node in model.graph.nodes:
        if any(a.name in made for a in node.uses()):
            made.update(a.name for a in node.outputs)
    kinds = [node for node in model.graph.nodes if not isinstance(node, ON_RANKS)]
    return len(kinds) == 1 and isinstance(kinds[0], Ensemble) and all(a.name in made for a in model.graph.outputs)


@dataclass(frozen=True)
class Prepared:
    """A tensor that is an input of the model, prepared: steps, (offset, scale) for each feature, one after the other;
    nan: for each feature what NaN becomes, which may be NaN."""

    source: str
    nan: npt.NDArray[Any]
    steps: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], ...] = ()


@dataclass
class Ranks:
    """alone: whether the model is one ensemble, which then reads ranks; prepared: tensors that are an input of the
    model, scaled and filled; cuts, of_nan, sums: as in Graph, where of_nan is ranks_of_nan."""

    alone: bool = False
    prepared: dict[str, Prepared] = field(default_factory=dict)
    cuts: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    of_nan: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    sums: dict[str, Sums] = field(default_factory=dict)

    def prepared_from(self, name: str, features: int) -> Prepared:
        """How a tensor was prepared; if it was not, it is its own source."""
        return self.prepared.get(name, Prepared(name, np.full(features, np.nan, np.float32)))
