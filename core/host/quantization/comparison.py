"""How a quantized model's outputs differ from the float model's, and how many labels each gets right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EmberletError, UnsupportedError

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Comparison:
    """rms, worst: root mean square and largest difference of all float outputs, each relative to its range over the
    samples. same_best: the share of the same classes in the first output; None if it names none. accuracy: the share of
    labels that the quantized model gets right; None without labels.
    """

    rms: float
    worst: float
    same_best: float | None
    accuracy: float | None = None

    @property
    def share(self) -> float:
        """What --fail-below compares: the accuracy, else the share with the same class, else one less the rms."""
        if self.accuracy is not None:
            return self.accuracy
        return 1 - self.rms if self.same_best is None else self.same_best


def compare(float_outputs: Outputs, outputs: Outputs, labels: NDArray[Any] | None = None) -> Comparison:
    """Compare the outputs, by name, of both models for the same rows. Where only one of them is finite, or they are
    other infinities, they differ by the whole range. Raises EmberletError for labels of another number,
    UnsupportedError for outputs whose shapes depend on the values."""
    squares, count, worst = 0.0, 0, 0.0
    for name, wanted in float_outputs.items():
        found = outputs[name]
        if wanted.shape != found.shape:
            raise UnsupportedError(
                f"the output {name} has another shape when quantized, {found.shape} instead of {wanted.shape}, so it "
                "cannot be compared; take it out of the model's outputs"
            )
        if wanted.dtype.kind != "f" or not wanted.size:
            continue
        a, b = wanted.astype(np.float64), found.astype(np.float64)
        finite = a[np.isfinite(a)]
        span = float(np.ptp(finite) if finite.size else 0.0) or 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(a - b) / span
        off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isfinite(off), off, 1.0))
        squares, count = squares + float(np.sum(off**2)), count + off.size
        worst = max(worst, float(off.max()))
    rms = (squares / count) ** 0.5 if count else 0.0
    first, other = next(iter(float_outputs.values())), next(iter(outputs.values()))
    same = float(np.mean(classes(first) == classes(other))) if is_classes(first) else None
    return Comparison(rms, worst, same, None if labels is None else accuracy(other, labels))


def is_classes(x: NDArray[Any]) -> bool:
    """Whether an output names classes: integers, or numbers of which the largest counts."""
    return x.dtype.kind in "iu" or (x.ndim >= 2 and x.shape[_axis(x)] > 1)


def classes(x: NDArray[Any]) -> NDArray[Any]:
    """The class of each row, or of each place of a map: the integer, or the place of the largest element."""
    return x if x.dtype.kind in "iu" else x.argmax(_axis(x))


def _axis(x: NDArray[Any]) -> int:
    """The axis of the classes: the last; of maps, (n, classes, rows, columns) or classes last, the shorter of both."""
    return 1 if x.ndim >= 4 and x.shape[1] <= x.shape[-1] else -1


def check_labels(output: NDArray[Any], labels: NDArray[Any]) -> None:
    """Raise EmberletError for labels that are none of the classes of an output: of a single number 0 and 1, of integers
    all from 0 on."""
    count = None if output.dtype.kind in "iu" else output.shape[_axis(output)] if is_classes(output) else 2
    flat = labels.reshape(-1)
    wrong = (flat < 0) | (flat != np.floor(flat)) | (False if count is None else flat >= count)
    if wrong.any():
        at = int(wrong.argmax())
        which = "" if count is None else f" of {count:,}, 0 to {count - 1:,}"
        raise EmberletError(
            f"label {at} is {flat[at]}, none of the first output's classes{which}; leave out the rows without a class, "
            "and number the others from 0"
        )


def accuracy(output: NDArray[Any], labels: NDArray[Any]) -> float:
    """The share of rows whose class is the label; of a single number, whether it is above a half. Raises
    EmberletError for labels of another number."""
    found = classes(output) if is_classes(output) else output > 0.5
    if found.size != labels.size:
        raise EmberletError(f"{labels.size} labels for {found.size} classes of the first output; give each one label")
    return float(np.mean(found.reshape(-1) == labels.reshape(-1))) if labels.size else 0.0
