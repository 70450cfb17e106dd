"""How the text of a kernel of one's own is filled in, checked and rewritten for pages, without a GPU.

`UPDATE_SNAPSHOTS=1 pytest` on this file records the texts again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from emberlet import dtypes
from emberlet.backend.sizes import Scope
from emberlet.errors import BackendError, EmberletError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels import alike, launch, launch_pages, loop
from emberlet.wgpu_backend.render import template
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("texts_of_kernels.txt")


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


@pytest.mark.parametrize(
    ("text", "but", "wanted"),
    [
        ("f(g(x) + 2) * f(1) (y)", None, ["f", "g"]), ("f(g(x))", "f", ["g"]), ("(a) + (b)", None, []), ("f", None, []),
        ("x.abs_2(1) -h(2)", None, ["abs_2", "h"]), ("f(", None, ["f"]),
    ],
)  # fmt: skip
def test_the_functions_that_a_text_calls_are_found(text: str, but: str | None, wanted: list[str]) -> None:
    assert template.called(text, but) == wanted


def test_a_text_gets_the_functions_of_the_library_that_it_needs_in_their_order() -> None:
    def names(text: str) -> list[str]:
        return [line[3 : line.index("(")] for line in template.library(text).split("\n") if line.startswith("fn ")]

    assert names("own(1) + 2") == []
    assert names("fn own(x: f32) { return erf_f32(x) + erf_f32(x); }") == names("erf_f32(1.0)")
    assert "erf_f32" in names("erf_f32(1.0)")
    every = list(template._read_library())
    both = names("round_f16(erf_f32(1.0))")
    assert both == sorted(both, key=every.index)


def recorded(title: str, text: str) -> None:
    assert_recorded(RECORDED, title, "\n".join(line for line in text.splitlines() if line))


SUM = "{{ bindings }}\n@compute @workgroup_size(64) fn main() { out[0] = in0[0] + in1[0]; }\n"


FLAT = "{{ bindings }}\nfn main() { let i = {{ flat }};"
BOUND = "@group(0) @binding(0) var<storage, read> a : array<f32>;\n"
UNBOUND = "var<storage> a : f32;\n@group(0) @binding(0) var<uniform> b : f32;\nfn main() {}"


def prepared(source: str, shape: Any = (6,), groups: Any = (1, 1, 1), count: int = 2, values: Any = None) -> str:
    k = WgpuBackend(planning=True)
    inputs = [
        k.from_bytes(bytes(8), dtypes.int8 if n == 1 else dtypes.float32, (8,) if n == 1 else (2,))
        for n in range(count)
    ]
    try:
        text, found, _ = launch.prepared("own", source, inputs, "f32", shape, groups, values)
    except EmberletError as error:
        return f"{type(error).__name__}: {error}"
    return f"{found}\n{text}"


@pytest.mark.parametrize(
    ("name", "source", "options"),
    [
        ("three groups", SUM, {"groups": (3, 2, 1)}),
        ("a list of groups", SUM, {"groups": [3, 2, 1]}),
        ("elements and width", FLAT + " out[i] = in0[{{ count }}] + in1[{{ workgroup }}]; }",
         {"groups": (129, 64), "shape": (3, 43)}),
        ("whole workgroups", SUM, {"groups": (128, 64)}),
        ("no elements", SUM, {"groups": (0, 64)}),
        ("more than a row of workgroups", FLAT + " out[i] = in0[0] + in1[0]; }", {"groups": (65536, 1)}),
        ("no width", SUM, {"groups": (8, 0)}),
        ("one number", SUM, {"groups": (8,)}),
        ("four numbers", SUM, {"groups": (8, 1, 1, 1)}),
        ("a value of its own", "{{ bindings }}\nfn {{ name }}() { out[0] = in0[0] + in1[0] * {{ factor }}; }",
         {"values": {"factor": 2.5}}),
        ("a value not given", "{{ bindings }}\nfn main() { {{ factor }} }", {}),
        ("an input not used", "{{ bindings }}\nfn main() { out[0] = in0[0] + xin1[0] + in1x[0] + in12; }", {}),
        ("a result not used", "{{ bindings }}\nfn main() { let x = in0[0] + in1[0] + out_2; }", {}),
        ("no template", BOUND + "fn main() { let x = a[0]; }", {}),
        ("no template, not used", BOUND + "fn main() { }", {}),
        ("a variable that is not bound", UNBOUND, {}),
        ("half floats", "{{ bindings }}\nfn main() { out[0] = in0[0] + in1[0] + f32(vec2<f16>(1.0).x); }", {}),
        ("the library", "{{ bindings }}\n@compute fn main() { out[0] = round_f16(in0[0]) + f32(in1[0]); }", {}),
        ("no entry point", "{{ bindings }}\nfn main() { out[0] = round_f16(in0[0]) + f32(in1[0]); }", {}),
        ("a file that is missing", "missing.wgsl", {}),
        ("no inputs", "{{ bindings }}\nfn main() { out[0] = 1.0; }", {"count": 0}),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)  # fmt: skip
def test_a_kernel_of_ones_own_is_prepared(name: str, source: str, options: dict[str, Any]) -> None:
    said = prepared(source, **options).replace(template.folder(), "FOLDER ")
    recorded(f"prepared: {name}", said)


BINDINGS = """@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read> in10: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
"""


@pytest.mark.parametrize("counts", [(1, 1, 2), (2, 1, 1), (3, 2, 2), (2, 1)], ids=str)
@pytest.mark.parametrize(
    "body",
    [
        "out[i] = in0[i] + in10[i].x;",
        "out[i + in0[2]] = in0[in0[i] + 1] * in10[0].y + out[3];",
        "out[i] == in0[1]; if (out[i] <= 2 && in0[0] >= 1) { x = out[i]; }",
        "out[i]=1.0;\n  out[i]  -= in0[1];",
        *(f"out[i] {operator}= in0[i + 1];" for operator in ("<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^")),
        "x_out[i] = in0x[1] + 2in0[1] + bout[2] + _in0[3];",
        "out[i] = in0[i",
        "let n = arrayLength(&in0);",
    ],
)
def test_a_text_is_rewritten_for_pages(body: str, counts: tuple[int, ...]) -> None:
    source = f"{BINDINGS}@compute @workgroup_size(64) fn main() {{\n  {body}\n}}"
    try:
        said = launch_pages.over_pages("own", source, list(counts), 1024)
    except EmberletError as error:
        said = str(error)
    if body != "out[i] = in0[i] + in10[i].x;":  # the functions before it are those of the first body
        said = said.partition("@compute")[2] or said
    recorded(f"pages {counts}: {body.splitlines()[0]}", said)


def test_a_text_without_an_entry_point_is_left_to_its_compiler() -> None:
    said = launch_pages.over_pages("own", f"{BINDINGS}fn main() {{ out[0] = in0[0]; }}", [1, 1, 2], 1024)
    assert said.endswith("fn main() { store_out(0, in0[0]); }")


def test_workgroups_are_spread_over_three_dimensions() -> None:
    most = loop.MAX_GROUPS
    scope = Scope()
    sizes = [scope.symbol(f"n{top}", 0, top, 16) for top in (most, most + 1, most * most)]
    lines = []
    numbers = [0, 1, 2, most, most + 1, 2 * most, 2 * most + 1, most * most, most * most + 1, 3 * most * most, *sizes]
    for n in numbers:
        lines.append(f"{n}: {loop.spread(n)}, {loop.flat(n, 'lane', 64)}, {loop.flat(n, 'lane', 0)}")
    assert_recorded(RECORDED, "workgroups", "\n".join(lines))


def test_parameters_of_kernels_have_texts_of_their_own() -> None:
    n = Scope().symbol("n", 1, 64, 16)
    values = [None, True, 1, "1", "None", 1.0, 0.0, -0.0, float("nan"), (), (1,), ((1,),), (1, 2), ("1",), (1, None), n]
    texts = [alike._text(value) for value in values]
    assert len(set(texts)) == len(values)
    assert alike._text([1, 2]) == alike._text((1, 2))
    assert texts[:4] == ["None", "True", "1", "'1'"]
    for other in (object(), {1: 2}, (1, object()), b"1"):
        with pytest.raises(alike._NoKey):
            alike._text(other)
