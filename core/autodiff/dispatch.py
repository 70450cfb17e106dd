"""What an Autodiff backend answers where a function asks for a backend's own method: composites with a backward of
their own, and operations that a program added to the inner backend."""

from ..backend import operation
from ..backend.registry import was_added
from ..errors import refuse
from ..lookup import function
from ..tensor import Tensor
from .tape import Node, Value

# file in composites/ -> the functions whose backward it declares
OWN = {
    "activations": "relu clip sigmoid softmax log_softmax gelu",
    "normalization": "layer_norm rms_norm",
    "dense": "linear conv_transpose",
    "attention": "dot_product_attention",
    "recurrent": "lstm_steps gru_steps rnn_steps",
    "piecewise": "relu6 hardtanh leaky_relu prelu elu selu hard_sigmoid hard_swish",
}
# What the inner backend computes without a gradient.
_PLAIN = ("legacy_uniform", "signbit", "matmul_8bit", "conv_8bit", "to_data_async")
_LAYERS = ("train_dropout", "train_gaussian_noise", "train_batch_norm", "train_quantized")
_FILES = {}
for _file in OWN:
    for _name in OWN[_file].split():
        _FILES[_name] = _file


def method(backend, name):
    """The method `name` for this Autodiff backend, or None."""
    file = _FILES.get(name)
    if file:
        rule = getattr(__import__("emberlet.autodiff.composites." + file, None, None, ("*",)), name)
        return _kept(backend, name, _own(backend, rule))
    if name == "linear_algebra":
        from .rules.linear_algebra import linear_algebra

        return _kept(backend, name, _own(backend, linear_algebra))
    if name in _LAYERS:
        from . import layers

        return getattr(layers, name)
    if not callable(getattr(backend.inner, name, None)):
        return None
    rule = getattr(backend.inner, "backward_of_" + name, None)
    if rule is not None:
        return _declared(backend, name, rule)
    if name in _PLAIN:
        return _plain(backend, name)
    composite = function(name)
    return _added(backend, name, composite) if composite or was_added(type(backend.inner), name) else None


def _kept(backend, name, found):
    setattr(backend, name, found)
    return found


def tracked(args):
    """Whether a gradient is wanted of a tensor among args."""
    for a in args:
        if isinstance(a, Tensor):
            if getattr(a.data, "node", None) is not None:
                return True
        elif isinstance(a, (list, tuple)) and tracked(a):
            return True
    return False


def unwrapped(x):
    """x, or for tensors of an Autodiff backend those of the inner one, in lists too."""
    if isinstance(x, Tensor) and isinstance(x.data, Value):
        return x.data.inner
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)([unwrapped(v) for v in x])
    return x


def wrapped(backend, out):
    """Inner tensors, in tuples and lists too, as constants of the Autodiff backend."""
    if isinstance(out, Tensor) and out.backend is backend.inner:
        return backend.from_inner(out)
    if isinstance(out, (list, tuple)) and not hasattr(out, "_fields"):
        return type(out)([wrapped(backend, v) for v in out])
    return out


def tensors(x, found):
    """`found`, a list, with the tensors of x and of its lists and tuples."""
    if isinstance(x, Tensor):
        found.append(x)
    elif isinstance(x, (list, tuple)):
        for v in x:
            tensors(v, found)
    return found


def noted(backend, args, out, pull):
    """`out`, an inner tensor or several, also in lists, as the result of args. pull(gradient, or {index: gradient} of
    several) -> the gradients of the tensors among args, in order."""
    parents = tuple([a.data.node for a in tensors(args, [])])
    if not isinstance(out, (list, tuple)):
        return Tensor(Value(out, Node(parents, pull)), out.dtype, out.shape, backend)
    return _parts(backend, Node(parents, pull), out, [0])


def _parts(backend, node, out, count):
    """The results of a node; count: how many there were before, in a list."""
    found = []
    for x in out:
        if not isinstance(x, Tensor):
            found.append(_parts(backend, node, x, count))
            continue
        own = Node((node,), collected, slot=count[0]) if x.dtype.is_float else None
        count[0] += 1
        found.append(Tensor(Value(x, own), x.dtype, x.shape, backend))
    return tuple(found)


def collected(gradient):
    """The `pull` of one of several results, which the backward pass collects by itself."""


def _own(backend, rule):
    def call(*args, **kwargs):
        # Functions that check their arguments first give all of them in order, the others what their caller wrote.
        if "x" in kwargs:
            args = (kwargs.pop("x"),) + args
        out, pull = rule(*[unwrapped(a) for a in args], **{key: unwrapped(kwargs[key]) for key in kwargs})
        if kwargs:
            args += tuple(kwargs.values())
        return noted(backend, args, out, pull) if tracked(args) else wrapped(backend, out)

    return call


def _plain(backend, name):
    def call(*args, **kwargs):
        kwargs = {key: unwrapped(kwargs[key]) for key in kwargs}
        return wrapped(backend, operation(backend.inner, name)(*[unwrapped(a) for a in args], **kwargs))

    return call


def _declared(backend, name, rule):
    function, saves = rule

    def call(*args, **kwargs):
        inner = [unwrapped(a) for a in args]
        out = operation(backend.inner, name)(*inner, **kwargs)
        if not tracked(args):
            return wrapped(backend, out)
        saved = saves(out, *inner)

        def pull(g):
            found = function(g, *saved)
            return found if isinstance(found, (list, tuple)) else (found,)

        return noted(backend, args, out, pull)

    return call


def _added(backend, name, composite):
    """An operation, or an override of the composite of that name, which is computed from primitives where a gradient is
    wanted."""
    plain = _plain(backend, name)

    def call(*args, **kwargs):
        if not tracked(args) and not tracked(tuple(kwargs.values())):
            return plain(*args, **kwargs)
        if composite is None:
            refuse("no backward", name, name)
        return composite(*args, **kwargs)

    return call
