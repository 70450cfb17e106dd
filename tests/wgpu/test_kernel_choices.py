"""How kernels are chosen, without a device: workgroups, limits, tiles; and the texts of your own kernels."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import dtypes
from emberlet.errors import BackendError, UnsupportedError
from emberlet.wgpu_backend import WgpuBackend, tuning
from emberlet.wgpu_backend.kernels import launch, loop, scan
from emberlet.wgpu_backend.kernels.attention import serves
from emberlet.wgpu_backend.kernels.launch_pages import over_pages
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.lower.contraction import problem
from emberlet.wgpu_backend.lower.tiles import Tile, candidates, problem_key
from emberlet.wgpu_backend.render import wgsl
from support.rows import every


@pytest.mark.parametrize(
    "groups, found, text",
    [
        (0, (1, 1, 1), "group.x"),
        (1, (1, 1, 1), "group.x"),
        (65535, (65535, 1, 1), "group.x"),
        (65536, (65535, 2, 1), "(group.x + group.y * 65535u)"),
        (131070, (65535, 2, 1), "(group.x + group.y * 65535u)"),
        (131071, (65535, 3, 1), "(group.x + group.y * 65535u)"),
        (65535**2, (65535, 65535, 1), "(group.x + group.y * 65535u)"),
        (65535**2 + 1, (65535, 65535, 2), "((group.x + group.y * 65535u) + group.z * 4294836225u)"),
        (2 * 65535**2 + 1, (65535, 65535, 3), "((group.x + group.y * 65535u) + group.z * 4294836225u)"),
    ],
)
def test_workgroups_are_spread_over_three_dimensions_of_65535(groups: int, found: Any, text: str) -> None:
    assert loop.spread(groups) == found
    assert loop.flat(groups, "lane", 0) == text
    assert loop.flat(groups, "lane", 64) == f"{text} * 64u + lane"


def test_which_reductions_and_scans_get_a_workgroup_for_each_result() -> None:
    for software, least in [(False, [(128, 2048), (1024, 16384)]), (True, [(1024, 1), (8192, 32)])]:
        for length, results in least:
            assert loop.wants_group(results, length, software)
            assert not loop.wants_group(results, length - 1, software)
            assert not loop.wants_group(results + 1, length, software)
    for software in (False, True):
        assert loop.wants_group(1 << 20, 60001, software) and not loop.wants_group(1 << 20, 60000, software)
        assert scan.wants_group(1 << 20, 60001, software) and not scan.wants_group(1 << 20, 60000, software)
        assert scan.wants_group(511, 128, software) == (not software)
        assert not scan.wants_group(512, 128, software) and not scan.wants_group(511, 127, software)


def node(shape: tuple[int, ...]) -> Any:
    backend = WgpuBackend(planning=True)
    return backend._tensor("input", (), 0, dtypes.float32, shape).data


@pytest.mark.parametrize(
    "queries, keys, values, in_software, on_gpu",
    [
        ((1, 1, 7, 16), (1, 1, 64, 16), (1, 1, 64, 16), True, True),
        ((1, 1, 7, 16), (1, 1, 65, 16), (1, 1, 65, 16), False, True),
        ((1, 1, 8, 16), (1, 1, 65, 16), (1, 1, 65, 16), True, True),
        ((2, 2, 2, 16), (2, 2, 65, 16), (2, 2, 65, 16), True, True),
        ((1, 1, 8, 16), (1, 1, 60000, 16), (1, 1, 60000, 16), True, True),
        ((1, 1, 8, 16), (1, 1, 60001, 16), (1, 1, 60001, 16), False, False),
        ((1, 1, 8, 16), (1, 1, 0, 16), (1, 1, 0, 16), False, False),
        ((1, 1, 0, 16), (1, 1, 9, 16), (1, 1, 9, 16), False, False),
        ((1, 1, 8, 128), (1, 1, 9, 128), (1, 1, 9, 128), True, True),
        ((1, 1, 8, 129), (1, 1, 9, 129), (1, 1, 9, 16), False, False),
        ((1, 1, 8, 16), (1, 1, 9, 16), (1, 1, 9, 129), False, False),
        ((1, 1, 8, 0), (1, 1, 9, 0), (1, 1, 9, 16), False, False),
        ((1, 1, 8, 16), (1, 1, 9, 16), (1, 1, 9, 0), False, False),
        ((1, 1, 8, 1), (1, 1, 9, 1), (1, 1, 9, 1), True, True),
    ],
)
def test_which_attention_has_a_kernel(queries: Any, keys: Any, values: Any, in_software: bool, on_gpu: bool) -> None:
    given = node(queries), node(keys), node(values)
    assert serves(*given, True) == in_software
    assert serves(*given, False) == on_gpu


# -- tiles ------------------------------------------------------------------------------------------------------------

SHAPES = [(1, 64, 64), (7, 33, 5), (16, 16, 16), (64, 64, 64, 12), (100, 300, 200), (1024, 1024, 1024), (3, 9, 4000)]


def product(m: int, k: int, n: int, count: int = 1) -> Any:
    backend = WgpuBackend(planning=True)
    a, b = (backend._tensor("input", (), i, dtypes.float32, s) for i, s in enumerate([(count, m, k), (count, k, n)]))
    return backend.matmul(a, b).data


@pytest.mark.parametrize("kind", ["gpu", "cpu", "swiftshader"])
@every("shape", SHAPES)
def test_the_best_tiles_of_products_fit_the_device(shape: tuple[int, ...], kind: str) -> None:
    found = candidates(problem(product(*shape)), kind, 3)
    assert len(set(map(repr, found))) == 3
    assert all(tuning._is_tile(tile.numbers()) for tile in found)


def test_a_tile_that_was_given_or_measured_is_taken() -> None:
    options, found = Options("gpu"), product(8, 8, 8)
    assert options.measured(found) is None
    options.tiles = {problem_key(found): Tile(1, 2, 3, 4)}
    assert options.measured(found).numbers() == [1, 2, 3, 4, 0, 1]
    assert options.measured(product(8, 8, 9)) is None
    options.tile = Tile(2, 2, 2, 2)
    assert options.measured(found) is options.tile and options.measured(node((8, 8))) is None
    assert repr(Tile(1, 2, 3, 4)) == "1x2u3w4s1" and repr(Tile(0, 0, 0, 0, 2)) == "blocks of 128"
    assert problem_key(found) == "matmul float32 1x8x8 1x8x8"


# -- kernels of your own ----------------------------------------------------------------------------------------------

BINDING = "@group(0) @binding({}) var<storage, {}> {}: array<f32>;\n"
HEAD = BINDING.format(0, "read", "in0") + BINDING.format(1, "read_write", "out")


def prepared(source: str, groups: Any, values: Any = None) -> Any:
    inputs = [WgpuBackend(planning=True)._tensor("input", (), 0, dtypes.float32, (3, 4))] if "in0:" in source else []
    return launch.prepared("k", source, inputs, "f32", (3, 4), groups, values)


def test_workgroups_of_a_kernel_of_ones_own() -> None:
    text = "{{ bindings }}\n@compute @workgroup_size({{ workgroup }}) fn main() { out[{{ flat }}] = {{ count }}f; }"
    found, groups, _ = prepared(text, (130, 64))
    assert groups == (3, 1, 1)
    assert "@workgroup_size(64) fn main() { out[group.x * 64u + lane] = 12f; }" in found
    assert "@group(0) @binding(0) var<storage, read_write> out: array<f32>;" in found
    assert prepared(text, (1, 1))[1] == (1, 1, 1)
    assert prepared("\n" + HEAD + "out[0] = in0[0];", [2, 3, 4])[1] == (2, 3, 4)
    for groups, why in [((5, 0), "at least one invocation, not 0"), ((5, -1), "not -1"), ((1,), r"not \(1,\)"),
                        ((1, 1, 1, 1), "groups are")]:  # fmt: skip
        with pytest.raises(BackendError, match=why):
            prepared(text, groups)


@pytest.mark.parametrize("body, unused", [
    ("out[0] = in0[0];", None),
    ("out[0] = in01[0] + in0;", None),
    ("out[0] = in01[0] + xin0[0] + in0_2 + _in0;", "in0"),
    ("in0[0]; out0 = 1;", "out"),
    ("in0[0]; 9out;", "out"),
])  # fmt: skip
def test_bindings_that_are_declared_and_not_used_are_refused(body: str, unused: str | None) -> None:
    if unused is None:
        assert body in prepared(HEAD + body, (1, 1, 1))[0]
        return
    with pytest.raises(BackendError, match=f"declares {unused} but does not use it"):
        prepared(HEAD + body, (1, 1, 1))


def test_a_kernel_that_names_f16_enables_it() -> None:
    text = "\n" + HEAD.replace("array<f32>", "array<f16>") + "@compute fn main() { out[0] = in0[0]; }"
    assert prepared(text, (1, 1, 1))[0].startswith("enable f16;")
    assert not prepared(text.replace("f16", "f32"), (1, 1, 1))[0].startswith("enable")


@pytest.mark.parametrize("body, wanted", [
    ("out[i] = in0[i];", "store_out(i, load_in0(i));"),
    ("out[in0[i] + 1u] = in0[ in0[2] ] * xin0[i];", "store_out(load_in0(i) + 1u, load_in0( load_in0(2) ) * xin0[i]);"),
    ("let a = out[k] == 3; out [0]", "let a = load_out(k) == 3; out [0]"),
    ("_in0[0] + 1in0[0] + in0[i + (j[2])]", "_in0[0] + 1in0[0] + load_in0(i + (j[2]))"),
    ("if (out[1] <= 2) { out[2] = 1.0; }", "if (load_out(1) <= 2) { store_out(2, 1.0); }"),
    *[(f"out[j] {operator}= 2u + in0[1];", f"store_out(j, load_out(j) {operator} (2u + load_in0(1)));")
      for operator in ("<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^")],
])  # fmt: skip
def test_arrays_of_several_pages_are_read_and_written_by_functions(body: str, wanted: str) -> None:
    source = over_pages("k", HEAD + "@compute fn main() { " + body + " }", [2, 3], 1024)
    bindings, functions, text = source.partition("@compute")[0], source, source.partition("@compute")[2]
    assert text == " fn main() { " + wanted + " }"
    for binding, (access, label) in enumerate(
        [("read", "in0_0"), ("read", "in0_1"), *(("read_write", f"out_{i}") for i in range(3))]
    ):
        assert BINDING.format(binding, access, label) in bindings
    assert "fn load_in0(i: u32)" in functions and "fn store_out(i: u32, value: f32)" in functions
    assert "fn store_in0" not in functions and "if (i < 256u)" in functions and "in0_1[i - 256u]" in functions


def test_only_arrays_of_several_pages_are_rewritten() -> None:
    source = over_pages("k", HEAD + "\n@compute fn main() { out[i] = in0[i]; }", [1, 2], 1024)
    assert "store_out(i, in0[i]);" in source and "load_in0" not in source
    with pytest.raises(UnsupportedError, match="finds only 2 of its 3 bindings"):
        over_pages("k", HEAD + "@compute", [1, 2, 1], 1024)


# -- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, type, wanted", [
    (0, "bool", "false"), (2, "bool", "true"), (-1, "i32", "(-1)"), (0, "i32", "0"),
    (1 << 31, "i32", "i32(-2147483647 - 1)"),
    ((1 << 31) - 1, "i32", "2147483647"), (1 << 32, "i32", "0"), (-1, "u32", "4294967295u"), (3.7, "u32", "3u"),
    (1, "f32", "1.0"), (-0.5, "f32", "(-0.5)"), (1e30, "f32", "1e+30"), (-1e30, "f32", "(-1e+30)"), (0.0, "f32", "0.0"),
    (-0.0, "f32", "from_bits(0x80000000u)"), (float("inf"), "f32", "from_bits(0x7f800000u)"),
    (float("nan"), "f32", "from_bits(0x7fc00000u)"), (1e-40, "f32", "from_bits(0x000116c2u)"),
    (3.4028234663852886e38, "f32", "from_bits(0x7f7fffffu)"), (3.4028232635611926e38, "f32", "3.4028232635611926e+38"),
    (1.1754943508222875e-38, "f32", "1.1754943508222875e-38"), (16777216.0, "f32", "16777216.0"),
])  # fmt: skip
def test_numbers_in_wgsl(value: float, type: str, wanted: str) -> None:
    assert wgsl.literal(value, type) == wanted


@pytest.mark.parametrize("op, type, wanted", [
    ("abs", "u32", "{0}"), ("neg", "u32", "0u - {0}"), ("abs", "i32", "abs({0})"), ("logical_not", "i32", "{0} == 0"),
    ("logical_not", "u32", "{0} == 0u"), ("logical_not", "f32", "{0} == 0.0"), ("logical_not", "bool", "!{0}"),
    ("logical_xor", "i32", "!({0} == 0) != !({1} == 0)"), ("logical_and", "u32", "!({0} == 0u) && !({1} == 0u)"),
    ("logical_or", "f32", "!({0} == 0.0) || !({1} == 0.0)"), ("pow", "i32", "pow_i32({0}, {1})"),
    ("erf", "f32", "erf_f32({0})"), ("maximum", "f32", "maximum_f32({0}, {1})"), ("div", "u32", "div_u32({0}, {1})"),
    ("div", "f32", "{0} / {1}"), ("add", "bool", "{0} || {1}"),
])  # fmt: skip
def test_operations_in_wgsl(op: str, type: str, wanted: str) -> None:
    assert wgsl.pattern(op, type) == wanted


@pytest.mark.parametrize("op, type", [("erf", "i32"), ("exp", "u32")])
def test_operations_that_a_type_does_not_have(op: str, type: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{op} of {type} has no kernel on the wgpu backend"):
        wgsl.pattern(op, type)
