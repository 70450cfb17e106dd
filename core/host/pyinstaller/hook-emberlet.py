"""PyInstaller's hook for emberlet: most modules are imported by name when first used, which its analysis cannot see.

The packages that read ONNX or build for microcontrollers have their own hooks and are included only if a program
imports them.
"""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_ON_DEMAND = (
    "emberlet.batch",
    "emberlet.codegen",
    "emberlet.host.cli",
    "emberlet.host.pyinstaller",
    "emberlet.micro.builder",
    "emberlet.wgpu_backend.browser",
)

hiddenimports = collect_submodules("emberlet", filter=lambda name: not name.startswith(_ON_DEMAND))
datas = collect_data_files("emberlet")
