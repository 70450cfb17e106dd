"""PyInstaller's hook for emberlet: most modules are imported by name when first used, which its analysis cannot see.

The packages that read ONNX or build for microcontrollers have their own hooks and are included only if a program
imports them. So are large packages that only some functions use, such as pyarrow.
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
excludedimports = ["datasets", "IPython", "llvmlite", "onnx", "onnxruntime", "pandas", "PIL", "pyarrow", "ray", "torch"]
datas = collect_data_files("emberlet")
