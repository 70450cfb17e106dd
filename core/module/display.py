"""Printing modules as Burn does: one line per layer, ending with its number of parameters."""

from ..param import Param
from ..tensor import Tensor
from . import Module, items


class DisplaySettings:
    """How a module and its children are printed. A setting of None is inherited from the enclosing module."""

    def __init__(self):
        self.show_all_attributes = None
        self.new_line_after_attribute = None
        self.show_num_parameters = None
        self.indentation_size = None
        self.show_param_id = None

    def with_show_all_attributes(self, flag):
        """Show every attribute, whatever custom content there is (default: False)."""
        self.show_all_attributes = flag
        return self

    def with_new_line_after_attribute(self, flag):
        """Show each attribute on its own line (default: True)."""
        self.new_line_after_attribute = flag
        return self

    def with_show_num_parameters(self, flag):
        """Show the number of parameters (default: True)."""
        self.show_num_parameters = flag
        return self

    def with_indentation_size(self, spaces):
        """The number of spaces to indent by (default: 2)."""
        self.indentation_size = spaces
        return self

    def with_show_param_id(self, flag):
        """Show each parameter's identity (default: False)."""
        self.show_param_id = flag
        return self

    def within(self, outer):
        """These settings, completed by those of the enclosing module."""
        s = DisplaySettings()
        for name in list(s.__dict__):
            own = getattr(self, name)
            setattr(s, name, getattr(outer, name) if own is None else own)
        return s


class Content:
    """The printed lines of a module: a list of (name, value)."""

    def __init__(self):
        self.attributes = []

    def add(self, name, value):
        """Add a line: a module, a Param, or anything that prints."""
        self.attributes.append((name, value))
        return self

    def optional(self):
        """This content, or None, for the default, if there are no lines."""
        return self if self.attributes else None


def _defaults():
    s = DisplaySettings().with_show_all_attributes(False).with_new_line_after_attribute(True)
    return s.with_show_num_parameters(True).with_indentation_size(2).with_show_param_id(False)


def format_module(module, settings=None, level=1, around=()):
    """`module` as text. settings: DisplaySettings of the enclosing module; around: the modules and containers that hold
    it, which are not printed again inside themselves."""
    if any(outer is module for outer in around):
        return type(module).__name__ + " {...}"
    around += (module,)
    settings = settings or _defaults()
    own = module.custom_settings() if isinstance(module, Module) else None
    if own is not None:
        settings = own.within(settings)
    content = _content(module, settings)
    name = type(module).__name__
    count = ""
    if settings.show_num_parameters:
        n = _num_params(module)
        count = "params: {}".format(n) if n else ""
    shown = isinstance(module, Module) and hasattr(module, "SHOWN") and not settings.show_all_attributes
    if not content and not count:
        return name
    parts = ["{}: {}".format(key, _format(key, value, settings, level, around)) for key, value in content]
    if count:
        parts.append(count)
    if shown or not settings.new_line_after_attribute:
        return "{} {{{}}}".format(name, ", ".join(parts))
    indent = " " * (settings.indentation_size * level)
    lines = [indent + part for part in parts]
    return "{} {{\n{}\n{}}}".format(name, "\n".join(lines), indent[settings.indentation_size :])


def _content(module, settings):
    if isinstance(module, Module) and not settings.show_all_attributes:
        custom = module.custom_content(Content())
        if custom is not None:
            return custom.attributes
        names = getattr(module, "SHOWN", None)  # the built-in layers declare which attributes describe them
        if names is not None:  # those that end in "?", where they are not None
            found = [(name.rstrip("?"), getattr(module, name.rstrip("?"))) for name in names.split()]
            optional = [name[:-1] for name in names.split() if name.endswith("?")]
            return [(name, _shown(name, x)) for name, x in found if x is not None or name not in optional]
        return [(key, value) for key, value in items(module) if _matters(value)]
    return items(module)


def _shown(name, value):
    """A layer says only whether it has a bias."""
    return (value is not None and value is not False) if name == "bias" else value


def _matters(value, around=()):
    if isinstance(value, (list, tuple, dict)):
        if any(outer is value for outer in around):
            return False
        return any(_matters(child, around + (value,)) for _, child in items(value))
    return isinstance(value, (Module, Param, Tensor))


def _num_params(value):
    holder = Module()
    holder.it = value
    return holder.num_params()


def _format(name, value, settings, level, around):
    if isinstance(value, Module) or (isinstance(value, (list, tuple, dict)) and _matters(value)):
        return format_module(value, settings, level + 1, around)
    if isinstance(value, (Param, Tensor)):
        kind = "int" if value.dtype.kind == "uint" else value.dtype.kind
        text = "Tensor {{rank: {}, shape: {}, kind: {}".format(len(value.shape), list(value.shape), kind)
        if isinstance(value, Param) and settings.show_param_id:
            text += ", id: {}".format(value.id)
        return text + "}"
    return _padding(value) if name == "padding" else _plain(value)


def _padding(value):
    """(low, high) pairs in Burn's terms if they have one: Valid for none, Explicit for the same on both sides."""
    pairs = value if isinstance(value, (list, tuple)) else ()
    if not pairs or not all(isinstance(pair, (list, tuple)) and pair[0] == pair[1] for pair in pairs):
        return _plain(value)
    if not any(pair[0] for pair in pairs):
        return "Valid"
    return "Explicit({})".format(", ".join([str(pair[0]) for pair in pairs]))


def _plain(value):
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[{}]".format(", ".join([_plain(v) for v in value]))
    return str(value)
