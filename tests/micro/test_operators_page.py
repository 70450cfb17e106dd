"""The operators in docs/microcontrollers.md are those of the importers' tables."""

from __future__ import annotations

from emberlet.micro.builder.importer import TRANSLATORS

from tools.generated import micro_operators


def test_the_page_is_up_to_date() -> None:
    page = micro_operators.PAGE.read_text(encoding="utf-8")
    assert micro_operators.page() == page, "run python3 dev.py check --fix"


def test_every_file_of_importers_has_a_title() -> None:
    files = {function.__module__.rsplit(".", 1)[1] for function in TRANSLATORS.values()}
    assert files == set(micro_operators.TITLES)


def test_operators_are_listed_once() -> None:
    names = [name for listed in micro_operators.operators().values() for name in listed]
    assert len(names) == len(set(names))
    assert {"Conv", "com.microsoft.MatMulNBits", "ai.onnx.ml.TreeEnsemble"} <= set(names)
