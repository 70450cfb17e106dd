"""Packages whose names are imported from their files on first use."""


def lazy(space, files):
    """(`__getattr__`, `__dir__`) of such a package. space: its globals. files: module below emberlet -> the names, with
    blanks between, that it gives; of a package that is a name itself, the same name."""

    def member(name):
        for file in files:
            if name in files[file].split():
                found = __import__("emberlet." + file, None, None, ("*",))
                if file.split(".")[-1] != name:
                    found = getattr(found, name)
                if hasattr(memoryview, "cast"):  # CPython, where a slip in a keyword is answered with the nearest
                    found = __import__("emberlet.host.interface.keywords", None, None, ("guard",)).guard(found)
                space[name] = found
                return found
        from .errors.absent import find

        return find(space["__name__"], name)

    def names():
        return sorted([name for given in files.values() for name in given.split()])

    return member, names
