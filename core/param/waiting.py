"""Waiting for a Param that another thread is making, and telling when the two would wait for each other for ever."""

import _thread

from ..errors import refuse

_waiting = {}  # thread -> the Param it waits for
_guard = _thread.allocate_lock()


def wait(param, me):
    """Take the lock of `param`. Raises EmberletError where its owner waits, in turn, for what this thread is making.

    Of two threads that would wait for each other the later one sees the other's entry, and so the circle.
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
