"""The backend protocol: what a backend must do, in one place.

A backend knows about buffers and kernels, and nothing about the library's semantics. Its primitives take and return
`Tensor`s whose `data` only that backend understands. The functional layer has already checked and normalized
everything:

- all tensor operands belong to this backend (`x.backend is self`) and binary operands have the same dtype;
- axes are non-negative and sorted, shapes are tuples of int, sequences have the length the rank asks for;
- shapes fit: a primitive may rely on it. Operands of `binary` and `where` still broadcast (NumPy's rule).

A primitive never changes its operands, may return views of them, and may be lazy: only `to_bytes`, `to_list` and
`nonzero` must have the values. Everything else in the library is a composite, written once in `core/functional` in
terms of these primitives. A backend that can do a composite faster defines a method with the composite's name and
signature (`softmax(self, x, axis)`) and receives all of its calls; docs/functions.md marks which functions can be
overridden. Most pass on their arguments unchanged, at least one of them a tensor of this backend. Those that the
built-in backends override (`OVERRIDES`, which the tests compare with the composites) do so after their checks: all
arguments are positional, axes are non-negative and tensors have the right dtype. Within such a method the composite
ignores the method, so that it may call the function it overrides. `backend.extend` adds an operation to a backend from
outside.
"""

from ..errors import refuse
from . import Backend

# fmt: off
UNARY = (
    "neg", "abs", "sign", "floor", "ceil", "round", "trunc",  # round: half to even
    "sqrt", "exp", "expm1", "log", "log1p", "erf",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "isnan", "isinf", "logical_not", "bitwise_not",
)
BINARY = (
    "add", "sub", "mul", "div",  # div: true division of floats; for integers truncates toward zero (C)
    "floor_divide", "remainder", "fmod",  # remainder takes the divisor's sign, fmod the dividend's
    "pow", "atan2", "maximum", "minimum",  # maximum and minimum propagate NaN
    "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right",  # shifts keep the dtype
    "logical_and", "logical_or", "logical_xor",
    "eq", "ne", "lt", "le", "gt", "ge",
)
REDUCE = ("sum", "prod", "max", "min", "any", "all")
CUMULATIVE = ("sum", "prod", "max", "min")
SCATTER = ("none", "add", "mul", "max", "min")
BOOLEAN_RESULT = ("isnan", "isinf", "logical_not", "logical_and", "logical_or", "logical_xor",
                  "eq", "ne", "lt", "le", "gt", "ge", "any", "all")
# fmt: on


