"""How the text of a kernel of one's own is filled in, and checked for pages, without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.errors import BackendError
from emberlet.wgpu_backend.kernels import launch_pages
from emberlet.wgpu_backend.render import template


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("a {{ b }} c", {"b": 1}, "a 1 c"),
        ("{{b}}{{ b }}", {"b": "x"}, "xx"),
        ("no } braces {", {}, "no } braces {"),
        ("one\n  {{ b }}\ntwo", {"b": "x\ny"}, "one\n  x\n  y\ntwo"),
        ("one\n  a {{ b }}\ntwo", {"b": "x\ny"}, "one\n  a x\ny\ntwo"),
        ("  {{ b }}", {"b": "x\ny"}, "  x\n  y"),
        ("{{ b }}\n    {{ c }}", {"b": "x\ny", "c": "z\nw"}, "x\ny\n    z\n    w"),
        ("a {{ b c", {"b": 1}, BackendError("a placeholder is not closed: {{ b c")),
        ("a {{ b }} {{", {"b": 1}, BackendError("a placeholder is not closed: {{")),
        ("{{ d }}", {"c": 1, "b": 2}, BackendError("the shader wants {{ d }}; the values given are b, c")),
    ],
)
def test_placeholders_are_filled_in(text: str, values: dict[str, Any], wanted: Any) -> None:
    if isinstance(wanted, str):
        assert template.render(text, values) == wanted
        return
    with pytest.raises(BackendError) as caught:
        template.render(text, values)
    assert str(caught.value) == str(wanted)


BINDINGS = """@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read> in10: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
"""


def test_a_text_without_an_entry_point_is_left_to_its_compiler() -> None:
    said = launch_pages.over_pages("own", f"{BINDINGS}fn main() {{ out[0] = in0[0]; }}", [1, 1, 2], 1024)
    assert said.endswith("fn main() { store_out(0, in0[0]); }")
