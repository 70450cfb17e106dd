"""Errors of recognized texts: the edits that turn them into the true ones, for each character or word."""

from ...errors import ArgumentError
from .base import FormatOptions, Numeric
from .inputs import TextInput


class CharErrorRate(Numeric):
    """The character error rate in percent: insertions, deletions and substitutions for each character of the true texts
    (it may be above 100). Tokens (n, length) count as characters, but for those that are `pad_token`."""

    Input = TextInput
    name = "Character error rate"
    higher_is_better = False

    def __init__(self, pad_token=None):
        self.pad_token = pad_token
        self.clear()

    def update(self, item, metadata=None):
        """item: a TextInput. Raises ArgumentError if there are not as many texts as true ones."""
        item = self.input_of(item)
        found, true = self._texts(item.output), self._texts(item.targets)
        if len(found) != len(true):
            raise ArgumentError("{}: {} texts for {} true ones".format(self.name, len(found), len(true)))
        edits = sum([edit_distance(a, b) for a, b in zip(found, true)])
        length = sum([len(x) for x in true])
        self._edits += edits
        self._length += length
        return FormatOptions(self.name).unit("%").entry(self.value(), _percent(edits, length), length)

    def _texts(self, texts):
        if hasattr(texts, "tolist"):
            return [[t for t in row if t != self.pad_token] for row in texts.tolist()]
        return [self._parts(text) for text in texts]

    def _parts(self, text):
        return text

    def value(self):
        return _percent(self._edits, self._length)

    def clear(self):
        self._edits = 0
        self._length = 0


class WordErrorRate(CharErrorRate):
    """The word error rate in percent: insertions, deletions and substitutions for each word of the true texts, divided
    at white space (it may be above 100). Tokens (n, length) count as words, but for those that are `pad_token`."""

    name = "Word error rate"

    def _parts(self, text):
        return text.split()


def _percent(edits, length):
    if not length:
        return float("inf") if edits else float("nan")
    return 100.0 * edits / length


def edit_distance(a, b):
    """The fewest insertions, deletions and substitutions that turn the sequence a into b (Levenshtein 1966)."""
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        corner, row[0] = row[0], i + 1
        for j in range(len(b)):
            change = corner + (a[i] != b[j])
            corner = row[j + 1]
            row[j + 1] = min(change, corner + 1, row[j] + 1)
    return row[-1]
