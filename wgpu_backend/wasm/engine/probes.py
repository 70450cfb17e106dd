"""One-function modules that an engine accepts only if it has an extension of WebAssembly."""

_HEAD = b"\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\n"
_CONSTANT = b"\xfd\x0c" + bytes(16)

# v128.const, drop
SIMD = _HEAD + b"\x17\1\x15\0" + _CONSTANT + b"\x1a\x0b"
# three times v128.const, f32x4.relaxed_madd, drop
RELAXED = _HEAD + b"\x3e\1\x3c\0" + _CONSTANT * 3 + b"\xfd\x85\x02\x1a\x0b"

NO_SIMD = "this browser's WebAssembly has no SIMD, which compiled models need"
