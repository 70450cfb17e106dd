"""PyInstaller's hook for emberlet.micro, whose kernels are compiled from their source, and whose files go to boards."""

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("emberlet.micro", include_py_files=True, includes=["*.py"])
