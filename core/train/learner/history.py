"""The values of every metric in every epoch, from which strategies decide."""

from __future__ import annotations

from typing import Any


class History:
    """values: {"train" or "valid": {metric: {epoch: value}}}."""

    def __init__(self, values: dict[str, dict[str, dict[int, float]]] | None = None) -> None:
        self.values: dict[str, dict[str, dict[int, float]]] = values or {"train": {}, "valid": {}}

    def add(self, split: str, epoch: int, values: dict[str, float]) -> None:
        """Note the values of an epoch."""
        for name, value in values.items():
            self.values[split].setdefault(name, {})[epoch] = value

    def of(self, split: str, metric: str) -> dict[int, float]:
        """{epoch: value} of a metric, in order."""
        return dict(sorted(self.values[split].get(metric, {}).items()))

    def best(self, split: str, metric: str, direction: str) -> int | None:
        """The epoch with the best value, the first of equals; None if the metric has none."""
        found = {epoch: value for epoch, value in self.of(split, metric).items() if value == value}
        if not found:
            return None
        chosen = min(found.values()) if direction == "lowest" else max(found.values())
        return next(epoch for epoch, value in found.items() if value == chosen)

    def to_record(self) -> dict[str, Any]:
        """As JSON: epochs as text."""
        return {
            split: {name: {str(epoch): value for epoch, value in values.items()} for name, values in metrics.items()}
            for split, metrics in self.values.items()
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> History:
        """What `to_record` gave."""
        return cls(
            {
                split: {name: {int(epoch): v for epoch, v in values.items()} for name, values in metrics.items()}
                for split, metrics in record.items()
            }
        )
