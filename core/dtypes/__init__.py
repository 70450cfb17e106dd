"""Data types: those of the array API standard, and the narrow ones in which ONNX and Burn store weights.

Promotion follows the array API standard (2024.12) where it is defined. Beyond that, an integer or bool with a
floating-point dtype gives the floating-point dtype, and two different 16-bit (or narrower) floats give float32.
"""

from ..errors import refuse

ALL = []
BY_NAME = {}


class DType:
    """An element type. There is one instance of each, compared by identity.

    name: the standard's name ("float32"); kind: "float", "int", "uint", "bool" or "string"; bits: stored width of one
    element; code: the `array` and `struct` type code, or None if Python has none; burn: its name in a burnpack.
    """

    def __init__(self, name, kind, bits, code=None, burn=None):
        self.name = name
        self.kind = kind
        self.bits = bits
        self.code = code
        self.burn = burn
        ALL.append(self)
        BY_NAME[name] = self

    @property
    def itemsize(self):
        """Size of one element in bytes, at least 1 (6-, 4- and 2-bit elements are packed: see nbytes)."""
        return max(1, self.bits // 8)

    def nbytes(self, count):
        """Size of `count` packed elements, in bytes."""
        return (count * self.bits + 7) // 8

    @property
    def is_float(self):
        """Whether this is a float dtype of any width."""
        return self.kind == "float"

    @property
    def is_integer(self):
        """Whether this is a signed or unsigned integer dtype."""
        return self.kind == "int" or self.kind == "uint"

    @property
    def range(self):
        """(smallest, largest) number of an integer dtype."""
        signed = self.kind == "int"
        return -signed << (self.bits - 1), (1 << (self.bits - signed)) - 1

    @property
    def is_bool(self):
        """Whether this is bool."""
        return self.kind == "bool"

    def __repr__(self):
        return "emberlet." + self.name

    def __str__(self):
        return self.name

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return dtype, (self.name,)  # a copy is the same instance


float64 = DType("float64", "float", 64, "d", "F64")
float32 = DType("float32", "float", 32, "f", "F32")
float16 = DType("float16", "float", 16, "e", "F16")
bfloat16 = DType("bfloat16", "float", 16, None, "BF16")
float8_e4m3fn = DType("float8_e4m3fn", "float", 8)
float8_e4m3fnuz = DType("float8_e4m3fnuz", "float", 8)
float8_e5m2 = DType("float8_e5m2", "float", 8)
float8_e5m2fnuz = DType("float8_e5m2fnuz", "float", 8)
float8_e8m0fnu = DType("float8_e8m0fnu", "float", 8)
float6_e2m3fn = DType("float6_e2m3fn", "float", 6)
float6_e3m2fn = DType("float6_e3m2fn", "float", 6)
float4_e2m1fn = DType("float4_e2m1fn", "float", 4)
int64 = DType("int64", "int", 64, "q", "I64")
int32 = DType("int32", "int", 32, "i", "I32")
int16 = DType("int16", "int", 16, "h", "I16")
int8 = DType("int8", "int", 8, "b", "I8")
int4 = DType("int4", "int", 4)
int2 = DType("int2", "int", 2)
uint64 = DType("uint64", "uint", 64, "Q", "U64")
uint32 = DType("uint32", "uint", 32, "I", "U32")
uint16 = DType("uint16", "uint", 16, "H", "U16")
uint8 = DType("uint8", "uint", 8, "B", "U8")
uint4 = DType("uint4", "uint", 4)
uint2 = DType("uint2", "uint", 2)
bool = DType("bool", "bool", 8, "B", "Bool")
string = DType("string", "string", 0)


def dtype(name):
    """The DType called `name` ("float32"; also "f4", numpy.float32, float), or `name` itself if it is a DType. Raises
    DTypeError."""
    if isinstance(name, DType):
        return name
    found = BY_NAME.get(str(name))
    if found is None:
        from .alias import alias

        found = alias(name)
        if found is None:
            refuse("dtype", name, ", ".join(sorted(BY_NAME)))
    return found


def promote(a, b):
    """The dtype of a binary operation on dtypes a and b. Raises DTypeError if no dtype can represent both."""
    if a is b:
        return a
    from .promotion import promoted

    return promoted(a, b)
