"""grad, value_and_grad, vjp and jvp: gradients of functions, in the words of JAX."""

from ..errors import ArgumentError, EmberletError
from ..tensor import Tensor
from .backend import around
from .params import leaf
from .tape import Gradients
from .tape import backward as run


def mapped(x, change):
    """x with every tensor of its lists, tuples and dicts changed."""
    if isinstance(x, Tensor):
        return change(x)
    if isinstance(x, dict):
        return {k: mapped(v, change) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        parts = [mapped(v, change) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def _is_module(x):
    return hasattr(x, "named_params")


def _constant(x):
    return around(x.backend).from_inner(x)


def _variable(x):
    return leaf(_constant(x)) if x.dtype.is_float else _constant(x)


def _lifted(args, argnums):
    """args on the autodiff backends around their own; those at argnums require gradients."""
    out = []
    for i in range(len(args)):
        a = args[i]
        if _is_module(a):
            from .modules import trained

            out.append(trained(a))
        else:
            out.append(mapped(a, _variable if i in argnums else _constant))
    return out


def _inner(x):
    return x.data.inner if hasattr(x.backend, "from_inner") else x


def _gradient(x, grads):
    """The gradient of a tensor: zeros if the result does not depend on it, None for integers."""
    if not x.dtype.is_float:
        return None
    found = grads.of(x)
    return x.data.inner.backend.full(x.shape, 0, x.dtype) if found is None else found


def _collected(args, argnums, grads):
    out = []
    for i in argnums:
        if _is_module(args[i]):
            out.append({name: _gradient(p.val(), grads) for name, p in args[i].named_params() if p.require_grad})
        else:
            out.append(mapped(args[i], lambda x: _gradient(x, grads)))
    return out


def _root(y):
    return getattr(y.data, "node", None)


def value_and_grad(f, argnums=0, has_aux=False):
    """See `emberlet.value_and_grad`."""
    several = not isinstance(argnums, int)
    wanted = tuple(argnums) if several else (argnums,)

    def call(*args, **kwargs):
        chosen = [n + len(args) if n < 0 else n for n in wanted]
        for n in chosen:
            if not 0 <= n < len(args):
                raise ArgumentError(
                    "argnums {} of a function that is called with {} arguments".format(argnums, len(args))
                )
        lifted = _lifted(args, chosen)
        y = f(*lifted, **kwargs)
        y, aux = y if has_aux else (y, None)
        if not isinstance(y, Tensor) or y.size != 1:
            raise EmberletError(
                "the function to differentiate gives a tensor of one element, found {}; sum it, or use vjp".format(
                    "shape {}".format(y.shape) if isinstance(y, Tensor) else repr(y)
                )
            )
        node = _root(y)
        inner = _inner(y)
        seed = inner.backend.full(y.shape, 1, y.dtype)
        grads = run([node], [seed]) if node is not None else Gradients()
        found = _collected(lifted, chosen, grads)
        found = tuple(found) if several else found[0]
        return ((inner, mapped(aux, _inner)) if has_aux else inner), found

    return call


def grad(f, argnums=0):
    """See `emberlet.grad`."""
    both = value_and_grad(f, argnums)

    def call(*args, **kwargs):
        return both(*args, **kwargs)[1]

    return call


def _leaves(x, out):
    mapped(x, lambda t: out.append(t) or t)
    return out


def vjp(f, *args):
    """See `emberlet.vjp`."""
    lifted = _lifted(args, range(len(args)))
    y = f(*lifted)

    def pull(cotangent):
        roots, seeds = [], []
        for t, c in zip(_leaves(y, []), _leaves(cotangent, [])):
            if _root(t) is not None:
                roots.append(_root(t))
                seeds.append(c)
        grads = run(roots, seeds, True) if roots else Gradients()
        return tuple(_collected(lifted, range(len(args)), grads))

    return mapped(y, _inner), pull


def jvp(f, args, tangents):
    """See `emberlet.jvp`."""
    if len(args) != len(tangents):
        raise ArgumentError("jvp: {} arguments and {} tangents".format(len(args), len(tangents)))
    # The gradient is linear in the cotangent u; the derivative of <gradient(u), tangents> in u is what is sought.
    lifted = [around(a.backend).from_inner(a) for a in args]
    inner = [leaf(around(a.backend).from_inner(a)) for a in lifted]
    y = f(*inner)
    value = _inner(_inner(y))
    u = leaf(around(args[0].backend).from_inner(value.backend.full(y.shape, 0, y.dtype)))
    if _root(y) is None:
        return value, value.backend.full(y.shape, 0, y.dtype)
    grads = run([_root(y)], [u])
    along = None
    for x, t in zip(inner, tangents):
        found = grads.of(x)
        if found is not None:
            part = (found * around(t.backend).from_inner(t)).sum()
            along = part if along is None else along + part
    if along is None or _root(along) is None:
        return value, value.backend.full(y.shape, 0, y.dtype)
    return value, _gradient(u, run([_root(along)], [value.backend.full((), 1, along.dtype)]))
