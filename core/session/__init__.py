"""Session: a model with states that persist between calls (KV caches, LSTM states, ring buffers)."""

from ..errors import EmberletError, ShapeError
from ..tensor import Tensor
from .inputs import arguments_of, by_name, int_or_none, note_sizes
from .room import Growing, Room, copied, first_positions, in_room, separate, separated
from .table import entries, first_value


class Session:
    """A model and its states, made by `model.session(...)`. Only one thread may use it at a time; `fork` makes another
    session.

    model: the model, which the session does not change. capacity: the maximum number of positions, or None. length: the
    current number of positions along the axis of the first growing state; if none grows, the number of steps taken.
    """

    def __init__(self, model, capacity=None, initial=None, dims=None, state=None):
        most = int_or_none(capacity)
        if capacity is not None and (most is None or most < 1):
            raise EmberletError("capacity is a number of positions, 1 or more, found {!r}".format(capacity))
        for word, value in (("initial", initial), ("dims", dims)):
            if value is not None and not isinstance(value, dict):
                raise EmberletError("{} is a dict, by name; found {!r}".format(word, value))
        self.model = model
        self.capacity = most
        self.length = 0
        self._table = state
        self._entries = entries(model, state)
        self._dims = dict(dims or {})
        self._initial = {}
        for name in initial or {}:
            i = self._find(name)
            self._initial[i] = self._given(i, initial[name])
        self._values = None  # the states, in the order of the entries; None before the first step
        self._rooms = [None] * len(self._entries)
        self._snapshots = {}
        self._engine = None  # runs the steps as plans; False if there is nothing that does
        self._shares = None  # keeps what sessions of the model share (host/sharing/engines.py)
        self._stepping = False  # whether a step is under way
        self._first_step = False  # whether it is the first one, and has not ended well

    def __repr__(self):
        names = ", ".join([str(e.name) for e in self._entries])
        limit = "" if self.capacity is None else " of {}".format(self.capacity)
        return "Session({}, length {}{}, states {})".format(type(self.model).__name__, self.length, limit, names)

    # -- one step -------------------------------------------------------------------------------------------------

    def step(self, *args, **kwargs):
        """Run the model once and keep its states; returns the other outputs, as one value or a tuple.

        args, kwargs: the inputs other than states, positional or by name. Raises ShapeError if `capacity` is exceeded,
        and whatever the model raises; the session is then unchanged.
        """
        self._idle()
        try:  # what an interrupt may not separate is in one statement, here and in _become
            self._stepping = True
            given, arguments = self._ready(args, kwargs)
            return self._keep(given, arguments, *self._run(arguments))
        finally:
            self._stepping = False
            if self._first_step:
                self.reset()  # it failed, and another first step may have other sizes

    async def step_async(self, *args, **kwargs):
        """The awaitable form of `step`. Where Python cannot wait for the GPU, as in a tab without Promise Integration,
        only this form runs plans. Other tasks continue meanwhile, including those that step other sessions.

        Raises what `step` raises, and EmberletError if a step of this session is under way. A canceled step leaves the
        session unchanged.
        """
        self._idle()
        try:
            self._stepping = True
            given, arguments = self._ready(args, kwargs)
            found = None
            if self._on_engine() and hasattr(self._engine, "step_async"):
                found = await self._engine.step_async(arguments, self._check_capacity)
            return self._keep(given, arguments, *((tuple(found), True) if found is not None else self._run(arguments)))
        finally:
            self._stepping = False
            if self._first_step:
                self.reset()  # it failed, and another first step may have other sizes

    def _idle(self):
        if self._stepping:
            raise EmberletError("a step of this session is under way: await it before anything else")

    def _ready(self, args, kwargs):
        """(the states that the model is called with, all arguments that it is called with)."""
        if self._values is None:
            self._first_step = True
            self._begin(args, kwargs)
        given = []
        for i in range(len(self._entries)):
            value, entry = self._values[i], self._entries[i]
            room = None if entry.axis is None else self._room(i)
            if room is not None:
                value = Growing(room, value.shape[entry.axis], self.capacity, value)
            given.append(value)
        return given, arguments_of(self.model, self._entries, args, kwargs, given)

    def _keep(self, given, arguments, results, done):
        """Keep the states among the model's results; returns the others. done: whether they are computed."""
        if not isinstance(results, tuple):
            results = (results,)
        values, rooms, added = [], [], 0
        for i in range(len(self._entries)):
            entry = self._entries[i]
            if entry.output >= len(results):
                raise EmberletError(
                    "STATE names output {}, and the model returned {}".format(entry.output, len(results))
                )
            value, room = results[entry.output], None
            if entry.axis is not None:
                was = given[i].shape[entry.axis]
                now = value.shape[entry.axis]
                if now < was:
                    raise ShapeError(
                        "state {!r} has {} positions along axis {} after a step, {} before; an appended state does "
                        "not shrink".format(entry.name, now, entry.axis, was)
                    )
                self._check_capacity(now)
                value, room = in_room(given[i], value, arguments, now)
                if not added:
                    added = now - was
            else:  # an argument may be the caller's memory, such as a buffer that the next frame is read into
                value = separate(value, [x for x in arguments if x is not given[i]])
            values.append(value)
            rooms.append(room)
        near = values + [x for x in arguments if isinstance(x, Tensor)]
        if not done:
            near += [r.array for r in rooms if r is not None]
        outputs = separated(results, [e.output for e in self._entries], near, done)
        realize = getattr(values[0].backend, "realize", None) if values else None
        if realize is not None and not done:  # or a GPU would keep recording the history of a state
            realize(*[v for v in list(outputs) + values if isinstance(v, Tensor) and v.backend is values[0].backend])
        length = self.length + (added if any(e.axis is not None for e in self._entries) else 1)
        self._become({"_values": values, "_rooms": rooms, "length": length, "_first_step": False})
        self._tell("release", given, values)
        for i in range(len(rooms)):
            if rooms[i] is not None:
                rooms[i].belong(self)
        return outputs[0] if len(outputs) == 1 else outputs

    def _run(self, arguments):
        """(the model's results, whether they are computed already), by a plan if the backend keeps states itself."""
        if self._on_engine():
            found = self._engine.step(arguments, self._check_capacity)
            if found is not None:
                return tuple(found), True
        return self.model.forward(*arguments), False

    def _on_engine(self):
        if self._engine is None:
            self._engine = self._resident() or False
        return bool(self._engine)

    def _tell(self, name, *states):
        """Call a method of the engine, if it has one of that name."""
        told = getattr(self._engine or None, name, None)
        if told is not None:
            told(*states)

    def _resident(self):
        """The object that runs steps as plans, or None."""
        backend = self._values[0].backend if isinstance(self._values[0], Tensor) else None
        if getattr(backend, "name", None) == "numpy":
            from ..host.numpy_backend.resident import Resident
            from ..host.sharing.engines import shared

            key = ("numpy", repr(self._table), self.capacity)
            self._shares = shared(self.model, key, lambda: Resident(self.model, self._entries, backend))
            return self._shares.what
        make = getattr(backend, "resident", None)
        return make and make(self.model, self._entries, self.capacity)

    def _room(self, i):
        """The Room of an appended state, if its values are in one that this session may append to."""
        entry, value = self._entries[i], self._values[i]
        room = self._rooms[i]
        if room is None:
            return None
        if room.open(self, value.shape[entry.axis]):
            return room
        room = type(room)(value, entry.axis, room.length)  # separate from here on: a fork, or a rewind past one
        self._rooms[i] = room
        self._values[i] = room.view(value.shape[entry.axis])
        room.belong(self)
        return room

    def _check_capacity(self, length):
        if self.capacity is not None and length > self.capacity:
            raise ShapeError(
                "the session would hold {} positions, and its capacity is {}: rewind() or reset() it, or make it "
                "with a larger capacity=".format(length, self.capacity)
            )

    # -- the beginning --------------------------------------------------------------------------------------------

    def _begin(self, args, kwargs):
        """Make the initial states: those given, else zeros, with no positions along a growing axis."""
        sizes = dict(self._dims)
        if getattr(self.model, "INPUTS", None) is not None:
            note_sizes(sizes, self.model.INPUTS, by_name(self.model, self._entries, args, kwargs))
        values, rooms, length = [None] * len(self._entries), [None] * len(self._entries), 0
        for i in range(len(self._entries)):
            entry = self._entries[i]
            value = self._first(i, sizes)
            if entry.axis is not None:
                if entry.axis >= len(value.shape):
                    raise ShapeError(
                        "state {!r} grows along axis {}, and its first value has the shape {}".format(
                            entry.name, entry.axis, value.shape
                        )
                    )
                if not length:
                    length = value.shape[entry.axis]
                self._check_capacity(value.shape[entry.axis])
                room = Room.of(value, entry.axis, self.capacity)
                if room is not None:
                    value = room.view(value.shape[entry.axis])
                    room.belong(self)
                rooms[i] = room
            values[i] = value
        kept = {length: self._replaced(values)}
        self._become({"_values": values, "_rooms": rooms, "length": length, "_snapshots": kept})

    def _given(self, i, value):
        """A state's value from `initial`, as a Tensor with its own memory."""
        if not isinstance(value, Tensor):
            from ..functional.arrays import asarray

            known = self.model.INPUTS[self._entries[i].input][1] if getattr(self.model, "INPUTS", None) else None
            return asarray(value, dtype=None if hasattr(value, "shape") else known, device=self._home(), copy=True)
        return separate(value, [value])

    def _first(self, i, sizes):
        entry = self._entries[i]
        if i in self._initial:
            value, home = self._initial[i], self._home()
            return value if home is None or value.backend is home else value.to(home)
        return first_value(self.model, entry, sizes, self._home())

    def _home(self):
        """The backend of the model's first parameter, else the one the model was created for."""
        for _, param in self.model.named_params():
            return param.backend
        return getattr(self.model, "backend", None)

    # -- what else can be done with a state -----------------------------------------------------------------------

    def _find(self, name):
        for i in range(len(self._entries)):
            e = self._entries[i]
            if name in (e.name, e.result):
                return i
        known = ", ".join([repr(e.name) for e in self._entries])
        raise EmberletError("there is no state {!r}; the model has {}".format(name, known))

    def state(self, name):
        """A copy of a state, named by its input or its output, as a Tensor. Raises EmberletError for an unknown name,
        and before the first step unless `initial` gave it."""
        i = self._find(name)
        if self._values is None:
            if i not in self._initial:
                raise EmberletError("state {!r} has no value before the first step".format(name))
            return copied(self._first(i, {}))
        return copied(self._values[i])

    def reset(self):
        """Start over: the next step is the first one. `initial` and `dims` stay in force. Returns the session."""
        self._idle()
        before = self._values or ()
        rooms = [None] * len(self._entries)
        self._become({"_values": None, "_rooms": rooms, "_snapshots": {}, "length": 0, "_first_step": False})
        self._tell("release", before, ())
        return self

    def _become(self, fields):
        """Set several fields at once, so that an interrupt falls before or after."""
        if hasattr(memoryview, "cast"):
            self.__dict__.update(fields)
        else:  # MicroPython's objects have no writable __dict__
            for name in fields:
                setattr(self, name, fields[name])

    def fork(self):
        """An independent session that continues from here. Nothing is copied until both have appended."""
        self._idle()
        other = Session(self.model, self.capacity, None, self._dims, self._table)
        other.length = self.length
        other._initial = self._initial
        other._engine = self._engine
        other._shares = self._shares
        other._values = None if self._values is None else list(self._values)
        self._tell("share", self._values or ())
        other._rooms = list(self._rooms)
        other._snapshots = dict(self._snapshots)
        for i in range(len(self._rooms)):
            if self._rooms[i] is not None:
                self._rooms[i].keep(self._values[i].shape[self._entries[i].axis])
        return other

    __copy__ = fork

    def __getstate__(self):
        """The state for pickle and deepcopy, without plans and without the spare room of states."""
        kept = dict(self.__dict__)
        kept["_engine"] = kept["_shares"] = None
        kept["_stepping"] = kept["_first_step"] = False
        kept["_rooms"] = [None] * len(self._entries)
        return kept

    def __setstate__(self, kept):
        for name in kept:
            setattr(self, name, kept[name])
        for i in range(len(self._values or ())):
            entry = self._entries[i]
            if entry.axis is not None:
                room = Room.of(self._values[i], entry.axis, self.capacity)
                if room is not None:
                    self._values[i] = room.view(self._values[i].shape[entry.axis])
                    room.belong(self)
                self._rooms[i] = room

    def snapshot(self):
        """Keep the current values of replaced states, so that `rewind` can return to this length. It costs nothing if
        all states grow. Returns the length."""
        if self._values is not None:
            self._snapshots[self.length] = self._replaced(self._values)
            self._tell("share", self._values)
        return self.length

    def _replaced(self, values):
        return [v if e.axis is None else None for e, v in zip(self._entries, values)]

    def rewind(self, n):
        """Forget the last n positions (steps, if no state grows). Returns the session.

        Raises EmberletError if there are fewer, or if a replaced state has no snapshot at that length. The beginning
        always has one.
        """
        self._idle()
        found = n
        n = int_or_none(n)
        if n is None or not 0 <= n <= self.length:
            raise EmberletError("rewind needs 0 to {} positions, found {!r}".format(self.length, found))
        if not n:
            return self
        target = self.length - n
        kept = self._snapshots.get(target)
        replaced = [str(e.name) for e in self._entries if e.axis is None]
        if replaced and kept is None:
            raise EmberletError(
                "cannot rewind to length {}: each step replaces {}, and the value it had is gone; call snapshot() or "
                "fork() at each point to return to".format(target, ", ".join(replaced))
            )
        values = []
        for i in range(len(self._entries)):
            entry, value = self._entries[i], self._values[i]
            if entry.axis is None:
                value = kept[i]
            else:
                count = value.shape[entry.axis] - n
                if count < 0:
                    raise EmberletError("state {!r} has fewer than {} positions".format(entry.name, n))
                value = first_positions(value, entry.axis, count)
            values.append(value)
        snapshots = {}
        for length in self._snapshots:
            if length <= target:
                snapshots[length] = self._snapshots[length]
        self._become({"_values": values, "length": target, "_snapshots": snapshots})
        return self

    # -- for models that ask how long the past is -----------------------------------------------------------------

    def positions(self, new, batch=1):
        """int64 (batch, new): length, length + 1, …, the usual input position_ids."""
        from .. import dtypes

        new, batch = self._new(new, batch)
        backend = self._home()
        if backend is None:
            from ..backend import get_backend

            backend = get_backend()
        row = backend.reshape(backend.arange(self.length, 1, new, dtypes.int64), (1, new))
        return row if batch == 1 else backend.concat([row] * batch, 0)

    def attention_mask(self, new, batch=1):
        """int64 ones (batch, length + new): the usual input attention_mask, without padding."""
        from .. import dtypes
        from ..functional.creation.fills import ones

        new, batch = self._new(new, batch)
        return ones((batch, self.length + new), dtype=dtypes.int64, device=self._home())

    def _new(self, new, batch):
        sizes = int_or_none(new), int_or_none(batch)
        if sizes[0] is None or sizes[1] is None or sizes[0] < 0 or sizes[1] < 1:
            raise EmberletError("new positions are 0 or more, of a batch of 1 or more; found {!r}".format((new, batch)))
        return sizes
