"""Which checkpoints are kept, and when training ends before its last epoch. All of it follows from the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import ArgumentError
from .history import History

DIRECTIONS = ("lowest", "highest")
SPLITS = ("train", "valid")


def check(direction: str, split: str) -> None:
    """Raise ArgumentError for other words than these."""
    if direction not in DIRECTIONS:
        raise ArgumentError(f"direction is 'lowest' or 'highest', found {direction!r}")
    if split not in SPLITS:
        raise ArgumentError(f"split is 'train' or 'valid', found {split!r}")


class Keep:
    """Base of the strategies: which of the epochs that have a checkpoint keep it. The last one always does."""

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        """Those of `epochs`, sorted, whose checkpoints stay."""
        raise NotImplementedError


class KeepAll(Keep):
    """Every checkpoint stays."""

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        return set(epochs)


class KeepLast(Keep):
    """Those of the last `count` epochs stay."""

    def __init__(self, count: int = 2) -> None:
        if count < 1:
            raise ArgumentError(f"at least one checkpoint is kept, found {count}")
        self.count = count

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        return set(epochs[-self.count :])


class KeepEvery(Keep):
    """Those of every `count`-th epoch stay."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ArgumentError(f"every 1st, 2nd, … epoch may be kept, found {count}")
        self.count = count

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        return {epoch for epoch in epochs if epoch % self.count == 0}


class KeepBest(Keep):
    """That of the epoch with the best value of a metric stays. direction: "lowest" or "highest"; split: "train" or
    "valid"."""

    def __init__(self, metric: str = "Loss", direction: str = "lowest", split: str = "valid") -> None:
        check(direction, split)
        self.metric, self.direction, self.split = metric, direction, split

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        best = history.best(self.split, self.metric, self.direction)
        return {best} & set(epochs) if best is not None else set()


class Composed(Keep):
    """What any of several strategies keeps stays. A list of strategies is one."""

    def __init__(self, strategies: Iterable[Keep]) -> None:
        self.strategies = list(strategies)

    def keep(self, epochs: Sequence[int], history: History) -> set[int]:
        return set().union(*(s.keep(epochs, history) for s in self.strategies))


class EarlyStopping:
    """Ends the training where a metric has not become better for `epochs` epochs.

    metric, direction, split: as for KeepBest; min_change: how much better counts.
    """

    def __init__(
        self,
        metric: str = "Loss",
        epochs: int = 3,
        direction: str = "lowest",
        split: str = "valid",
        min_change: float = 0.0,
    ) -> None:
        check(direction, split)
        if epochs < 1:
            raise ArgumentError(f"training goes on for at least one epoch without a better value, found {epochs}")
        self.metric, self.epochs, self.direction, self.split = metric, epochs, direction, split
        self.min_change = min_change

    def reason(self, history: History) -> str | None:
        """Why training should end now, or None."""
        sign = 1.0 if self.direction == "lowest" else -1.0
        best, at, last = float("inf"), 0, 0
        for epoch, value in history.of(self.split, self.metric).items():
            last = epoch
            if at == 0 or sign * value < best - self.min_change:
                best, at = sign * value, epoch
        if last - at < self.epochs:
            return None
        return f"{self.metric} ({self.split}) has not become better since epoch {at}, where it was {sign * best:.6g}"
