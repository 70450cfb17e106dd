"""Config: the settings of a module, saved beside its weights.

    class FeedForwardConfig(Config):
        d_model: int
        d_ff: int
        dropout: float = 0.1

        def init(self, backend=None):
            return FeedForward(self.d_model, self.d_ff, self.dropout, backend=backend)

    config = FeedForwardConfig(512, 2048).with_dropout(0.2)
    config.save("config.json")

Annotated names are the fields, in order; those without a value are required. MicroPython keeps no annotations: a Config
that is to run there names its fields as well, FIELDS = ("d_model", "d_ff", "dropout"), and the classes of nested ones,
NESTED = {"inner": InnerConfig}.
"""

import json

from .errors import EmberletError, FormatError

_MISSING = object()


class Config:
    """Subclass it and annotate the fields. Configs are equal if their fields are, and are changed by copying:
    `with_dropout(0.2)` is a copy with another dropout.

    Raises EmberletError for fields that are missing, unknown or given twice, and on CPython for values that do not have
    the type of their field (`Literal` and enums too), with their names.
    """

    FIELDS = None
    NESTED = None

    def __init__(self, *args, **kwargs):
        names = _fields(type(self))
        if len(args) > len(names):
            self._bad("takes {} values, found {}".format(len(names), len(args)))
        for i in range(len(args)):
            if names[i] in kwargs:
                self._bad("has two values for {!r}".format(names[i]))
            kwargs[names[i]] = args[i]
        unknown = [key for key in kwargs if key not in names]
        if unknown:
            self._bad("has no field {}; it has {}".format(", ".join(sorted(unknown)), ", ".join(names)))
        missing = []
        for name in names:
            value = kwargs[name] if name in kwargs else _default(type(self), name)
            if value is _MISSING:
                missing.append(name)
            # A mutable default is copied for each config.
            setattr(self, name, value if name in kwargs else _copy(value))
        if missing:
            self._bad("needs {}".format(", ".join(missing)))
        if hasattr(memoryview, "cast"):  # not on MicroPython, which keeps no annotations
            self._check_types()

    def _check_types(self):
        # Not by an import statement: devices have no such file.
        problem = __import__("emberlet.host.interface.config_types", None, None, ("*",)).problem
        kinds = _kinds(type(self))
        for name in kinds:
            default = _default(type(self), name)
            said = problem(getattr(self, name), kinds[name])
            if said and (default is not None or getattr(self, name) is not None):  # None may mean "as usual"
                raise EmberletError(
                    "{}.{}: expected {}, found {!r}".format(type(self).__name__, name, said, getattr(self, name))
                )

    def _bad(self, message):
        raise EmberletError("{} {}".format(type(self).__name__, message))

    def __getattr__(self, name):
        if name.startswith("with_") and name[5:] in _fields(type(self)):
            return lambda value: self.replace(**{name[5:]: value})
        raise AttributeError("{} has no field or method {!r}".format(type(self).__name__, name))

    def replace(self, **changes):
        """A copy with some fields changed."""
        values = {name: _copy(getattr(self, name)) for name in _fields(type(self))}
        values.update(changes)
        return type(self)(**values)

    def __eq__(self, other):
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(self.to_json())

    def __repr__(self):
        own = ["{}={!r}".format(name, getattr(self, name)) for name in _fields(type(self))]
        return "{}({})".format(type(self).__name__, ", ".join(own))

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_dict(self):
        """The fields as plain values: nested configs as dicts, tuples as lists."""
        return {name: _plain(getattr(self, name)) for name in _fields(type(self))}

    @classmethod
    def from_dict(cls, values, where=None, ignore_unknown=False):
        """The config with the values of a `to_dict`. ignore_unknown: leave out values that are no field, for files of
        later versions. Raises FormatError, beginning with `where` and naming the field."""
        where = where or cls.__name__
        if not isinstance(values, dict):
            raise FormatError("{}: expected an object, found {!r}".format(where, values))
        kinds = _kinds(cls)
        names = _fields(cls)
        for key in values:
            if key not in names and not ignore_unknown:
                raise FormatError("{}: there is no field {!r}; there are {}".format(where, key, ", ".join(names)))
        made = {}
        for name in names:
            if name in values and values[name] is None and _default(cls, name) is None:
                made[name] = None
            elif name in values:
                made[name] = _read(values[name], kinds.get(name), "{}.{}".format(where, name), ignore_unknown)
            elif _default(cls, name) is _MISSING:
                raise FormatError("{}: the field {!r} is missing".format(where, name))
        return cls(**made)

    def to_json(self):
        """The fields as JSON, indented if the port's json supports it."""
        values = self.to_dict()
        try:
            return json.dumps(values, indent=2)
        except TypeError:  # MicroPython
            return json.dumps(values)

    @classmethod
    def from_json(cls, text, where=None, ignore_unknown=False):
        """The config that `to_json` wrote. ignore_unknown: see `from_dict`. Raises FormatError, on CPython also for a
        key that occurs twice."""
        try:
            values = _parsed(text[1:] if text[:1] == "\ufeff" else text)  # some editors write a byte order mark
        except (ValueError, RuntimeError) as error:  # nested too deep
            raise FormatError("{}: not JSON: {}".format(where or cls.__name__, error))
        return cls.from_dict(values, where, ignore_unknown)

    def save(self, path):
        """Write the config to a JSON file, atomically. Raises OSError."""
        from . import atomic_write

        data = (self.to_json() + "\n").encode()
        atomic_write.save(path, lambda file: file.write(data))

    @classmethod
    def load(cls, path, ignore_unknown=False):
        """The config in a JSON file. ignore_unknown: see `from_dict`. Raises OSError, FormatError."""
        with open(path, "rb") as file:
            data = file.read()
        try:
            text = str(data, "utf-8")
        except (UnicodeError, ValueError):
            raise FormatError("{}: not UTF-8".format(path))
        return cls.from_json(text, str(path), ignore_unknown)


