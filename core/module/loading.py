"""Loading a record into a module: everything is checked before anything changes, and every problem is listed."""

from ..errors import DTypeError, ShapeError
from ..param import Param
from . import leaves


def load(module, record, strict, layout=None):
    """See Module.load_record."""
    burnpack = hasattr(record, "raw")
    names = record.tensors if burnpack else record
    ids = getattr(record, "param_ids", None)  # a Record's
    adapt = None
    if layout or not burnpack or "emberlet.layout" in record.metadata:
        from .layouts import adapter

        adapt = adapter(module, record, layout, Param)
    found = {}  # id of a Param -> (Param, value, identity or None)
    absent = []
    wrong = []
    wanted = {}
    others = False  # scales of packed weights in another dtype, which may not hold them
    for name, _, _, param in leaves(module, Param):
        wanted[name] = True
        if name not in names:
            absent.append((name, param))
            continue
        try:
            value = record.tensor(name, param.backend) if burnpack else record[name]
            others = others or (name.endswith("weight.scale") and value.dtype is not param.dtype)
            value = param.loaded(adapt(name, value) if adapt else value)
        except (ShapeError, DTypeError) as error:
            wrong.append("{}: {}".format(name, error))
            continue
        found[id(param)] = (param, value, names[name].param_id if burnpack else ids and ids.get(name))
    # A parameter with several names in the module needs only one of them in the record.
    missing = [name for name, param in absent if id(param) not in found]
    unexpected = [name for name in names if name not in wanted]
    if wrong or missing or unexpected or others:
        from .load_errors import differing

        again = differing(module, record, wrong, missing, unexpected, strict, layout)
        if again:
            return load(module, again, strict, layout)
    for param, value, identity in found.values():
        param.set(value, identity)
    return module
