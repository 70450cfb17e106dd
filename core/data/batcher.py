"""StackBatcher: items to a batch, by stacking what they consist of."""

from ..errors import ShapeError
from ..functional.arrays import asarray
from .errors import DataError


class StackBatcher:
    """The batcher that a DataLoader has by default.

    Numbers, arrays, tensors and lists of these become a tensor with a new first axis, the batch's; tuples (named ones
    too) and dicts become one tuple or dict of these; texts, bytes and None become lists. backend: of the tensors.
    """

    def __init__(self, backend=None):
        self.backend = backend

    def batch(self, items):
        """Raises DataError if the items do not have the same parts and shapes."""
        return self._stacked(items, "")

    def gathered(self, dataset, indices):
        """The batch of a data set that gives several items at once, as arrays; None of another."""
        if hasattr(dataset, "stacked"):
            found = dataset.stacked(indices)
        elif hasattr(dataset, "__array_interface__"):
            found = dataset[indices]
        else:
            return None
        return self._tensors(found)

    def _tensors(self, found):
        if isinstance(found, dict):
            return {name: self._tensors(found[name]) for name in found}
        if isinstance(found, tuple):
            return _like(found, [self._tensors(x) for x in found])
        return self._stacked(found, "") if isinstance(found, list) else asarray(found, backend=self.backend)

    def _stacked(self, items, where):
        if not items:
            raise DataError("a batch of no items cannot be stacked")
        first = items[0]
        if isinstance(first, dict):
            for x in items:
                if not isinstance(x, dict) or x.keys() != first.keys():
                    raise DataError("{}items with different keys: {} and {}".format(where, list(first), _keys(x)))
            return {k: self._stacked([x[k] for x in items], "{}[{!r}]: ".format(where[:-2], k)) for k in first}
        if isinstance(first, tuple):
            for x in items:
                if not isinstance(x, tuple) or len(x) != len(first):
                    raise DataError("{}tuples of different length: {!r} and {!r}".format(where, first, x))
            parts = [self._stacked([x[k] for x in items], "{}[{}]: ".format(where[:-2], k)) for k in range(len(first))]
            return _like(first, parts)
        if isinstance(first, list):
            return self._lists(items, where)
        if _is_text(first):
            for x in items:
                if not _is_text(x):
                    raise DataError("{}{!r} and {!r} do not stack; fill in or leave out one".format(where, first, x))
            return list(items)
        return self._numbers(items, where)

    def _lists(self, items, where):
        """Lists of the same length: what they hold is stacked, with an axis for the place in the list."""
        for x in items:
            if not isinstance(x, list):
                raise DataError("{}{!r} among lists; make a list of it".format(where, x))
        lengths = {len(x) for x in items}
        if len(lengths) > 1:
            raise DataError(
                "{}lists of {} and {} elements do not stack; pad them in a batcher of your own".format(
                    where, min(lengths), max(lengths)
                )
            )
        size = len(items[0])
        if not size:
            return asarray([[] for _ in items], backend=self.backend)
        flat = self._stacked([x for item in items for x in item], where)
        return _unflattened(flat, len(items), size)

    def _numbers(self, items, where):
        for k in range(len(items)):
            x = items[k]
            if _is_text(x) or isinstance(x, (dict, tuple, list)):
                raise DataError("{}{!r} among numbers, in row {} of the batch".format(where, x, k))
        first = items[0]
        try:
            if hasattr(first, "backend"):
                from ..functional.movement.joining import stack

                found = stack(items)
                return found if self.backend is None else found.to(self.backend)
            if hasattr(first, "__array__"):  # of NumPy, and what NumPy can read, such as PyTorch's
                from ..host.data.arrays import stacked

                return asarray(stacked(items), backend=self.backend)
            return asarray(items, backend=self.backend)
        except (ShapeError, ValueError) as error:
            shapes = " and ".join(sorted({str(getattr(x, "shape", ())) for x in items})[:3])
            raise DataError(
                "{}items of shapes {} do not stack; make them equal in a batcher of your own".format(where, shapes),
                None,
                error,
            )
        except TypeError as error:
            raise DataError(
                "{}{} is not stacked; pass a batcher of your own".format(where, type(first).__name__), None, error
            )


def _is_text(x):
    return x is None or isinstance(x, (str, bytes))


def _keys(x):
    return list(x) if isinstance(x, dict) else type(x).__name__


def _like(first, parts):
    """A tuple of the class of `first`."""
    return tuple(parts) if type(first) is tuple else type(first)(*parts)


def _unflattened(x, n, size):
    if isinstance(x, dict):
        return {k: _unflattened(x[k], n, size) for k in x}
    if isinstance(x, tuple):
        return _like(x, [_unflattened(v, n, size) for v in x])
    if isinstance(x, list):
        return [x[i * size : (i + 1) * size] for i in range(n)]
    return x.reshape((n, size) + x.shape[1:])
