"""Strings and vocabularies: string_concat, string_split, string_normalizer, regex_full_match, tfidf, label_encode.

String tensors exist on the backends that hold Python objects (python, numpy). Semantics: the ONNX operators of these
names.
"""

from ... import dtypes
from ...dtypes.decimal import shortest
from ...errors import ArgumentError, DTypeError, ShapeError
from ..operands import alias, tensor
from ..overriding import one_backend


def _strings(x, what):
    x = tensor(x)
    if x.dtype is not dtypes.string:
        raise DTypeError("{} takes a string tensor, found {}".format(what, x.dtype))
    return x


#: function; ONNX StringConcat
@one_backend
def string_concat(a, b):
    """Each string of a followed by the string of b; the two broadcast."""
    from ...shapes import broadcast

    a, b = _strings(a, "string_concat"), _strings(b, "string_concat")
    shape = broadcast(a.shape, b.shape)
    backend = a.backend
    left, right = backend.to_list(backend.expand(a, shape)), backend.to_list(backend.expand(b, shape))
    return backend.from_list([s + t for s, t in zip(left, right)], dtypes.string, shape)


#: function; ONNX StringSplit; delimiter: str; maxsplit: int -> tuple[Tensor, Tensor]
def string_split(x, delimiter=None, maxsplit=None):
    """(pieces, count): x split at `delimiter` (runs of white space by default), at most `maxsplit` times.

    pieces has one more axis than x, padded with empty strings; count is int64 of x's shape.
    """
    x = _strings(x, "string_split")
    backend = x.backend
    limit = -1 if maxsplit is None else int(maxsplit)
    parts = [s.split(delimiter or None, limit) for s in backend.to_list(x)]
    width = max([len(p) for p in parts]) if parts else 0
    flat = []
    for p in parts:
        flat += p + [""] * (width - len(p))
    counts = backend.from_list([len(p) for p in parts], dtypes.int64, x.shape)
    return backend.from_list(flat, dtypes.string, x.shape + (width,)), counts


#: function; ONNX StringNormalizer; case_change: str; stopwords: Sequence[str]
def string_normalizer(x, case_change=None, is_case_sensitive=False, stopwords=()):
    """x (n,) or (1, n) without the stopwords, with its case changed.

    case_change: "LOWER", "UPPER" or None (ONNX writes "NONE"). is_case_sensitive: whether stopwords are compared
    case-sensitively. If nothing is left, the result is one empty string.
    """
    if case_change not in (None, "NONE", "LOWER", "UPPER"):
        raise ArgumentError(
            "string_normalizer: case_change is 'LOWER', 'UPPER' or None, found {!r}".format(case_change)
        )
    x = _strings(x, "string_normalizer")
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ShapeError("string_normalizer takes (n,) or (1, n), found {}".format(x.shape))
    stops = {w if is_case_sensitive else w.lower() for w in stopwords}
    kept = [s for s in x.backend.to_list(x) if (s if is_case_sensitive else s.lower()) not in stops]
    if case_change == "LOWER":
        kept = [s.lower() for s in kept]
    elif case_change == "UPPER":
        kept = [s.upper() for s in kept]
    kept = kept or [""]
    return x.backend.from_list(kept, dtypes.string, x.shape[:-1] + (len(kept),))


#: function; pad_value: str; separators: Sequence[str]; expression: str | None; mark: bool; shortest: int
def tokenize(x, pad_value, separators=(), expression=None, mark=False, shortest=1):
    """The tokens of each string of x (n,) or (batch, n): strings of shape (..., most tokens), padded with `pad_value`.

    Tokens are the matches of the regular expression `expression`, or the text between matches of the separators, which
    split one after the other; the single separator "" makes every character a token. Tokens of fewer
    than `shortest` characters are dropped. mark: "\x02" before the first token and "\x03" after the last.
    com.microsoft's Tokenizer, as onnxruntime computes it; the syntax and the limits are those of patterns.py.
    Raises ArgumentError for what is no regular expression.
    """
    from .patterns import matcher

    x = _strings(x, "tokenize")
    if x.ndim not in (1, 2):
        raise ShapeError("tokenize takes (n,) or (batch, n), found {}".format(x.shape))
    found = []
    for text in x.backend.to_list(x):
        if expression is not None:
            tokens = [text[a:b] for a, b in matcher(expression).spans(text)]
        elif list(separators) == [""]:
            tokens = list(text)
        else:
            tokens = [text]
            for separator in separators:
                tokens = [part for token in tokens for part in _between(matcher(separator), token)]
        found.append([t for t in tokens if t and len(t) >= shortest])
    most = max([len(tokens) for tokens in found] + [0])
    if not most:
        shape = x.shape if x.size else x.shape[:-1]
        return x.backend.from_list([], dtypes.string, shape + (0,))
    if mark:
        found, most = [["\x02"] + tokens + ["\x03"] for tokens in found], most + 2
    items = [t for tokens in found for t in tokens + [pad_value] * (most - len(tokens))]
    return x.backend.from_list(items, dtypes.string, x.shape + (most,))


def _between(separator, text):
    """The text between the matches of a separator."""
    parts, end = [], 0
    for start, stop in separator.spans(text):
        if stop > start:
            parts.append(text[end:start])
            end = stop
    return parts + [text[end:]]


