"""The length of a batch as an open size: one plan of a step serves batches of every length."""

from ..backend.axes import Axes
from ..backend.opening import Opening, kinds_of
from ..tensor import Tensor

NAME = "batch"


def of_batch(batch, attempt):
    """The Opening of the first axis of all tensors that have as many items as the first tensor with axes; None where
    no tensor has any. attempt: as for Axes.scope."""
    items = next((x.shape[0] for x in batch if isinstance(x, Tensor) and x.shape), 0)
    if not items:
        return None
    templates = []
    for x in batch:
        template = list(x.shape) if isinstance(x, Tensor) else None
        if template and template[0] == items:
            template[0] = NAME
        templates.append(template)
    shapes = [x.shape if isinstance(x, Tensor) else None for x in batch]
    return Opening(Axes(templates, {}), [NAME], {NAME: items}, attempt, shapes, kinds_of(batch, ()))
