"""Pictures of tensors in a terminal and in a notebook."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import emberlet
import numpy as np
import pytest


def shown(x: Any, **options: Any) -> str:
    file = io.StringIO()
    assert emberlet.show(x, file=file, **options) is None
    return file.getvalue().removesuffix("\n")


def test_a_vector_is_a_line_of_blocks() -> None:
    assert shown(emberlet.asarray([0.0, 1.0, 0.5])) == "▁█▅"
    assert shown([1.0, float("nan"), 3.0]) == "▁ █"
    assert len(shown(emberlet.arange(1000), width=20)) == 20


def test_a_matrix_is_a_heat_map_in_shades_or_half_blocks() -> None:
    x = emberlet.asarray([[0.0, 1.0], [2.0, 3.0], [3.0, 0.0]])
    plain = shown(x, color=False).split("\n")
    assert (len(plain) == 3 and plain[0].startswith("  ") is False) or plain[0][:2] != plain[1][:2]
    colored = shown(x, color=True)
    assert colored.count("▀") == 4 and colored.count("\n") == 1
    # The smallest value has viridis' first color, the largest its last.
    assert "\033[38;2;68;1;84m" in colored and "\033[48;2;253;231;37m" in colored
    assert "\033" not in shown(x)


@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 5, 3), (1, 4, 5), (4, 5, 1), (2, 3, 4, 5)])
def test_images_of_either_order_of_channels_are_drawn(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    assert shown(x, color=True).count("▀") == 10
    assert "\033[38;2;0;0;0m" in shown(x, color=True)
    assert "\033[38;2;255;255;255m" in shown(x + 1, color=True)
    assert "\033[38;2;200;200;200m" in shown((x + 200).astype(np.uint8), color=True)


@pytest.mark.parametrize("name", ["numpy", "python"])
def test_a_notebook_gets_the_shape_a_picture_and_the_corner(name: str) -> None:
    x = emberlet.asarray(np.arange(12.0).reshape(3, 4), backend=name)
    markup = x._repr_html_()
    tree = ElementTree.fromstring(markup)
    assert "3 × 4" in markup and "float64" in markup and name in markup
    assert len(tree.findall(".//rect")) == 12 and "11.0" in markup
    assert ElementTree.fromstring(emberlet.arange(5)._repr_html_()).find(".//polyline") is not None


@pytest.mark.parametrize("x", [emberlet.zeros((0, 3)), emberlet.asarray(["<b>", "a"]), emberlet.asarray(2.5),
                               emberlet.asarray([True, False]), emberlet.asarray([[1j, 2.0]]),
                               emberlet.asarray([[float("inf"), float("nan")]]),
                               emberlet.zeros((2, 2), dtype="float16"), emberlet.zeros((900, 900))])  # fmt: skip
def test_any_tensor_has_a_picture_or_text(x: Any) -> None:
    assert shown(x) is not None
    markup = x._repr_html_()
    ElementTree.fromstring(markup)
    assert len(markup) < 300_000 and not re.search("<b>", markup)
