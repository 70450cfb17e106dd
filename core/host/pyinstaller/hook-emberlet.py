"""PyInstaller's hook for emberlet: most modules are imported by name when first used, which its analysis cannot see."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_NOT_AT_RUN_TIME = ("emberlet.host.pyinstaller", "emberlet.host.stubs")

hiddenimports = collect_submodules("emberlet", filter=lambda name: not name.startswith(_NOT_AT_RUN_TIME))
datas = collect_data_files("emberlet")
