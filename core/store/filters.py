"""Selecting tensors of a store or module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..errors import EmberletError

Predicate = Callable[[str, str], bool]


class Filter:
    """Selects tensors whose name matches one of `regex` or equals one of `exact`, or for which one of `where` is true.

    regex: patterns for `re.search`; exact: whole names; where: functions of (name, container), where container lists
    the classes of the enclosing modules ("Net.Linear"; "" without a module). Each may be one or several. Without any,
    everything is selected. Raises EmberletError for a malformed pattern.
    """

    def __init__(
        self,
        regex: str | Iterable[str] = (),
        exact: str | Iterable[str] = (),
        where: Predicate | Iterable[Predicate] = (),
    ) -> None:
        patterns = [regex] if isinstance(regex, str) else list(regex)
        try:
            self.patterns = [re.compile(p) for p in patterns]
        except (re.error, RecursionError, OverflowError) as error:
            raise EmberletError(f"a filter's pattern is malformed: {error}") from None
        self.exact = {exact} if isinstance(exact, str) else set(exact)
        self.where = [where] if callable(where) else list(where)

    def __call__(self, name: str, container: str = "") -> bool:
        if not (self.patterns or self.exact or self.where):
            return True
        if name in self.exact or any(p.search(name) for p in self.patterns):
            return True
        return any(f(name, container) for f in self.where)

    def __or__(self, other: Filter) -> Filter:
        both = Filter(exact=self.exact | other.exact, where=self.where + other.where)
        both.patterns = self.patterns + other.patterns
        return both


Filtering: TypeAlias = Filter | str | Iterable[str] | Predicate | None


def filter_of(given: Filtering) -> Filter:
    """A Filter from a Filter, patterns, a function of (name, container), or None, which selects everything."""
    if given is None or isinstance(given, Filter):
        return given or Filter()
    return Filter(where=given) if callable(given) else Filter(regex=given)