class Protocol(Backend):
    """Every primitive, documented; each raises UnsupportedError until a subclass implements it (`backend.register`
    makes the subclass known)."""

    def _no(self, what):
        refuse("no kernel", what, "the {!r}".format(self))

    # -- data in and out ------------------------------------------------------------------------------------------

    def from_bytes(self, data, dtype, shape):
        """Tensor over little-endian row-major bytes (bytes, bytearray, memoryview), borrowed where possible.

        Elements narrower than 8 bits are packed first-in-lowest-bits, as ONNX packs them. bool is one byte each.
        """
        self._no("from_bytes")

    def to_bytes(self, x):
        """The elements of x as row-major bytes in the layout of `from_bytes`; may be a view of x."""
        self._no("to_bytes")

    def from_list(self, values, dtype, shape):
        """Tensor from a flat list of Python numbers, bools or (dtype string) str."""
        self._no("from_list")

    def to_list(self, x):
        """The elements of x as a flat list of Python numbers, bools or str."""
        self._no("to_list")

    # -- creation -------------------------------------------------------------------------------------------------

    def full(self, shape, value, dtype):
        """Every element `value` (a Python number)."""
        self._no("full")

    def arange(self, start, step, count, dtype):
        """start, start+step, … (count elements), computed as start + i*step."""
        self._no("arange")

    def random_bits(self, shape, key, counter):
        """uint32 tensor of Philox 4×32-10 output (Salmon et al. 2011): element i is word i%4 of the block with the
        128-bit counter (counter + i//4) and the 64-bit key `key`; the same integers on every backend."""
        self._no("random_bits")

    # -- elementwise ----------------------------------------------------------------------------------------------

    def unary(self, op, x):
        """op of UNARY; the result has x's dtype, or bool for BOOLEAN_RESULT."""
        self._no("unary " + op)

    def binary(self, op, a, b):
        """op of BINARY on operands of one dtype that broadcast; bool for BOOLEAN_RESULT, else the operands' dtype.
        Integers wrap; integer division and remainder by zero give 0."""
        self._no("binary " + op)

    def where(self, condition, a, b):
        """a where condition (bool) holds, else b; all three broadcast."""
        self._no("where")

    def cast(self, x, dtype, saturate=True):
        """x in another dtype. Float to integer truncates and, out of range, saturates; integer to integer wraps; any
        to bool is != 0; float to 8-, 6- and 4-bit float rounds to even and saturates unless `saturate` is False (ONNX);
        to float8_e8m0fnu it rounds up to the next power of two."""
        self._no("cast")

    def bitcast(self, x, dtype):
        """The same bits as another dtype of the same width."""
        self._no("bitcast")

    # -- reductions, order ----------------------------------------------------------------------------------------

    def reduce(self, op, x, axes, keepdims):
        """op of REDUCE over axes. sum and prod keep x's dtype (the functional layer widens integers beforehand); an
        empty reduction gives the identity; max and min propagate NaN. Floats narrower than 32 bits are accumulated
        (here and in every other primitive that adds) in float32 or wider, and the result is rounded once."""
        self._no("reduce " + op)

    def argreduce(self, op, x, axis, keepdims):
        """op "max" or "min": int64 index of the first extreme element along axis."""
        self._no("argreduce")

    def cumulative(self, op, x, axis):
        """Inclusive scan along axis, op of CUMULATIVE."""
        self._no("cumulative")

    def sort(self, x, axis, descending):
        """(values, int64 indices) stably sorted along axis; equal elements keep their order also when descending;
        NaN sorts last (first when descending)."""
        self._no("sort")

    # -- linear algebra and windows -------------------------------------------------------------------------------

    def matmul(self, a, b):
        """(…, m, k) @ (…, k, n) -> (…, m, n); both have rank >= 2 and their leading dimensions broadcast."""
        self._no("matmul")

    def conv(self, x, weight, bias, stride, padding, dilation, groups):
        """Cross-correlation: x (n, c, *spatial), weight (m, c // groups, *kernel), bias (m,) or None; padding is a
        (low, high) pair per spatial axis, zeros. Any number of spatial axes >= 1."""
        self._no("conv")

    def pool(self, op, x, kernel, stride, padding, dilation):
        """Window reduction of x (n, c, *spatial): op "max" or "sum"; padding contributes the identity."""
        self._no("pool")

    # -- indexing -------------------------------------------------------------------------------------------------

    def take(self, x, indices, axis):
        """Slices of x along axis: shape x[:axis] + indices.shape + x[axis+1:]. Integer indices, negative ones count
        from the end (in take, gather and scatter alike)."""
        self._no("take")

    def gather(self, x, indices, axis):
        """out[i][j][k] = x[indices[i][j][k]][j][k] for axis 0; indices has x's rank, no broadcasting."""
        self._no("gather")

    def scatter(self, x, indices, updates, axis, op):
        """x with x[indices[i][j][k]][j][k] (op)= updates[i][j][k] for axis 0; op of SCATTER, in order."""
        self._no("scatter")

    def nonzero(self, x):
        """int64 (rank, count): indices of the elements that are not zero, in row-major order."""
        self._no("nonzero")

    # -- movement -------------------------------------------------------------------------------------------------

    def reshape(self, x, shape):
        """Row-major; shape holds the same number of elements and no -1."""
        self._no("reshape")

    def permute(self, x, axes):
        """Axis i of the result is axis axes[i] of x."""
        self._no("permute")

    def expand(self, x, shape):
        """Broadcast to shape, by NumPy's rule."""
        self._no("expand")

    def slice(self, x, starts, sizes, steps):
        """Per axis: start, start+step, … (size elements); step may be negative; all positions are inside."""
        self._no("slice")

    def pad(self, x, padding, value):
        """A (low, high) pair per axis, both >= 0, filled with `value` (a Python number)."""
        self._no("pad")

    def concat(self, tensors, axis):
        """Tensors of one dtype, joined along axis."""
        self._no("concat")
