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
    """A parameter: a Tensor with an identity, known before it exists.

    `Param(tensor)` holds its value already; `Param.uninitialized(init, shape, dtype, backend)` is lazy. `val()` gives
    the tensor. shape, dtype and backend are known without making it. require_grad is carried along for a backend that
    differentiates and means nothing to the others."""
    require_grad: bool | bool | None
    def __init__(self, value: Tensor, id: ParamId | None = ..., require_grad: bool | None = ...) -> None: ...
    @staticmethod
    def uninitialized(init: Callable[[tuple[int, ...], DType, Backend], Tensor], shape: Sequence[int], dtype: DType | str | None = ..., backend: Backend | str | None = ..., require_grad: bool | None = ..., id: ParamId | None = ...) -> Param:
        """A lazy Param. init(shape, dtype, backend) -> Tensor makes its value; dtype: float32 unless given."""
    @staticmethod
    def zeros(shape: Sequence[int], dtype: DType | str | None = ..., backend: Backend | str | None = ..., require_grad: bool | None = ...) -> Param:
        """A lazy Param whose elements begin as 0: the place of a value that will be loaded."""
    def val(self) -> Tensor:
        """The value, made now if this Param is lazy. What the initializer raises leaves it lazy: the next call tries
        again."""
    def set(self, value: Tensor, id: ParamId | None = ...) -> Self:
        """Give it another value (a Tensor), keeping the mappers and, unless another is given, its identity.

        Raises EmberletError for what is no Tensor, such as the None of a mapper that forgot to return."""
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
        """What `tensor`, from a record, becomes as this Param's value: on its backend, in its dtype, through the load
        mapper. The Param does not change.

        Raises DTypeError for another kind of number and for integers that its dtype does not hold, ShapeError where
        the result has another shape than the Param."""
    @property
    def is_initialized(self) -> bool:
        """Whether the value exists; asking does not initialize it."""
    @property
    def id(self) -> ParamId:
        """The ParamId, made when first asked for."""
    @property
    def size(self) -> int:
        """The number of elements."""
    def clone(self) -> Param:
        """Another Param of the same identity and mappers. A lazy one stays lazy and makes a value of its own."""
    def __copy__(self) -> Param:
        """Another Param of the same identity and mappers. A lazy one stays lazy and makes a value of its own."""
    def __deepcopy__(self, memo: Any) -> Param: ...
    def __reduce__(self) -> Any:
        """Pickled with its value, which is made now if the Param is lazy: an initializer may be any function."""
    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Replace the value by function(value), making it first where lazy; identity and mappers stay.

        Raises EmberletError where the function returns no Tensor; the value stays."""
    def init_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to the value once it is made: now if it is there, else behind the initializer (and
        behind earlier such functions). A value that is loaded instead does not go through it."""
    def load_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to every value that is loaded from a record."""
    def save_mapper(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply function(tensor) to what goes into a record; the Param keeps its own value."""
    def set_require_grad(self, require_grad: bool) -> Self:
        """Set `require_grad` and return the Param. No backend differentiates."""
    def to(self, backend: Backend | str) -> Self:
        """Move the value to another backend, or make it there where lazy."""
    def saved(self) -> Tensor:
        """What goes into a record: the value through the save mapper. Assigning to it leaves the Param as it is."""
