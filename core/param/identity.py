"""ParamId: identifies a parameter across cloning, mapping, saving and loading."""

_BASE32 = "0123456789abcdefghijklmnopqrstuv"


class ParamId:
    """The 64-bit identity of a parameter.

    value: int. Written, as Burn does, as its little-endian bytes in base 32 (13 characters). Random unless given.
    """

    __slots__ = ("value",)

    def __init__(self, value=None):
        self.value = _random_64() if value is None else int(value)

    def __eq__(self, other):
        return isinstance(other, ParamId) and other.value == self.value

    def __hash__(self):
        return hash(self.value)

    def __str__(self):
        text = ""
        bits = int.from_bytes(self.value.to_bytes(8, "little"), "big") << 1
        for i in range(12, -1, -1):
            text += _BASE32[(bits >> (5 * i)) & 31]
        return text

    def __repr__(self):
        return "ParamId({!r})".format(str(self))


def _random_64():
    try:
        from os import urandom

        return int.from_bytes(urandom(8), "little")
    except ImportError:
        from random import getrandbits

        return getrandbits(32) << 32 | getrandbits(32)
