"""What a person sees of a training: a dashboard in a terminal, plain lines, or a cell of a notebook."""

from __future__ import annotations

import sys
from typing import Any

from ....errors import ArgumentError
from ....host.extras import missing
from ....host.tensors.showing import in_notebook


def renderer(choice: Any) -> Any:
    """The renderer of a name: "auto", "dashboard", "plain" or "notebook"; None and objects are returned as they are.

    Raises ArgumentError for another name, MissingLibraryError for a dashboard without rich.
    """
    if not isinstance(choice, str):
        return choice
    if choice == "auto":
        choice = _best()
    if choice == "plain":
        from .plain import PlainRenderer

        return PlainRenderer()
    if choice == "dashboard":
        from .dashboard import Dashboard

        return Dashboard()
    if choice == "notebook":
        from .notebook import NotebookRenderer

        return NotebookRenderer()
    raise ArgumentError(f"renderer is 'auto', 'dashboard', 'plain', 'notebook', an Events or None, found {choice!r}")


def _best() -> str:
    if in_notebook():
        return "notebook"
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return "dashboard" if terminal and not missing(["rich"]) else "plain"
