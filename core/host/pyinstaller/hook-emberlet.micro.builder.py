"""PyInstaller's hook for emberlet.micro.builder, whose modules are imported by name."""

from PyInstaller.utils.hooks import collect_submodules

hiddenimports = collect_submodules("emberlet.micro.builder")
