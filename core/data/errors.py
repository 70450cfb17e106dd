"""The error of an item, or of a batch of them."""

from ..errors import EmberletError


class DataError(EmberletError):
    """An item that could not be read, or a batch that could not be made.

    index: the item's, None for a whole batch. `__cause__` is the error of the data set or of the batcher.
    """

    def __init__(self, message, index=None, cause=None):
        super().__init__(message)
        self.index = index
        self.__cause__ = cause

    def __reduce__(self):
        return (type(self), (self.args[0], self.index, self.__cause__))


def error_line(error):
    """An error in one line: its class and its message."""
    text = str(error)
    return "{}: {}".format(type(error).__name__, text) if text else type(error).__name__