#: function; ONNX RegexFullMatch; pattern: str
def regex_full_match(x, pattern):
    """bool: whether each whole string matches `pattern`, of RE2's syntax (patterns.py). Raises ArgumentError for what
    is no regular expression."""
    from .patterns import matcher

    x = _strings(x, "regex_full_match")
    found = matcher(pattern)
    return x.backend.from_list([found.fullmatch(s) for s in x.backend.to_list(x)], dtypes.bool, x.shape)


def _vocabulary(pool, counts, low, high):
    """n-gram -> its position among all n-grams of the pool, for the lengths low to high."""
    grams, number = {}, 0
    for i in range(len(counts)):
        stop = counts[i + 1] if i + 1 < len(counts) else len(pool)
        for start in range(counts[i], stop, i + 1):
            if low <= i + 1 <= high:
                grams[tuple(pool[start : start + i + 1])] = number
            number += 1
    return grams


#: function; ONNX TfIdfVectorizer; pool: Sequence[int | str]; ngram_counts: Sequence[int];
#:   ngram_indexes: Sequence[int]; weights: Sequence[float] | None; mode: str; min_gram_length: int;
#:   max_gram_length: int; max_skip_count: int
def tfidf(x, pool, ngram_counts, ngram_indexes, weights, mode, min_gram_length, max_gram_length, max_skip_count):
    """Counts of the pool's n-grams in each row of x (n,) or (batch, n): float32 (..., max(ngram_indexes) + 1).

    Up to max_skip_count elements may be skipped between the elements of an n-gram. mode "TF" counts, "IDF" gives the
    weight of each n-gram that occurs, "TFIDF" count times weight. ngram_counts: where in pool the n-grams of each
    length start.
    """
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ArgumentError("tfidf: mode is 'TF', 'IDF' or 'TFIDF', found {!r}".format(mode))
    x = tensor(x)
    if x.ndim > 2:
        raise ShapeError("tfidf takes (n,) or (batch, n), found {}".format(x.shape))
    width = max(ngram_indexes) + 1
    grams = _vocabulary(list(pool), list(ngram_counts), min_gram_length, max_gram_length)
    values = x.backend.to_list(x)
    length = x.shape[-1] if x.shape else 1
    rows = x.shape[0] if x.ndim == 2 else 1
    out = [0.0] * (rows * width)
    for r in range(rows):
        row = values[r * length : (r + 1) * length]
        for n in range(max(min_gram_length, 1), min(max_gram_length, length, len(ngram_counts)) + 1):
            # A single element has nothing to skip, so it counts once.
            for step in range(1, (min(max_skip_count + 1, length) if n > 1 else 1) + 1):
                for start in range(length - (n - 1) * step):
                    found = grams.get(tuple([row[start + i * step] for i in range(n)]))
                    if found is not None:
                        out[r * width + ngram_indexes[found]] += 1.0
    if mode != "TF":
        for i in range(len(out)):
            weight = weights[i % width] if weights else 1.0
            out[i] = weight * (out[i] if mode == "TFIDF" else float(out[i] > 0))
    return x.backend.from_list(out, dtypes.float32, x.shape[:-1] + (width,) if x.ndim == 2 else (width,))


#: function; ai.onnx.ml LabelEncoder; keys: Sequence[Any]; values: Sequence[Any]; default: Any
def label_encode(x, keys, values, default, dtype):
    """Each element of x looked up: values[i] where it equals keys[i], else `default`; a NaN key finds NaN."""
    x = tensor(x)
    table = dict(zip(keys, values))
    nan = default
    for key, value in zip(keys, values):
        if key != key:
            nan = value
    out = [nan if v != v else table.get(v, default) for v in x.backend.to_list(x)]
    return x.backend.from_list(out, dtypes.dtype(dtype), x.shape)


#: function; ONNX Cast
def as_strings(x):
    """x as a string tensor, with numbers formatted as by ONNX Cast ("1", "0.5", "NaN", "INF")."""
    x = tensor(x)
    if x.dtype is dtypes.string:
        return alias(x)
    return x.backend.from_list([_written(v, x.dtype) for v in x.backend.to_list(x)], dtypes.string, x.shape)


def _written(value, dtype):
    if not dtype.is_float:
        return str(int(value)) if dtype.is_integer else str(bool(value))
    if value != value:
        return "NaN"
    if value in (float("inf"), -float("inf")):
        return "INF" if value > 0 else "-INF"
    return str(shortest(value, dtype))


#: function; ONNX Cast
def as_numbers(x, dtype):
    """A string tensor parsed as numbers of `dtype` ("1e-3", "inf", "NaN", "True"). Raises DTypeError for any other
    string."""
    x = _strings(x, "as_numbers")
    dtype = dtypes.dtype(dtype)
    out = []
    for s in x.backend.to_list(x):
        try:
            if dtype.is_bool:
                out.append(s.strip().lower() not in ("false", "0", ""))
            elif dtype.is_integer and "." not in s and "e" not in s.lower():
                out.append(int(s))
            else:
                out.append(float(s))
        except ValueError:
            raise DTypeError("the string {!r} is not a number".format(s))
    if dtype.is_integer:
        out = [int(v) for v in out]
    return x.backend.from_list(out, dtype, x.shape)
