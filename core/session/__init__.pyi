"""Types of emberlet.session (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ..module import Module
from ..tensor import Tensor

class Session:
    """A model and its states, made by `model.session(...)`. Only one thread may use it at a time; `fork` makes another
    session.

    model: the model, which the session does not change. capacity: the maximum number of positions, or None. length: the
    current number of positions along the axis of the first growing state; if none grows, the number of steps taken."""
    model: Module
    capacity: int | None
    length: int
    def __init__(self, model: Module, capacity: int | None = ..., initial: Mapping[str, Any] | None = ..., dims: Mapping[str, int] | None = ..., state: Sequence[Sequence[Any]] | None = ...) -> None: ...
    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model once and keep its states; returns the other outputs, as one value or a tuple.

        args, kwargs: the inputs other than states, positional or by name. Raises ShapeError if `capacity` is exceeded,
        and whatever the model raises; the session is then unchanged."""
    async def step_async(self, *args: Any, **kwargs: Any) -> Any:
        """The awaitable form of `step`. Where Python cannot wait for the GPU, as in a tab without Promise Integration,
        only this form runs plans. Other tasks continue meanwhile, including those that step other sessions.

        Raises what `step` raises, and EmberletError if a step of this session is under way. A canceled step leaves the
        session unchanged."""
    def state(self, name: str) -> Tensor:
        """A copy of a state, named by its input or its output, as a Tensor. Raises EmberletError for an unknown name,
        and before the first step unless `initial` gave it."""
    def reset(self) -> Self:
        """Start over: the next step is the first one. `initial` and `dims` stay in force. Returns the session."""
    def fork(self) -> Self:
        """An independent session that continues from here. Nothing is copied until both have appended."""
    def snapshot(self) -> int:
        """Keep the current values of replaced states, so that `rewind` can return to this length. It costs nothing if
        all states grow. Returns the length."""
    def rewind(self, n: int) -> Self:
        """Forget the last n positions (steps, if no state grows). Returns the session.

        Raises EmberletError if there are fewer, or if a replaced state has no snapshot at that length. The beginning
        always has one."""
    def positions(self, new: int, batch: int = ...) -> Tensor:
        """int64 (batch, new): length, length + 1, …, the usual input position_ids."""
    def attention_mask(self, new: int, batch: int = ...) -> Tensor:
        """int64 ones (batch, length + new): the usual input attention_mask, without padding."""

def __getattr__(name: str) -> Any: ...
