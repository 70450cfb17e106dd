"""The messages of loading weights: what was loaded, or why the weights do not fit the module."""

from ..errors import LoadError


def refuse_load(module, wrong, missing, unexpected):
    """Raise LoadError with every problem: lines on values that do not fit, and names that are missing or left over."""
    lines = ["the weights do not fit {}; nothing was loaded".format(type(module).__name__)]
    if missing:
        lines.append("  missing: " + ", ".join(sorted(missing)))
    if unexpected:
        lines.append("  unexpected: " + ", ".join(sorted(unexpected)))
    raise LoadError("\n".join(lines + ["  " + w for w in wrong]))


def summary(report):
    """A LoadReport in one line."""
    return "LoadReport({} loaded, {} missing, {} unexpected)".format(
        len(report.loaded), len(report.missing), len(report.unexpected)
    )
