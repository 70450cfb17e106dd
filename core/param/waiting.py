"""Whether waiting for a Param that is being initialized would end."""

from ..errors import refuse


def check(param, me, waiting):
    """Raises EmberletError if this thread is initializing `param`, or if the thread that does itself waits, directly or
    through others, for a Param that this thread is initializing. waiting: for each thread the Param it waits for.

    Of two threads that would deadlock, the later one sees the other's entry, and so the cycle.
    """
    found = param
    for _ in range(len(waiting)):
        owner = found._owner
        if owner == me:
            waiting.pop(me, None)
            refuse("same param" if found is param else "param circle", param.shape)
        found = waiting.get(owner)
        if found is None:
            return
