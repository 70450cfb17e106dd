"""Names in shaders: none is reserved in WGSL, and none is declared twice in a block."""

from __future__ import annotations

import random
import re
from pathlib import Path

import emberlet.wgpu_backend
import pytest
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.kernels.table import Options
from emberlet.wgpu_backend.lower.kernel_ir import Builder, Slots
from emberlet.wgpu_backend.plan.make import make_plan
from emberlet.wgpu_backend.render.wgsl import Renderer
from fuzz.differential.drawing import Pool, Skip
from fuzz.differential.operations import grow, inputs

# W3C, WebGPU Shading Language, sections 3.7 (keywords) and 15.3 (reserved words), 6 (types), 17 (built-in functions).
KEYWORDS = (
    "alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if "
    "let loop override requires return struct switch true var while"
)
RESERVED = (
    "NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class "
    "co_await co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval "
    "constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export "
    "extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl "
    "implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move "
    "mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null "
    "nullptr of operator package packoffset partition pass patch pixelfragment precise precision premerge priv "
    "protected pub public readonly ref regardless register reinterpret_cast require resource restrict self set shared "
    "sizeof smooth snorm static static_assert static_cast std subroutine super target template this thread_local "
    "throw trait try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual "
    "volatile wgsl where with writeonly yield"
)
PREDECLARED = (
    "bool f16 f32 i32 u32 array atomic mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 ptr sampler "
    "vec2 vec3 vec4 vec2f vec3f vec4f vec2h vec3h vec4h vec2i vec3i vec4i vec2u vec3u vec4u bitcast all any select "
    "arrayLength abs acos acosh asin asinh atan atanh atan2 ceil clamp cos cosh countLeadingZeros countOneBits "
    "countTrailingZeros cross degrees determinant distance dot dot4U8Packed dot4I8Packed exp exp2 extractBits "
    "faceForward firstLeadingBit firstTrailingBit floor fma fract frexp insertBits inverseSqrt ldexp length log log2 "
    "max min mix modf normalize pow quantizeToF16 radians reflect refract reverseBits round saturate sign sin sinh "
    "smoothstep sqrt step tan tanh transpose trunc dpdx dpdy fwidth pack4x8snorm pack4x8unorm pack4xI8 pack4xU8 "
    "pack2x16snorm pack2x16unorm pack2x16float unpack4x8snorm unpack4x8unorm unpack4xI8 unpack4xU8 unpack2x16snorm "
    "unpack2x16unorm unpack2x16float storageBarrier textureBarrier workgroupBarrier workgroupUniformLoad atomicLoad "
    "atomicStore atomicAdd subgroupAdd subgroupAll subgroupAny subgroupBallot subgroupBroadcast subgroupElect "
    "subgroupMax subgroupMin subgroupMul subgroupShuffle"
)
# A local name may be a built-in function's, which it then hides; a type's or a keyword it may not be.
FUNCTIONS = set(PREDECLARED[PREDECLARED.index("all any") :].split())
TAKEN = set(KEYWORDS.split()) | set(RESERVED.split()) | (set(PREDECLARED.split()) - FUNCTIONS)
DECLARED = re.compile(r"\b(?:let|var(?:<[^>]*>)?|const|fn)\s+(\w+)|(\w+)\s*:\s*(?:vec|u32|f32|i32|bool|array|mat)")
TEMPLATES = sorted((Path(emberlet.wgpu_backend.__file__).parent / "render" / "shaders").glob("*.wgsl"))


def _code(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def _check(text: str) -> None:
    """No declared name is reserved, no call refers to a shadowed function, and a block declares a name once."""
    blocks: list[set[str]] = [set()]
    code = _code(text)
    for match in re.finditer(r"[{}]|" + DECLARED.pattern, code):
        if match.group() == "{":
            blocks.append(set())
        elif match.group() == "}":
            blocks.pop()
        else:
            name = match[1] or match[2]
            assert name not in TAKEN, f"{name} is a word of WGSL:\n{text}"
            assert not name.startswith("__"), name
            if match[1] and "for (" not in code[max(0, match.start() - 5) : match.start()]:
                assert name not in blocks[-1], f"{name} is declared twice:\n{text}"
                blocks[-1].add(name)
            if name in FUNCTIONS:
                assert f"{name}(" not in code[match.end() :], f"{name} is hidden and called:\n{text}"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_templates_declare_no_word_of_wgsl(path: Path) -> None:
    for name in DECLARED.findall(_code(path.read_text(encoding="utf-8"))):
        assert (name[0] or name[1]) not in TAKEN


@pytest.mark.parametrize("device_class", ["gpu", "cpu", "swiftshader"])
def test_kernels_of_random_graphs_declare_names_once_and_no_word_of_wgsl(device_class: str) -> None:
    for seed in range(60):
        pool = Pool(random.Random(seed))
        inputs(pool)
        grow(pool, 10)
        backend = WgpuBackend(planning=True)
        try:
            program = pool.program(None)
            found = program.function()(*program.tensors(backend))
        except Skip:
            continue
        roots = [x.data for x in found if x.size and x.data.op != "host"]
        for apart in (True, False):
            for _, source in make_plan(roots, Options(device_class), bind_numbers=apart)[0].kernels if roots else ():
                _check(source)


def test_generated_names_are_no_words_of_wgsl_however_many_there_are() -> None:
    renderer = Renderer(Slots())
    names = [renderer.temporary(str(n), "0u") for n in range(200)]
    values = Builder()
    for n in range(200):
        names.append(renderer.name(values.make("function", "f32", (values.const(n, "f32"),), ("exp",))))
    assert len({*names}) == 400
    assert not {*names} & (TAKEN | FUNCTIONS)


@pytest.mark.parametrize("text", ["{{ a }}", "{{ a }}x", "x{{ a }}", "x {{a}} y {{ b }}", "{{ a }}{{ b }}", "x", ""])
def test_placeholders_are_replaced_wherever_they_stand(text):
    from emberlet.wgpu_backend.render.template import render

    wanted = text.replace("{{ a }}", "1").replace("{{a}}", "1").replace("{{ b }}", "22")
    assert render(text, {"a": 1, "b": 22}) == wanted
