"""Weights that a module's file holds in fewer bits, and the function that expands them, which is called once.

"float16", "q8" and "levels" are those of plans (plan/stored.py). The encoded elements lie at the end of the memory that
the weight will fill. Expansion starts at its beginning, so that no encoded element is overwritten before it is read.
The scales of q8 and of levels lie behind all buffers.
"""

from .assembler import Function, f32, f32x4, i32, i32x4, memory, op

BLOCK = 32  # elements per scale
BLOCK_BYTES = 128  # bytes of a block of float32; a weight's memory is a multiple of it


def expansion(parts):
    """The function "expand" of a module. parts: (how, address of the weight, elements, address of the encoded elements,
    address of the scales or None). how: "float16", "q8", or the numbers of levels (plan/narrowing.py)."""
    f = Function("expand", ())
    for how, to, count, at, scales in parts:
        if not isinstance(how, str):
            _levels(f, to, count, at, scales, *how)
            continue
        blocks = (count + BLOCK - 1) // BLOCK
        number = f.local("i32")
        f.set(number, i32(0))
        f.begin_loop()
        _EXPAND[how](f, f.get(number), to, at, scales)
        f.set(number, op("i32.add", f.get(number), i32(1)))
        f.branch_if(op("i32.lt_u", f.get(number), i32(blocks)), 0)
        f.end()
    return f.finish()


def nbytes(how, count):
    """(bytes of the encoded elements, of the scales), those of blocks whole."""
    if not isinstance(how, str):
        return count, 4 * how[1]
    blocks = (count + BLOCK - 1) // BLOCK
    return (2 * BLOCK * blocks, 0) if how == "float16" else (BLOCK * blocks, 2 * blocks)


def _levels(f, to, count, at, scales, each, channels, offset):
    if channels == 1:
        each = count
    source, target, channel, left = [f.local("i32") for _ in range(4)]
    scale = f.local("f32")
    f.set(source, i32(at))
    f.set(target, i32(to))
    f.set(channel, i32(0))
    f.begin_loop()
    f.set(scale, memory("f32.load", op("i32.shl", f.get(channel), i32(2)), offset=scales))
    f.set(left, i32(each))
    f.begin_loop()
    whole = op("i32.add", memory("i32.load8_s", f.get(source)), i32(offset))
    f.do(memory("f32.store", f.get(target), op("f32.mul", op("f32.convert_i32_s", whole), f.get(scale))))
    for name, step in ((source, 1), (target, 4), (left, -1)):
        f.set(name, op("i32.add", f.get(name), i32(step)))
    f.branch_if(f.get(left), 0)
    f.end()
    f.set(channel, op("i32.add", f.get(channel), i32(1)))
    f.begin_if(op("i32.eq", f.get(channel), i32(channels)))
    f.set(channel, i32(0))
    f.end()
    f.branch_if(op("i32.lt_u", f.get(source), i32(at + count)), 0)
    f.end()


def _place(block, nbytes, start):
    return op("i32.add", op("i32.mul", block, i32(nbytes)), i32(start))


def _q8(f, block, to, at, scales):
    half = f.let(memory("i32.load16_u", _place(block, 2, scales)))
    bits = op("f32.reinterpret_i32", op("i32.shl", op("i32.and", half, i32(0x7FFF)), i32(13)))
    scale = f.let(op("f32x4.splat", bits * f32(2.0**112)))  # scales are positive
    source = f.let(_place(block, BLOCK, at))
    halves = [f.let(memory("v128.load", source, offset=16 * n)) for n in range(2)]
    to = f.let(_place(block, BLOCK_BYTES, to))
    for n in range(2):
        for i, eight in enumerate(("low", "high")):
            words = f.let(op("i16x8.extend_" + eight + "_i8x16_s", halves[n]))
            for k, four in enumerate(("low", "high")):
                whole = op("f32x4.convert_i32x4_s", op("i32x4.extend_" + four + "_i16x8_s", words))
                f.do(memory("v128.store", to, whole * scale, offset=64 * n + 32 * i + 16 * k))


def _float16(f, block, to, at, scales):
    # The exponent's bias grows from 15 to 127 by a product, which also makes subnormal numbers normal.
    source = f.let(_place(block, 2 * BLOCK, at))
    eights = [f.let(memory("v128.load", source, offset=16 * n)) for n in range(4)]
    to = f.let(_place(block, BLOCK_BYTES, to))
    for n in range(4):
        for k, four in enumerate(("low", "high")):
            words = f.let(op("i32x4.extend_" + four + "_i16x8_u", eights[n]))
            size = op("i32x4.shl", op("v128.and", words, i32x4(0x7FFF)), i32(13)) * f32x4(2.0**112)
            sign = op("i32x4.shl", op("v128.and", words, i32x4(0x8000)), i32(16))
            f.do(memory("v128.store", to, op("v128.or", size, sign), offset=32 * n + 16 * k))


_EXPAND = {"q8": _q8, "float16": _float16}
