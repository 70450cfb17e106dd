"""Types of emberlet.param.identity (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

class ParamId:
    """The 64-bit identity of a parameter.

    value: int. Written, as Burn does, as its little-endian bytes in base 32 (13 characters). Random unless given."""
    value: int
    def __init__(self, value: int | None = ...) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
