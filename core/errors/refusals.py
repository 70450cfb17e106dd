"""The error messages that small networks can meet, loaded only when one is raised.

Each entry is the error's class without "Error", a colon, and the message, which `errors.refuse` formats.
"""

from .. import errors

_SAYS = {
    "axis": "Axis:axis {} is outside [{}, {})",
    "axis twice": "Shape:axis {} is given twice",
    "broadcast": "Shape:shapes {} do not broadcast together",
    "ragged depth": "Shape:nested lists of different depth: found {} where a number belongs",
    "ragged list": "Shape:nested lists of different depth: found {!r} where a list belongs",
    "ragged length": "Shape:nested lists of different length: found {}, expected {}",
    "range": "DType:{} does not fit {}, which holds {} to {}",
    "no tensor": "DType:cannot make a tensor from {}; pass numbers, nested lists, an array or a buffer",
    "one element": "Shape:only a tensor of one element is a number; shape is {}",
    "empty lists": "Shape:shape {} has no elements, but more than 2**24 lists of none; read its shape instead",
    "transpose": "Shape:.T is for two axes, found shape {}; use .mT or permute_dims",
    "layout": "Load:layout is one of burn, pytorch, found {!r}",
    "other layout": "Load:the file's layout is {!r}, but layout={!r} was given",
    "square": "Load:{} is square, so its shape does not tell whether it is stored (d_input, d_output) or, as PyTorch "
    "does, transposed; pass layout='burn' or layout='pytorch'",
    "backends": "Backend:operands are on different backends, {} and {}; move one with .to()",
    "string": "DType:expected numbers, found strings",
    "numeric": "DType:{} is not defined for {}; convert with .astype()",
    "integers": "DType:{} takes integers or bools, found {}",
    "reshape": "Shape:cannot reshape {} ({} elements) to {}",
    "flatten": "Shape:start_dim {} comes after end_dim {}",
    "linear": "Shape:linear: input {} does not fit weight {} (d_input, d_output)",
    "entry": "DType:{} is an int or a list of ints, found {!r}",
    "per axis": "Shape:{} has {} entries for {} spatial axes",
    "least": "Shape:{} must be at least {}, found {}",
    "steps": "Shape:kernel, dilation and stride must be at least 1, found {}",
    "padding": "Shape:padding is 'same', 'valid' or numbers, found {!r}",
    "conv rank": "Shape:conv: input {} and weight {} must have the same rank, at least 3",
    "conv channels": "Shape:conv: input {} has {} channels, weight {} with {} groups needs {}",
    "kernel": "Shape:{}: kernel {} is larger than input {} with padding {}",
    "bias": "Shape:bias {} does not fit weight {}",
    "pool": "Shape:pooling needs (n, c, *spatial), found {}",
    "groups": "Shape:{}: {} input and {} output channels do not divide into {} groups",
    "layer axes": "Shape:{} needs (n, channels) and {} spatial axes, found shape {}",
    "dtype": "DType:there is no dtype {!r}; there are {}",
    "registered": "Backend:backend {!r} is registered already; choose another name",
    "backend": "Backend:there is no backend {!r}; there are {}",
    "backend library": "Backend:backend {!r} needs {} ({})",
    "bytes": "Format:{} of shape {} takes {} bytes, found {}",
    "kind": "DType:{} where the module has {}",
    "param shape": "Shape:shape {} where the module has {}",
    "param circle": "Emberlet:threads that initialize Params would deadlock: each uses "
    "one that the other is making, here of shape {}",
    "no value": "Emberlet:the value of a Param is a Tensor, found {!r}; a mapper returns the new value",
    "narrowing": "DType:{} values from {} to {} do not fit {}, which holds {} to {}",
    "same param": "Emberlet:the initializer of a Param used that same Param; it would wait for itself",
    "index": "DType:an index is an integer, found a tensor of {}",
    "len": "DType:len() of a tensor without axes",
    "array API": "Argument:emberlet supports the array API up to 2024.12, not {}",
    "copy": "Argument:numbers and lists must be copied; pass copy=None or copy=True",
    "choice": "Argument:{} is {}, found {!r}",
    "no kernel": "Unsupported:operation {} has no kernel on {} backend: write one, or compute it from operations that "
    "have one (docs/writing-a-kernel.md)",
    "no backward": "Unsupported:{!r} has no backward; declare one with @emberlet.autodiff.backward({!r}), or call it "
    "on tensors that need no gradient, x.detach()",
    "forward": "Unsupported:{} has no forward; write one",
    "not embedded": "Load:{} has no embedded weights; use from_file",
    "quantizing": "Unsupported:quantize_weights needs CPython, and so do modules that call it; `emberlet micro build` "
    "quantizes a model for a board",
    "no weights": "Load:{} does not say where its weights are; use from_file",
}


def refuse(what, found):
    """Raise the error called `what`, with its message formatted with `found`."""
    kind, _, words = _SAYS[what].partition(":")
    if what == "broadcast":
        found = [" and ".join([str(shape) for shape in found])]
    raise getattr(errors, kind + "Error")(words.format(*found))
