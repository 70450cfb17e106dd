"""What is said of weights that do not fit a module."""

from .errors import LoadError


def refuse_load(module, wrong, missing, unexpected):
    """Raise LoadError with every problem: lines on values that do not fit, and names that are missing or left over."""
    lines = ["the weights do not fit {}; nothing was loaded".format(type(module).__name__)]
    if missing:
        lines.append("  missing: " + ", ".join(sorted(missing)))
    if unexpected:
        lines.append("  unexpected: " + ", ".join(sorted(unexpected)))
    raise LoadError("\n".join(lines + ["  " + w for w in wrong]))
