"""The summary at the end of a training: the best and the worst value of each metric, and where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .learner import Learner


class Summary:
    """rows: (split, metric, lowest value, its epoch, highest value, its epoch, last value)."""

    def __init__(self, learner: Learner) -> None:
        self.facts = learner.facts()
        self.epochs = max((max(v) for m in learner.history.values.values() for v in m.values() if v), default=0)
        self.rows = []
        for split in ("train", "valid"):
            for name in learner.history.values[split]:
                found = learner.history.of(split, name)
                low, high = (learner.history.best(split, name, d) for d in ("lowest", "highest"))
                if low is not None and high is not None:
                    self.rows.append((split, name, found[low], low, found[high], high, found[max(found)]))

    def __str__(self) -> str:
        lines = [
            f"{self.facts['model']}: {self.facts['parameters']:,} parameters, {self.facts['optimizer']} on "
            f"{self.facts['backend']}, {self.epochs} epochs"
        ]
        head = ("split", "metric", "lowest", "epoch", "highest", "epoch", "last")
        table = [head, *((s, m, number(a), str(i), number(b), str(j), number(c)) for s, m, a, i, b, j, c in self.rows)]
        if len(table) > 1:
            widths = [max(len(row[i]) for row in table) for i in range(len(head))]
            for row in table:
                cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
                lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join(lines)


def number(value: float) -> str:
    """A value for people: four significant digits."""
    return f"{value:.4g}"
