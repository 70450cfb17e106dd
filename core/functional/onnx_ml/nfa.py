"""A matcher of regular expressions whose time is bounded: all the ways to match are followed at once (Thompson 1968).

It has RE2's syntax but for \\p classes, \\C and the names of scripts, and needs no package. A step visits every
instruction of the pattern once for each character, so a call takes at most WORK of them; google-re2 has no such limit.
"""

from ...errors import ArgumentError
from .pattern_syntax import BEGIN, BORDER, CHAR, END, FIRST, JUMP, LAST, MATCH, NO_BORDER, SPLIT, program

WORK = 1 << 25  # instructions visited in one call: some seconds


class Matcher:
    """A compiled pattern. Raises ValueError if it is not one."""

    def __init__(self, pattern):
        self._program = program(pattern)

    def fullmatch(self, text):
        """Whether the whole text matches. Raises ArgumentError past WORK."""
        left = [WORK]
        now = {}
        self._add(now, 0, 0, text, 0, left)
        for at in range(len(text)):
            now = self._step(now, text, at, left)
            if not now:
                return False
        return len(self._program) - 1 in now

    def spans(self, text):
        """(start, end) of the leftmost longest matches, from left to right. Raises ArgumentError past WORK."""
        found, at, left = [], 0, [WORK]
        while at <= len(text):
            span = self._search(text, at, left)
            if span is None:
                break
            found.append(span)
            at = max(span[1], span[0] + 1) if span[0] == span[1] else span[1]
        return found

    def _search(self, text, at, left):
        best, now, last = None, {}, len(self._program) - 1
        while True:
            if best is None:
                self._add(now, 0, at, text, at, left)
            start = now.get(last)
            if start is not None and (best is None or start <= best[0]):
                best = (start, at)
            if best is not None:
                now = {i: s for i, s in now.items() if s <= best[0]}
            if at == len(text) or (not now and best is not None):
                return best
            now = self._step(now, text, at, left)
            at += 1

    def _step(self, now, text, at, left):
        """{instruction: where its match began} after one more character."""
        code, then = ord(text[at]), {}
        for i, start in now.items():
            what = self._program[i]
            if what[0] == CHAR and _within(what[1], what[2], code):
                self._add(then, i + 1, start, text, at + 1, left)
        return then

    def _add(self, states, i, start, text, at, left):
        """Add an instruction and those that follow it without a character."""
        todo = [i]
        while todo:
            i = todo.pop()
            left[0] -= 1
            if i in states and states[i] <= start:
                continue
            if left[0] < 0:
                raise ArgumentError("a regular expression takes too long here: pip install google-re2")
            states[i] = start
            kind = self._program[i][0]
            if kind == SPLIT:
                todo += [i + self._program[i][1], i + self._program[i][2]]
            elif kind == JUMP:
                todo.append(i + self._program[i][1])
            elif kind not in (CHAR, MATCH) and _holds(kind, text, at):
                todo.append(i + 1)


def _within(negated, ranges, code):
    for low, high in ranges:
        if low <= code <= high:
            return not negated
    return negated


def _holds(kind, text, at):
    """Whether an assertion holds before the character at `at`."""
    if kind == FIRST:
        return at == 0
    if kind == LAST:
        return at == len(text)
    if kind == BEGIN:
        return at == 0 or text[at - 1] == "\n"
    if kind == END:
        return at == len(text) or text[at] == "\n"
    border = _word(text, at - 1) != _word(text, at)
    return border if kind == BORDER else kind == NO_BORDER and not border


def _word(text, at):
    if not 0 <= at < len(text):
        return False
    c = text[at]
    return c == "_" or "0" <= c <= "9" or "a" <= c <= "z" or "A" <= c <= "Z"
