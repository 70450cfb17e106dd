"""Types of emberlet.param (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from collections.abc import Callable, Sequence
from typing import Any, Self

from ..backend import Backend
from ..dtypes import DType
from ..tensor import Tensor
from .identity import ParamId

class Param:
    """A parameter: a Tensor with an identity, possibly lazy.

    `Param(tensor)` holds its value already; `Param.uninitialized(init, shape, dtype, backend)` is lazy. `val()` returns
    the tensor. shape, dtype and backend are known without initializing it. require_grad: whether the value is a leaf
    that requires a gradient where the backend is an autodiff backend."""
    require_grad: bool | bool | None
    def __init__(self, value: Tensor, id: ParamId | None = ..., require_grad: bool | None = ...) -> None: ...
    @staticmethod
    def uninitialized(init: Callable[[tuple[int, ...], DType, Backend], Tensor], shape: Sequence[int], dtype: DType | str | None = ..., backend: Backend | str | None = ..., require_grad: bool | None = ..., id: ParamId | None = ...) -> Param:
        """A lazy Param. init(shape, dtype, backend) -> Tensor makes its value; dtype: float32 unless given."""
    @staticmethod
    def zeros(shape: Sequence[int], dtype: DType | str | None = ..., backend: Backend | str | None = ..., require_grad: bool | None = ...) -> Param:
        """A lazy Param initialized with zeros: a placeholder for a value to load."""
    def val(self) -> Tensor:
        """The value, initialized now if this Param is lazy. If the initializer raises, the Param stays lazy and the
        next call tries again."""
    def set(self, value: Tensor, id: ParamId | None = ...) -> Self:
        """Set another value (a Tensor), keeping the mappers and, unless another is given, the identity.

        Raises EmberletError if it is not a Tensor, such as the None of a mapper that forgot to return."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Tuple of int."""
    @property
    def dtype(self) -> DType:
        """The dtype of the value, also before it is initialized."""
    @property
    def backend(self) -> Backend:
        """The backend of the value, also before it is initialized."""
    def loaded(self, tensor: Tensor) -> Tensor:
        """`tensor`, from a record, as a value of this Param: on its backend, in its dtype, through the load mapper. The
        Param does not change.

        Raises DTypeError for another kind of number and for integers out of its dtype's range, ShapeError if the
        result's shape differs from the Param's."""
    @property
    def is_initialized(self) -> bool:
        """Whether the value exists; asking does not initialize it."""
    @property
    def id(self) -> ParamId:
        """The ParamId, created on first use."""
    @property
    def size(self) -> int:
        """The number of elements."""
    def clone(self) -> Param:
        """Another Param of the same identity and mappers. A lazy one stays lazy and makes a value of its own."""
    def __copy__(self) -> Param:
        """Another Param of the same identity and mappers. A lazy one stays lazy and makes a value of its own."""
    def __deepcopy__(self, memo: Any) -> Param: ...
    def __reduce__(self) -> Any:
        """Pickled with its value, which is initialized now if the Param is lazy, because an initializer may be any
        function."""
    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Replace the value by function(value), initializing it first if lazy; identity and mappers are kept.

        Raises EmberletError, and keeps the value, if the function does not return a Tensor."""
    def init_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to the initialized value: now if it exists, else after the initializer (and after earlier
        such functions). It is not applied to a value that is loaded instead."""
    def load_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to every value that is loaded from a record."""
    def save_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to the value that is saved in a record; the Param keeps its own value."""
    def set_require_grad(self, require_grad: bool) -> Self:
        """Set whether training changes the Param; returns the Param."""
    def to(self, backend: Backend | str) -> Self:
        """Move the value to another backend; a lazy Param will be initialized there."""
    def cast(self, dtype: DType | str) -> Self:
        """Convert the value to another dtype; a lazy Param will be initialized in it. Returns self. Raises DTypeError for a
        dtype that does not exist."""
    def saved(self) -> Tensor:
        """The value for a record, through the save mapper. Assigning to it does not change the Param."""
