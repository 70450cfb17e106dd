"""Categories of ai.onnx.ml: a place for each of several numbers."""

from __future__ import annotations

import numpy as np
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.machine_learning_features import OneHotEncoder

from ..kernels.elementwise import MapFloat
from ..kernels.pairs import CompareFloat
from .activations import repeated
from .layout import StoredTensor, dims_of
from .state import Importer
from .table import translates


@translates(OneHotEncoder)
def one_hot_encoder(t: Importer, node: OneHotEncoder) -> None:
    """1 at the place of each number's category. All zeros for an unknown category, even if the model (zeros=0) asks for
    an error."""
    c = node.config
    if any(isinstance(v, str) for v in c.categories):
        raise Problem("categories that are text are not supported; use integers")
    held = t.of(node.inputs[0])
    held = t.ordered(held, tuple(range(len(held.dims))))
    if node.dtype(0).is_float:
        name = t.layout.part_of(held, "whole")
        t.add(MapFloat(f"{node.name} whole", (held.name,), name, t.layout.shapes[name], (("trunc", ()),)))
        held = StoredTensor(name, held.dims, held.order)
    dims = dims_of(node.outputs[0])
    wide = t.shaped(StoredTensor(held.name, (*held.dims, 1), tuple(range(len(dims)))))
    wide = repeated(t, wide, dims)
    out = t.define(node.outputs[0], wide.order)
    t.grids.whole.add(out.name)
    categories = np.asarray(c.categories, np.float32)
    t.add(
        CompareFloat(
            node.name, (wide.name,), out.name, "equal", t.layout.shapes[wide.name], (len(categories),), categories
        )
    )
