"""Waiting for a Param that another thread is initializing, with deadlock detection."""

import _thread

from ..errors import refuse

_waiting = {}  # thread -> the Param it waits for
_guard = _thread.allocate_lock()


def wait(param, me):
    """Acquire the lock of `param`. Raises EmberletError if its owner is itself waiting for a Param that this thread is
    initializing.

    Of two threads that would deadlock, the later one sees the other's entry, and so the cycle.
    """
    with _guard:
        found = param
        while found is not None:
            owner = found._owner
            if owner == me:
                refuse("param circle", param.shape)
            found = _waiting.get(owner)
        _waiting[me] = param
    try:
        param._lock.acquire()
    finally:
        with _guard:
            del _waiting[me]
