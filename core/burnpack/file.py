"""The bytes of a burnpack that is a file."""

import sys


def contents(path, zero_copy):
    """(bytes, path) of the file at path, or at path.bpk: see Burnpack.from_file."""
    path = str(path)
    try:
        data = _contents(path, zero_copy)
    except OSError:
        if "." in path.replace("\\", "/").split("/")[-1]:
            raise
        try:
            data = _contents(path + ".bpk", zero_copy)
        except OSError:
            data = None
        if data is None:
            raise
        path += ".bpk"
    return data, path


def _contents(path, zero_copy):
    """The bytes of the file at path: read slice by slice, mapped, in flash, or read."""
    if sys.implementation.name != "micropython":
        from ..host.files import FileBytes, map_file

        return map_file(path) if zero_copy else FileBytes(path)
    file = open(path, "rb")
    try:
        return memoryview(file)  # a file of ROMFS is a buffer: the flash itself
    except TypeError:
        pass
    try:
        size = file.seek(0, 2)
        if size >> 24:  # where MicroPython's memoryviews end
            from .parts import FileParts

            return FileParts(path)
        data = bytearray(size)
        file.seek(0)
        file.readinto(data)
        return data
    finally:
        file.close()
