"""checkpoint: a block whose values are computed again in the backward pass instead of being kept."""

from ..backend.drawing import source
from ..errors import EmberletError
from ..functional.randomness import draws
from ..tensor import Tensor
from .backend import Autodiff
from .dispatch import noted
from .params import leaf
from .tape import Value, consumed
from .tape import backward as run


def checkpoint(f):
    """A function that computes f(*args) and keeps nothing of it but the arguments; the backward pass computes f again.

    args: tensors on an autodiff backend, and anything else. f gives a tensor, or a tuple of tensors, depends on
    nothing else that changes, and draws the same random numbers in both passes. Parameters that it uses get
    their gradients.
    """

    def call(*args):
        backend = _backend(args)
        if backend is None:
            return f(*args)
        state = random_state()
        leaves = [_fresh(a) for a in args]
        out = f(*leaves)
        results = [out] if isinstance(out, Tensor) else list(out)
        own = [a.data.node for a in leaves if isinstance(a, Tensor)]
        captured, depth = _captured(results, own)
        if not captured and not [n for a in args if isinstance(a, Tensor) for n in (a.data.node,) if n is not None]:
            return out

        def pull(g):
            seeds = g if isinstance(g, dict) else {0: g}
            return _again(f, args, backend, state, seeds, captured)

        inner = [y.data.inner for y in results]
        tensors = [a for a in args if isinstance(a, Tensor)] + [_holder(n, results[0]) for n in captured]
        found = noted(backend, tensors, inner[0] if isinstance(out, Tensor) else inner, pull)
        for y in [found] if isinstance(out, Tensor) else found:
            _deepen(y.data.node, depth)
        return found

    return call


def _deepen(node, depth):
    """The backward pass comes to this node before anything that the block took from outside."""
    if node is None:
        return
    if node.slot is not None:
        _deepen(node.parents[0], depth)
        node.depth = max(node.depth, node.parents[0].depth + 1)
    else:
        node.depth = max(node.depth, depth)


def _holder(node, like):
    return Tensor(Value(None, node), like.dtype, (), like.backend)


def _backend(args):
    for a in args:
        if isinstance(a, Tensor) and isinstance(a.backend, Autodiff):
            return a.backend
    return None


def _fresh(a):
    """A leaf of a's elements, which requires a gradient if a does."""
    return leaf(a, a.data.node is not None) if isinstance(a, Tensor) else a


def _captured(results, own):
    """(the leaves that the block took from outside, a depth above everything in it)."""
    known = [id(n) for n in own if n is not None]
    seen, stack, found, depth = {}, [], [], 0
    for y in results:
        if y.data.node is not None:
            stack.append(y.data.node)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        depth = max(depth, node.depth)
        if node.pull is consumed:
            raise EmberletError("checkpoint: the block uses a tensor whose graph was freed by an earlier backward pass")
        if node.is_leaf and id(node) not in known:
            found.append(node)
        stack.extend([p for p in node.parents if p is not None])
    return found, depth


def _again(f, args, backend, state, seeds, captured):
    leaves = [_fresh(a) for a in args]
    before = random_state()
    set_random_state(state)
    backend.replaying = True
    try:
        out = f(*leaves)
    finally:
        backend.replaying = False
        set_random_state(before)
    results = [out] if isinstance(out, Tensor) else list(out)
    roots, gradients = [], []
    for i in seeds:
        if results[i].data.node is not None:
            roots.append(results[i].data.node)
            gradients.append(seeds[i])
    grads = run(roots, gradients, True)
    nodes = [a.data.node for a in leaves if isinstance(a, Tensor)] + captured
    return [None if n is None else grads.of_node(n) for n in nodes]


def random_state():
    """The key and the counter of the next random draw."""
    return draws._taken(0)


def set_random_state(state):
    """Continue the sequence of draws from there."""
    given = source()
    if given is not None:
        given.state = state
    else:
        draws._state[0], draws._state[1] = state
