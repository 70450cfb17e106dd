"""The kernels of a file in viper as functions in bytecode, for ports without its machine code: the same source without
decorators. A pointer by an offset in bytes is a slice, so that its base has to be a memoryview."""


class Kernels:
    """Its attributes are the functions."""


def in_bytecode(module):
    """The kernels of the file MODULE.py beside this one. Raises OSError if only its compiled form is there."""
    kernels, names, lines = Kernels(), {"ptr8": None, "ptr16": None, "ptr32": None}, []
    for line in _source(__file__[: __file__.rfind("bytecode")] + module + ".py"):
        if line.startswith("@"):  # one by one, which takes less memory
            exec("".join(lines), names)
            lines = []
        elif not line.startswith("import "):
            lines.append(_line(line))
    exec("".join(lines), names)
    for name in names:
        setattr(kernels, name, names[name])
    return kernels


def _source(path):
    """The lines of a file."""
    try:
        return __loader__.get_data(path).decode().splitlines(True)  # also in a zip
    except NameError:
        return open(path, encoding="utf-8")  # MicroPython


def _line(line):
    at = line.find("= ptr")
    if at < 0:
        return line
    bits, base, offset = line[at + 5 : line.rfind(")")].replace("(int(", ") + ", 1).split(") + ", 2)
    return "{}= {}[{} >> {} :]\n".format(line[:at], base, offset, int(bits) >> 4)
