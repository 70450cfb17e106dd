"""The inputs of metrics: what a step gives to them, and what several metrics check of it."""

from ...errors import ShapeError


class _Input:
    """FIELDS: the attributes of a step's output from which the input is made, in the order of its arguments."""

    FIELDS = ("output", "targets")

    def __init__(self, output, targets):
        self.output = output
        self.targets = targets

    @classmethod
    def of(cls, item):
        return cls(*[getattr(item, name) for name in cls.FIELDS])


class LossInput(_Input):
    """loss: a tensor, of one element or of one for each item. batch_size: the items that its mean stands for; the
    number of losses if it is left out."""

    FIELDS = ("loss",)

    def __init__(self, loss, batch_size=None):
        self.loss = loss
        self.batch_size = loss.size if batch_size is None else batch_size

    @classmethod
    def of(cls, item):
        targets = getattr(item, "targets", None)
        shape = getattr(targets, "shape", ())
        return cls(item.loss, shape[0] if shape else None)


class AccuracyInput(_Input):
    """output: scores (n, classes). targets: the indices of the right classes, (n,)."""


class ConfusionInput(_Input):
    """For tasks of several classes, output: scores (n, classes) and targets: indices (n,). For binary ones, output:
    probabilities (n,) or (n, 1), and targets: 0 and 1 of the same shape. For several labels, output: probabilities
    (n, labels) and targets: 0 and 1 of the same shape."""


class RankingInput(_Input):
    """output: scores (n,), (n, 1), or of two classes (n, 2), the higher the likelier. targets: 0 and 1, (n,)."""


class RegressionInput(_Input):
    """output: predictions. targets: the true values, of the same shape."""


class PerplexityInput(_Input):
    """output: scores (logits) (..., vocabulary). targets: the indices of the right tokens, (...)."""


class TextInput(_Input):
    """output: predicted texts, a list of str, or tokens (n, length) of integers. targets: the true ones, likewise; the
    lengths may differ."""


class ImageInput(_Input):
    """output: images (n, channels, height, width), of bytes too. targets: the true images, of the same shape."""


def class_indices(name, output, targets):
    """The targets (n,) of scores (n, classes). Raises ShapeError."""
    if output.ndim != 2 or targets.shape not in (output.shape[:1], (output.shape[0], 1)):
        raise ShapeError(
            "{} needs scores (n, classes) and the indices of classes (n,), found {} and {}".format(
                name, output.shape, targets.shape
            )
        )
    return targets.reshape(output.shape[:1])
