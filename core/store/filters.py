"""Which tensors of a store or module are meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..errors import EmberletError

Predicate = Callable[[str, str], bool]


class Filter:
    """Tensors whose name one of `regex` is found in, or is one of `exact`, or for which one of `where` is true.

    regex: patterns of `re`, searched for; exact: whole names; where: functions of (name, container), the container
    being the classes of the modules around it ("Net.Linear"; "" where there is no module). Each is one or several.
    Without any, everything. Raises EmberletError for a pattern that `re` does not understand.
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
    """A Filter from one, from patterns, from a function of (name, container), or from None, which takes everything."""
    if given is None or isinstance(given, Filter):
        return given or Filter()
    return Filter(where=given) if callable(given) else Filter(regex=given)
