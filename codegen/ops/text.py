"""Strings and vocabularies. String tensors stay on the host: a backend without them refuses."""

from __future__ import annotations

from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.errors import ArgumentError

from ..emit.emitter import Emission, Emitter, default
from ..ir.choices import CaseChange, Weighting
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import TensorType, Type, broadcast
from ..records import dataclass
from .attributes import Attributes
from .base import Plain


class StringConcat(Plain):
    since = (20,)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.string, broadcast(self.shape(0), self.shape(1))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("string_concat", e.x(0), e.x(1))


@dataclass(frozen=True)
class StringSplitConfig:
    delimiter: str = ""
    maxsplit: int | None = None


class StringSplit(Node[StringSplitConfig]):
    """The pieces of each string, padded with empty ones, and their number."""

    since = (20,)

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        pieces = TensorType(dtypes.string, None if shape is None else (*shape, None))
        return (pieces, TensorType(dtypes.int64, shape))

    def emit(self, e: Emitter) -> Emission:
        return e.call(
            "string_split",
            e.x(0),
            delimiter=default(self.config.delimiter or None),
            maxsplit=default(self.config.maxsplit),
        )


@dataclass(frozen=True)
class StringNormalizerConfig:
    case_change: CaseChange
    is_case_sensitive: bool
    stopwords: tuple[str, ...]
    locale: str


