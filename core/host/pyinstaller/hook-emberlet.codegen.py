"""PyInstaller's hook for emberlet.codegen, whose modules are imported by name."""

from PyInstaller.utils.hooks import collect_submodules

hiddenimports = collect_submodules("emberlet.codegen")
