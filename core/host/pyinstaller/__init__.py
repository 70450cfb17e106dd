"""PyInstaller's hooks for emberlet, found through the entry point `pyinstaller40` (PyInstaller's manual, "Providing
PyInstaller Hooks with your Package")."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """The folder of the hooks."""
    return [str(Path(__file__).parent)]
