"""Lists in messages: at most twenty lines or names, and the number of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST = 20
LONGEST = 600  # characters of one line


def listed(problems: Sequence[str], more: bool = False) -> str:
    """A line for each of the first twenty problems, and one that counts the rest. more: there may be further ones that
    were not looked for."""
    lines = ["- " + shortened(p) for p in problems[:MOST]]
    rest = len(problems) - MOST
    if rest > 0:
        lines.append(f"- and {rest} more" + (" at least: what follows was not read" if more else ""))
    return "\n".join(lines)


def names(found: Iterable[object]) -> str:
    """Names with commas between them: at most twenty, and the number of the rest."""
    every = [shortened(str(name), 100) for name in found]
    return ", ".join(every[:MOST]) + (f" and {len(every) - MOST} more" if len(every) > MOST else "")


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text from a file; a long one without its middle."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"
