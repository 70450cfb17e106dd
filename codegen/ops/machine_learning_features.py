"""Operators of ai.onnx.ml that select, scale, impute and encode features, and those on maps, which are dicts."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes

from ..emit.emitter import Emission, Emitter, default
from ..emit.expression import Binary, Expr, List, lift
from ..ir.choices import MapCast, Norm
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import MapType, SequenceType, TensorType, Type, product
from ..ir.value import ints_value
from ..records import dataclass
from .attributes import Attributes
from .base import Plain, dim_at
from .machine_learning import DOMAIN, Labels, floats_value, labels_dtype, labels_of, rows_of

FAMILY = "machine learning"


class ArrayFeatureExtractor(Plain):
    """Columns of the last axis; from a vector, one row of them."""

    domain = DOMAIN

    def infer(self) -> tuple[Type, ...]:
        x, wanted = self.tensor(0), self.shape(1)
        count = product(wanted) if wanted is not None else None
        if x.shape is None:
            return (TensorType(x.dtype),)
        return (TensorType(x.dtype, (*(x.shape[:-1] or (1,)), count)),)

    def emit(self, e: Emitter) -> Emission:
        indices = e.method(e.x(1), "reshape", (-1,))
        picked = e.call("take", e.x(0), indices, axis=-1)
        return e.method(picked, "reshape", (1, -1)) if self.rank(0) == 1 else picked


@dataclass(frozen=True)
class BinarizerConfig:
    threshold: float = 0.0


class Binarizer(Node[BinarizerConfig]):
    """1 where the input is over the threshold, else 0."""

    domain = DOMAIN

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(self.dtype(0), self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("cast", e.call("greater", e.x(0), self.config.threshold), self.dtype(0))


@dataclass(frozen=True)
class ScalerConfig:
    offset: tuple[float, ...]
    scale: tuple[float, ...]


class Scaler(Node[ScalerConfig]):
    """(x - offset) * scale, with one number for all features or one per feature."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> ScalerConfig:
        return ScalerConfig(a.floats("offset", ()) or (0.0,), a.floats("scale", ()) or (1.0,))

    def infer(self) -> tuple[Type, ...]:
        features = dim_at(self.shape(0), -1)
        for name, numbers in (("offset", self.config.offset), ("scale", self.config.scale)):
            if isinstance(features, int) and len(numbers) not in (1, features):
                raise Problem(f"{name} has {len(numbers)} numbers for {features} features")
        return (TensorType(dtypes.float32, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        x, c = as_float32(self, e), self.config
        if c.offset != (0.0,):
            x = Binary("-", x, per_feature(e, "offset", c.offset))
        return Binary("*", x, per_feature(e, "scale", c.scale)) if c.scale != (1.0,) else x


def as_float32(node: Node[Any], e: Emitter) -> Expr:
    return e.x(0) if node.dtype(0) is dtypes.float32 else e.call("cast", e.x(0), dtypes.float32)


def per_feature(e: Emitter, name: str, numbers: tuple[float, ...]) -> Expr:
    """One number for all features, or a constant of one for each."""
    return lift(numbers[0]) if len(numbers) == 1 else e.parameter(name, floats_value(numbers, (len(numbers),)))


@dataclass(frozen=True)
class NormalizerConfig:
    norm: Norm = Norm.MAX


class Normalizer(Node[NormalizerConfig]):
    """Rows divided by their largest element, or by their L1 or L2 norm; by 1 where that is 0. As in the standard and
    onnxruntime the largest element is not the largest magnitude, which ONNX's reference takes."""

    domain = DOMAIN

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.float32, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        x = e.assign("x", as_float32(self, e)) if self.dtype(0) is not dtypes.float32 else e.x(0)
        if self.config.norm == "MAX":
            size = e.call("max", x, axis=-1, keepdims=True)
        else:
            size = e.call("vector_norm", x, axis=-1, keepdims=True, ord=default(int(self.config.norm[1])))
        size = e.assign("size", size)
        return Binary("/", x, e.call("where", Binary("==", size, lift(0.0)), 1.0, size))


@dataclass(frozen=True)
class ImputerConfig:
    replaced: float
    floats: tuple[float, ...]
    replaced_int: int
    ints: tuple[int, ...]


class Imputer(Node[ImputerConfig]):
    """Replaces a value that marks missing data by another, one for all features or one per feature."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> ImputerConfig:
        return ImputerConfig(
            a.float("replaced_value_float", 0.0),
            a.floats("imputed_value_floats", ()),
            a.int("replaced_value_int64", 0),
            a.ints("imputed_value_int64s", ()),
        )

    def infer(self) -> tuple[Type, ...]:
        dtype = self.dtype(0)
        if dtype not in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
            raise Problem(f"takes float32, float64, int32 or int64, and got {dtype.name}")
        if dtype is dtypes.int32 and not all(
            -(2**31) <= i < 2**31 for i in (self.config.replaced_int, *self.config.ints)
        ):
            raise Problem("has values that do not fit int32")
        count = len(self.config.floats if dtype.is_float else self.config.ints)
        features = dim_at(self.shape(0), -1)
        if not count or (isinstance(features, int) and count not in (1, features)):
            raise Problem(f"has {count} replacement values of {dtype.name} for {features} features")
        return (TensorType(dtype, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        c, dtype = self.config, self.dtype(0)
        values = c.floats if dtype.is_float else c.ints
        gap = c.replaced if dtype.is_float else c.replaced_int
        missing = e.call("isnan", e.x(0)) if gap != gap else Binary("==", e.x(0), lift(gap))
        if len(values) == 1:
            return e.call("where", missing, values[0], e.x(0))
        held = floats_value(c.floats, (len(values),), dtype) if dtype.is_float else ints_value(c.ints, dtype)
        return e.call("where", missing, e.parameter("imputed", held), e.x(0))


@dataclass(frozen=True)
class FeatureVectorizerConfig:
    sizes: tuple[int, ...]


class FeatureVectorizer(Node[FeatureVectorizerConfig]):
    """Features side by side, each input cut or padded with zeros to its declared number of columns; a vector is one
    row, as in the standard (ONNX's reference makes it a column)."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> FeatureVectorizerConfig:
        sizes = a.ints("inputdimensions")
        if len(sizes) != len(a.inputs) or any(not 0 <= s < 1 << 24 for s in sizes):
            raise Problem(f"inputdimensions {sizes} are not one for each of {len(a.inputs)} inputs")
        return FeatureVectorizerConfig(sizes)

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.float32, (rows_of(self), sum(self.config.sizes))),)

    def emit(self, e: Emitter) -> Emission:
        parts = []
        for i, size in enumerate(self.config.sizes):
            x, found = e.x(i), dim_at(self.shape(i), -1)
            x = e.call("cast", x, dtypes.float32) if self.dtype(i) is not dtypes.float32 else x
            x = e.method(x, "reshape", (1, -1)) if self.tensor(i).rank == 1 else x
            if isinstance(found, int) and found > size:
                x = e.method(x, "narrow", 1, 0, size)
            elif isinstance(found, int) and found < size:
                x = e.call("pad", x, ((0, 0), (0, size - found)))
            parts.append(x)
        return parts[0] if len(parts) == 1 else e.call("concat", List(tuple(parts)), axis=1)


@dataclass(frozen=True)
class OneHotEncoderConfig:
    categories: Labels
    zeros: bool


class OneHotEncoder(Node[OneHotEncoderConfig]):
    """A 1 at the position of each element's category."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> OneHotEncoderConfig:
        return OneHotEncoderConfig(labels_of(a, "cats_int64s", "cats_strings"), a.flag("zeros", True))

    def infer(self) -> tuple[Type, ...]:
        shape, c = self.shape(0), self.config
        if (self.dtype(0) is dtypes.string) != (labels_dtype(c.categories) is dtypes.string):
            raise Problem(f"its categories are not values of a tensor of {self.dtype(0).name}")
        return (TensorType(dtypes.float32, None if shape is None else (*shape, len(c.categories))),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.call("one_hot_encode", e.x(0), c.categories, unknown=default("zeros" if c.zeros else "error"))


@dataclass(frozen=True)
class CategoryMapperConfig:
    numbers: tuple[int, ...]
    words: tuple[str, ...]
    default_number: int
    default_word: str


class CategoryMapper(Node[CategoryMapperConfig]):
    """Maps words to their numbers, or numbers to words."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> CategoryMapperConfig:
        c = CategoryMapperConfig(
            a.ints("cats_int64s"),
            a.strings("cats_strings"),
            a.int("default_int64", -1),
            a.string("default_string", "_Unused"),
        )
        if len(c.numbers) != len(c.words):
            raise Problem(f"{len(c.numbers)} numbers for {len(c.words)} words")
        return c

    def infer(self) -> tuple[Type, ...]:
        return (TensorType(dtypes.int64 if self.dtype(0) is dtypes.string else dtypes.string, self.shape(0)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        if self.dtype(0) is dtypes.string:
            missing: int | str = c.default_number
            keys: Labels = c.words
            values: Labels = c.numbers
            dtype = dtypes.int64
        else:
            missing, keys, values, dtype = c.default_word, c.numbers, c.words, dtypes.string
        return e.call("label_encode", e.x(0), keys=keys, values=values, default=missing, dtype=dtype)


@dataclass(frozen=True)
class ZipMapConfig:
    keys: Labels


class ZipMap(Node[ZipMapConfig]):
    """A dict for each row, from the classes' labels to their scores."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> ZipMapConfig:
        return ZipMapConfig(labels_of(a, "classlabels_int64s"))

    def infer(self) -> tuple[Type, ...]:
        found = dim_at(self.shape(0), -1)
        if isinstance(found, int) and found != len(self.config.keys):
            raise Problem(f"{len(self.config.keys)} labels for {found} columns")
        return (SequenceType(MapType(labels_dtype(self.config.keys), self.dtype(0))),)

    def emit(self, e: Emitter) -> Emission:
        return e.call("zip_map", e.x(0), self.config.keys)


def map_of(node: Node[Any]) -> MapType:
    """Input 0's type. Raises Problem if it is not a map."""
    t = node.type(0)
    if not isinstance(t, MapType):
        raise Problem("its input is not a map")
    return t


@dataclass(frozen=True)
class DictVectorizerConfig:
    vocabulary: Labels


class DictVectorizer(Node[DictVectorizerConfig]):
    """A dict's values in the order of a vocabulary, 0 for missing keys."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> DictVectorizerConfig:
        return DictVectorizerConfig(labels_of(a, "int64_vocabulary", "string_vocabulary"))

    def infer(self) -> tuple[Type, ...]:
        t, words = map_of(self), self.config.vocabulary
        if t.key is not labels_dtype(words):
            raise Problem(f"its vocabulary holds values that cannot be keys of a dict of {t.key.name}")
        return (TensorType(t.value, (1, len(words))),)

    def emit(self, e: Emitter) -> Emission:
        return e.create("dict_vectorize", e.x(0), self.config.vocabulary, map_of(self).value)


CAST_TO = {"TO_FLOAT": dtypes.float32, "TO_INT64": dtypes.int64, "TO_STRING": dtypes.string}


@dataclass(frozen=True)
class CastMapConfig:
    """size: the length of the row, to which keys are positions; None if only the present values count."""

    cast_to: MapCast
    size: int | None


class CastMap(Node[CastMapConfig]):
    """A dict's values as a row, in sequence or each at the position of its key."""

    domain = DOMAIN

    @classmethod
    def read(cls, a: Attributes) -> CastMapConfig:
        sparse = a.string("map_form", "DENSE", ("DENSE", "SPARSE")) == "SPARSE"
        size = a.int("max_map", 1)
        if sparse and not 0 < size < 1 << 24:
            raise Problem(f"max_map is {size}, expected 1 to {(1 << 24) - 1}")
        return CastMapConfig(a.choice("cast_to", MapCast, MapCast.TO_FLOAT), size if sparse else None)

    def infer(self) -> tuple[Type, ...]:
        map_of(self)
        return (TensorType(CAST_TO[self.config.cast_to], (1, self.config.size)),)

    def emit(self, e: Emitter) -> Emission:
        c = self.config
        return e.create("map_to_tensor", e.x(0), CAST_TO[c.cast_to], size=default(c.size))
