"""Elementwise functions that WebAssembly has no instruction for, as functions of the module.

Functions common in networks work on four float32 at once; the others on one number, in float64 where that rounds
correctly almost everywhere. tests/wasm/test_library.py states the error of each.
"""

from ..assembler import Function, f32x4, op
from . import integers, numbers, vectors


class _Function(Function):
    """A function of this library. relaxed: whether its multiply-adds of vectors are fused."""

    def __init__(self, name, params, results, relaxed):
        Function.__init__(self, name, params, results)
        self.relaxed = relaxed

    def fused(self, a, b, c):
        """a b + c."""
        return op("f32x4.relaxed_madd", a, b, c) if self.relaxed else a * b + c

    def poly(self, z, terms):
        """The polynomial in z with coefficients `terms`, highest first, by Horner's scheme."""
        out = f32x4(terms[0])
        for c in terms[1:]:
            out = self.fused(out, z, f32x4(c))
        return out


# name -> (types of the parameters, type of the result, function that writes the code)
_FUNCTIONS = {}
for _module in (vectors, numbers, integers):
    _FUNCTIONS.update(_module.FUNCTIONS)
# Operations that are functions of four float32, and of one.
VECTOR = tuple([name for name in _FUNCTIONS if _FUNCTIONS[name][:2] == (("v128",), "v128")])
ONE = tuple([name for name in _FUNCTIONS if _FUNCTIONS[name][:2] == (("f32",), "f32")])
_made = {}


def function(name, relaxed=False):
    """The Function of that name. relaxed: whether to use relaxed SIMD."""
    key = name, relaxed
    if key not in _made:
        params, result, build = _FUNCTIONS[name]
        f = _Function(name, params, (result,), relaxed)
        build(f)
        _made[key] = f.finish()
    return _made[key]


def result_type(name):
    """The type of a function's result."""
    return _FUNCTIONS[name][1]
