"""Regular expressions of models: matched by RE2 where the package google-re2 is installed, else by nfa.py.

Both need time in proportion to the text, whatever the pattern, and have RE2's syntax, which onnxruntime has too:
https://github.com/google/re2/wiki/Syntax. Of several matches at one place the longest counts, as in its Tokenizer.
"""

from ...errors import ArgumentError

LONGEST = 1 << 16  # characters of a pattern
_known = {}  # pattern -> its matcher, of the last few


def matcher(pattern):
    """An object with `fullmatch(text)`, whether all of a text matches, and `spans(text)`, the (start, end) of the
    matches that do not overlap. Raises ArgumentError for a pattern that is not one, or is too large."""
    if not isinstance(pattern, str):
        raise TypeError("a pattern is a str")
    if len(pattern) > LONGEST:
        raise ArgumentError("the pattern has {} characters; at most {} are supported".format(len(pattern), LONGEST))
    found = _known.get(pattern)
    if found is None:
        try:
            found = _made(pattern)
        except (ValueError, RuntimeError, OverflowError) as error:  # RuntimeError: one that nests too deeply
            raise ArgumentError("the pattern {!r} is not a regular expression: {}".format(pattern[:80], error))
        if len(_known) > 15:
            _known.clear()
        _known[pattern] = found
    return found


def _made(pattern):
    try:
        import re2
    except ImportError:
        from .nfa import Matcher

        return Matcher(pattern)
    return _RE2(re2, pattern)


class _RE2:
    """A pattern compiled by RE2."""

    def __init__(self, re2, pattern):
        options = re2.Options()
        options.longest_match = True
        options.log_errors = False
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            said = error.args[0] if error.args else ""
            raise ValueError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))

    def fullmatch(self, text):
        return self._compiled.fullmatch(text) is not None

    def spans(self, text):
        return [match.span() for match in self._compiled.finditer(text)]
