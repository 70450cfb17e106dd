"""Operator configs are typed: a choice from a fixed set is an enumeration, and a `str` is free text."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from emberlet.codegen import ops
from emberlet.codegen.ir.choices import Activation
from emberlet.codegen.ir.problem import Problem
from emberlet.codegen.ops.attributes import Attributes
from emberlet.functional.elementwise.activations_by_name import ACTIVATIONS

# Free text of a model's author: names, formulas, regular expressions and words of the data.
FREE = {
    "CategoryMapperConfig.default_word", "CategoryMapperConfig.words", "EinsumConfig.equation",
    "InputSizeConfig.symbol", "LabelEncoderConfig.default_word", "RegexFullMatchConfig.pattern",
    "StringNormalizerConfig.locale", "StringNormalizerConfig.stopwords", "StringSplitConfig.delimiter",
    "TfIdfConfig.pool", "TokenizerConfig.expression", "TokenizerConfig.pad_value", "TokenizerConfig.separators",
}  # fmt: skip


def test_a_field_of_type_str_is_free_text() -> None:
    found = set()
    for module in pkgutil.iter_modules(ops.__path__):
        for kind in vars(importlib.import_module(f"{ops.__name__}.{module.name}")).values():
            if isinstance(kind, type) and kind.__module__.startswith(ops.__name__) and "__init__" in vars(kind):
                fields = {n: t for n, t in vars(kind).get("__annotations__", {}).items() if "ClassVar" not in t}
                found |= {f"{kind.__name__}.{name}" for name, said in fields.items() if re.search(r"\bstr\b", said)}
    assert found == FREE


def test_activations_are_those_of_the_library() -> None:
    assert {*Activation} == {*ACTIVATIONS, Activation.NONE, Activation.CLIP}


@pytest.mark.parametrize("words", [(), ("Tanh",), ("tanh", "RELU", "hardSigmoid")])
def test_activations_are_read_in_any_case(words: tuple[str, ...]) -> None:
    found = Attributes({"activations": words}, 17, (), ()).activations("activations")
    assert [a.lower() for a in found] == [w.lower() for w in words]
    assert all(isinstance(a, Activation) for a in found)


@pytest.mark.parametrize("word", ["Clip", "", "Gelu"])
def test_an_activation_that_no_recurrent_operator_has_is_named(word: str) -> None:
    with pytest.raises(Problem, match=rf"'{word}'.*expected one of .*Tanh"):
        Attributes({"activations": ("Tanh", word)}, 17, (), ()).activations("activations")
