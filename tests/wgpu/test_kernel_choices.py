"""How kernels are chosen, without a device: workgroups, limits, tiles; and the texts of your own kernels."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet import dtypes
from emberlet.errors import BackendError, UnsupportedError
from emberlet.wgpu_backend import WgpuBackend, tuning
from emberlet.wgpu_backend.kernels import launch
from emberlet.wgpu_backend.kernels.attention import serves
from emberlet.wgpu_backend.kernels.launch_pages import over_pages
from emberlet.wgpu_backend.lower.contraction import problem
from emberlet.wgpu_backend.lower.tiles import candidates
from emberlet.wgpu_backend.render import wgsl
from support.rows import every


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


# -- kernels of your own ----------------------------------------------------------------------------------------------

BINDING = "@group(0) @binding({}) var<storage, {}> {}: array<f32>;\n"
HEAD = BINDING.format(0, "read", "in0") + BINDING.format(1, "read_write", "out")


def prepared(source: str, groups: Any, values: Any = None) -> Any:
    inputs = [WgpuBackend(planning=True)._tensor("input", (), 0, dtypes.float32, (3, 4))] if "in0:" in source else []
    return launch.prepared("k", source, inputs, "f32", (3, 4), groups, values)


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


@pytest.mark.parametrize("op, type", [("erf", "i32"), ("exp", "u32")])
def test_operations_that_a_type_does_not_have(op: str, type: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{op} of {type} has no kernel on the wgpu backend"):
        wgsl.pattern(op, type)