def _parsed(text):
    """JSON as plain values. Raises ValueError for a key that occurs twice, where the port's json tells."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except TypeError:  # MicroPython
        return json.loads(text)


def _once(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise ValueError("the key {!r} occurs twice".format(key))
        found[key] = value
    return found


def _fields(cls):
    if cls.FIELDS is not None:
        return cls.FIELDS
    return tuple(_kinds(cls))


def _kinds(cls):
    """name -> type of the fields; on MicroPython only of nested configs."""
    try:
        from typing import get_type_hints
    except ImportError:
        return cls.NESTED or {}
    found = get_type_hints(cls)
    found.pop("FIELDS", None)
    found.pop("NESTED", None)
    found.update(cls.NESTED or {})
    return found


def _default(cls, name):
    return getattr(cls, name, _MISSING)


def _copy(value):
    if isinstance(value, list):
        return [_copy(v) for v in value]
    if isinstance(value, dict):
        return {key: _copy(value[key]) for key in value}
    return value.replace() if isinstance(value, Config) else value


def _plain(value):
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in value}
    return value.name if hasattr(type(value), "__members__") else value  # of an enum


def _read(value, kind, where, ignore_unknown=False):
    """A JSON value converted to the field's type, as far as the type is known."""
    if isinstance(kind, type) and issubclass(kind, Config):
        return kind.from_dict(value, where, ignore_unknown)
    members = getattr(kind, "__members__", None)
    if members is not None:  # an enum
        if not isinstance(value, str) or value not in members:
            raise FormatError("{}: expected one of {}, found {!r}".format(where, ", ".join(members), value))
        return members[value]
    if str(kind).startswith("typing.Literal"):
        if value not in kind.__args__:
            raise FormatError("{}: expected one of {}, found {!r}".format(where, kind.__args__, value))
        return value
    arguments = getattr(kind, "__args__", None)
    if arguments:
        return _read_generic(value, kind, arguments, where, ignore_unknown)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise FormatError("{}: expected float, found an integer too large for one".format(where))
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if kind in (int, float, str, bool, list, dict, tuple):
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise FormatError("{}: expected {}, found {!r}".format(where, kind.__name__, value))
    return value


def _read_generic(value, kind, arguments, where, ignore_unknown):
    """list[X], tuple[X, ...], dict[str, X] and X | Y."""
    origin = getattr(kind, "__origin__", None)
    if origin is list or origin is tuple:
        if not isinstance(value, list):
            raise FormatError("{}: expected an array, found {!r}".format(where, value))
        if origin is tuple and arguments[-1] is not Ellipsis:
            if len(value) != len(arguments):
                raise FormatError("{}: expected {} values, found {}".format(where, len(arguments), len(value)))
            kinds = arguments
        else:
            kinds = (arguments[0],) * len(value)
        return origin([_read(value[i], kinds[i], "{}[{}]".format(where, i), ignore_unknown) for i in range(len(value))])
    if origin is dict:
        if not isinstance(value, dict):
            raise FormatError("{}: expected an object, found {!r}".format(where, value))
        return {key: _read(value[key], arguments[1], "{}.{}".format(where, key), ignore_unknown) for key in value}
    for one in arguments:  # a union: the first that fits
        if one is type(None):
            if value is None:
                return None
            continue
        try:
            return _read(value, one, where, ignore_unknown)
        except FormatError as error:
            problem = error
    raise problem
