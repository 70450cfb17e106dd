"""Operators on strings."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("StringConcat")
def string_concat(c: Call) -> Any:
    return F.string_concat(c.tensor(0), c.tensor(1))


@handles("StringSplit")
def string_split(c: Call) -> Any:
    return F.string_split(c.tensor(0), c.get("delimiter"), c.get("maxsplit"))


@handles("StringNormalizer")
def string_normalizer(c: Call) -> Any:
    action = c.get("case_change_action", "NONE")
    return F.string_normalizer(c.tensor(0), action, c.get("is_case_sensitive", 0), c.get("stopwords", []))


@handles("RegexFullMatch")
def regex_full_match(c: Call) -> Any:
    return F.regex_full_match(c.tensor(0), c.get("pattern"))


@handles("TfIdfVectorizer")
def tfidf(c: Call) -> Any:
    return F.tfidf(
        c.tensor(0),
        c.get("pool_int64s") or c.get("pool_strings"),
        c.get("ngram_counts"),
        c.get("ngram_indexes"),
        c.get("weights"),
        c.get("mode"),
        c.get("min_gram_length"),
        c.get("max_gram_length"),
        c.get("max_skip_count"),
    )
