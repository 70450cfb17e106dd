"""The bytes of a file that is read in parts: of any size, in the memory of one part."""


class FileParts:
    """The bytes of a binary file, each slice read on demand. Raises OSError."""

    def __init__(self, path):
        self._path = path
        self._file = open(path, "rb")
        self._size = self._file.seek(0, 2)

    def __len__(self):
        return self._size

    def __getitem__(self, part):
        return self.read(part.start or 0, min(part.stop, self._size) - (part.start or 0))

    def read(self, start, count):
        """`count` bytes from `start` on. Raises FormatError if the file ends earlier."""
        self._file.seek(start)
        data = bytearray(count)
        view = memoryview(data)
        at = 0
        while at < count:
            got = self._file.readinto(view[at:] if at else data)
            if not got:
                from ..errors import FormatError

                raise FormatError("{}: ends {} bytes too early".format(self._path, count - at))
            at += got
        return view

    def close(self):
        """Closes the file."""
        self._file.close()