class StringNormalizer(Node[StringNormalizerConfig]):
    """Strings without the stopwords, in one case. Python's case rules serve every locale."""

    since = (10,)

    @classmethod
    def read(cls, a: Attributes) -> StringNormalizerConfig:
        return StringNormalizerConfig(
            a.choice("case_change_action", CaseChange, CaseChange.NONE),
            a.flag("is_case_sensitive"),
            a.strings("stopwords", ()),
            a.string("locale", ""),
        )

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        return (TensorType(dtypes.string, None if shape is None else (*shape[:-1], None)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "string_normalizer",
            e.x(0),
            case_change=default(None if c.case_change == "NONE" else c.case_change),
            is_case_sensitive=default(c.is_case_sensitive),
            stopwords=default(c.stopwords),
        )


def check_pattern(pattern: str) -> None:
    """Raise Problem if a pattern is not a regular expression, or too large."""
    from emberlet.functional.onnx_ml.patterns import matcher

    try:
        matcher(pattern)
    except ArgumentError as error:
        raise Problem(str(error)) from None


@dataclass(frozen=True)
class RegexFullMatchConfig:
    pattern: str


class RegexFullMatch(Node[RegexFullMatchConfig]):
    """Whether each whole string matches a regular expression."""

    since, loops = (20,), True

    @classmethod
    def read(cls, a: Attributes) -> RegexFullMatchConfig:
        pattern = a.string("pattern")
        check_pattern(pattern)
        return RegexFullMatchConfig(pattern)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.bool, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("regex_full_match", e.x(0), self.config.pattern)


@dataclass(frozen=True)
class TfIdfConfig:
    pool: tuple[int, ...] | tuple[str, ...]
    ngram_counts: tuple[int, ...]
    ngram_indexes: tuple[int, ...]
    weights: tuple[float, ...]
    mode: Weighting
    min_gram_length: int
    max_gram_length: int
    max_skip_count: int


class TfIdfVectorizer(Node[TfIdfConfig]):
    """How often each n-gram of a vocabulary occurs, weighted."""

    since, loops = (9,), True

    @classmethod
    def read(cls, a: Attributes) -> TfIdfConfig:
        pool = a.ints("pool_int64s") if a.has("pool_int64s") else a.strings("pool_strings")
        config = TfIdfConfig(
            pool,
            a.ints("ngram_counts"),
            a.ints("ngram_indexes"),
            a.floats("weights", ()),
            a.choice("mode", Weighting),
            a.int("min_gram_length"),
            a.int("max_gram_length"),
            a.int("max_skip_count"),
        )
        if not config.ngram_indexes or min(config.ngram_indexes) < 0:
            raise Problem("ngram_indexes must not be empty or negative")
        if max(config.ngram_indexes) >= MAX_VOCABULARY:
            raise Problem(f"ngram_indexes reach {max(config.ngram_indexes)}; at most {MAX_VOCABULARY} are supported")
        starts = config.ngram_counts
        if list(starts) != sorted(starts) or not starts or starts[0] < 0 or starts[-1] > len(pool):
            raise Problem(f"ngram_counts {starts[:8]} are not ascending positions in the pool's {len(pool)} elements")
        if not 1 <= config.min_gram_length <= config.max_gram_length or config.max_skip_count < 0:
            raise Problem("the lengths of n-grams must be 1 or more, the longest last, and what is skipped 0 or more")
        return config

    def infer(self) -> tuple[Type, ...]:
        shape = self.shape(0)
        width = max(self.config.ngram_indexes) + 1
        if shape is None:
            return (TensorType(dtypes.float32),)
        return (TensorType(dtypes.float32, (shape[0], width) if len(shape) == 2 else (width,)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call(
            "tfidf",
            e.x(0),
            pool=c.pool,
            ngram_counts=c.ngram_counts,
            ngram_indexes=c.ngram_indexes,
            weights=c.weights,
            mode=c.mode,
            min_gram_length=c.min_gram_length,
            max_gram_length=c.max_gram_length,
            max_skip_count=c.max_skip_count,
        )


MAX_VOCABULARY = 1 << 26

Label = int | float | str


@dataclass(frozen=True)
class LabelEncoderConfig:
    keys: tuple[Label, ...]
    values: tuple[Label, ...]
    default: Label
    dtype: DType
    default_word: str | None = None  # of version 1, which also looks up numbers


class LabelEncoder(Node[LabelEncoderConfig]):
    """A table look-up. Version 1 maps strings to their index or the reverse, later ones any keys to any values."""

    domain, since = "ai.onnx.ml", (1, 2, 4)

    @classmethod
    def read(cls, a: Attributes) -> LabelEncoderConfig:
        if a.has("classes_strings"):
            classes = a.strings("classes_strings")
            number, word = a.int("default_int64", -1), a.string("default_string", "_Unused")
            return LabelEncoderConfig(classes, tuple(range(len(classes))), number, dtypes.int64, word)
        keys, _ = cls._entries(a, "keys")
        values, dtype = cls._entries(a, "values")
        if len(keys) != len(values):
            raise Problem(f"{len(keys)} keys for {len(values)} values")
        missing: Label
        if a.has("default_tensor"):
            missing = a.tensor("default_tensor").list()[0]
        elif dtype is dtypes.string:
            missing = a.string("default_string", "_Unused")
        elif dtype is dtypes.int64:
            missing = a.int("default_int64", -1)
        else:
            missing = a.float("default_float", -0.0)
        for unused in ("default_string", "default_int64", "default_float"):
            a.has(unused)
        return LabelEncoderConfig(keys, values, missing, dtype)

    @staticmethod
    def _entries(a: Attributes, which: str) -> tuple[tuple[Label, ...], DType]:
        if a.has(which + "_tensor"):
            value = a.tensor(which + "_tensor")
            return tuple(value.list()), value.dtype
        if a.has(which + "_strings"):
            return a.strings(which + "_strings"), dtypes.string
        if a.has(which + "_int64s"):
            return a.ints(which + "_int64s"), dtypes.int64
        return a.floats(which + "_floats"), dtypes.float32

    def _table(self) -> LabelEncoderConfig:
        c = self.config
        if c.default_word is None or self.dtype(0) is dtypes.string:
            return c
        return LabelEncoderConfig(c.values, c.keys, c.default_word, dtypes.string)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self._table().dtype, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        c = self._table()
        return e.call("label_encode", e.x(0), keys=c.keys, values=c.values, default=c.default, dtype=c.dtype)
