"""Layers that have no form in bytes."""

from __future__ import annotations

from emberlet.errors import UnsupportedError

from ..kernels.coupling import CouplingFloat
from ..kernels.distance import DistanceFloat
from ..kernels.elementwise import ImputeFloat, WholeQuotientFloat
from ..kernels.layer import Layer
from ..kernels.trees_float import TreesFloat

NAMES: dict[type[Layer], str] = {
    CouplingFloat: "the coupling of a support vector machine's probabilities",
    DistanceFloat: "a distance that is not Euclidean",
    ImputeFloat: "the replacement of missing numbers",
    WholeQuotientFloat: "a quotient of whole numbers",
    TreesFloat: "a group of trees behind or beside other layers",
}
"""Names in messages; of other layers it is their kind."""


def no_int8_form(layer: Layer) -> UnsupportedError:
    """The error for such a layer."""
    what = NAMES.get(type(layer), layer.kind.removesuffix("float"))
    return UnsupportedError(f"{layer.name}: {what} has no int8 form; build the model with --float")
