"""Computes recorded nodes on the host backend: constants of a plan that is made where there is no GPU."""

from emberlet.errors import BackendError

from ..run import storage
from .node import CONSTANTS, is_leaf, topological

MOST = 16  # nodes of a history that is looked at on the way


def evaluate(nodes, host):
    """Turn each node, none of which depends on an input, into a "data" node with its value."""
    values = _values(topological(nodes), host)
    for n in nodes:
        n.arg = storage.widen(host.to_bytes(values[id(n)]), n.dtype, n.count, n.word)
        if n.arg is None:
            raise BackendError("a constant {} {} of the plan holds values beyond 32 bits".format(n.dtype, n.shape))
        n.op = "data"
        n.srcs = ()


def given(node, host):
    """The value of a node that is made, in a few steps, of nothing but what the host has given; None otherwise."""
    order = topological([node])
    if len(order) > MOST:
        return None
    for n in order:
        if n.op != "data" and n.op not in CONSTANTS and (is_leaf(n) or n.op not in _EVALUATE):
            return None
    return _values(order, host)[id(node)]


def _values(order, host):
    values = {}
    for node in order:
        srcs = [values[id(s)] for s in node.srcs]
        values[id(node)] = _leaf(host, node) if is_leaf(node) else _EVALUATE[node.op](host, node, srcs)
    return values


def _leaf(host, node):
    data = storage.narrow(node.arg, node.dtype, node.count, node.word)
    return host.from_bytes(data, node.dtype, node.shape)


def _sort_runs(host, node, srcs):
    # The first step already gives what the merging steps lead to.
    return host.sort(srcs[0], len(node.shape) - 1, node.arg)[1]


def _attention(host, node, srcs):
    from emberlet.functional.transformer.dot_product_attention import dot_product_attention

    scale, softcap, has_bias, has_sink = node.arg
    bias = srcs[3] if has_bias else None
    sink = srcs[-1] if has_sink else None
    return dot_product_attention(srcs[0], srcs[1], srcs[2], bias, scale, softcap, True, sink)


_EVALUATE = {
    "full": lambda k, n, s: k.full(n.shape, n.arg, n.dtype),
    "arange": lambda k, n, s: k.arange(n.arg[0], n.arg[1], n.count, n.dtype),
    "random": lambda k, n, s: k.random_bits(n.shape, n.arg[0], n.arg[1]),
    "unary": lambda k, n, s: k.unary(n.arg, s[0]),
    "binary": lambda k, n, s: k.binary(n.arg, s[0], s[1]),
    "where": lambda k, n, s: k.where(s[0], s[1], s[2]),
    "cast": lambda k, n, s: k.cast(s[0], n.dtype, n.arg),
    "bitcast": lambda k, n, s: k.bitcast(s[0], n.dtype),
    "reduce": lambda k, n, s: k.reduce(n.arg[0], s[0], n.arg[1], n.arg[2]),
    "argreduce": lambda k, n, s: k.argreduce(n.arg[0], s[0], n.arg[1], n.arg[2]),
    "cumulative": lambda k, n, s: k.cumulative(n.arg[0], s[0], n.arg[1]),
    "sort_runs": _sort_runs,
    "merge_runs": lambda k, n, s: s[1],
    "matmul": lambda k, n, s: k.matmul(s[0], s[1]),
    "conv": lambda k, n, s: k.conv(s[0], s[1], None, n.arg[0], n.arg[1], n.arg[2], n.arg[3]),
    "pool": lambda k, n, s: k.pool(n.arg[0], s[0], n.arg[1], n.arg[2], n.arg[3], n.arg[4]),
    "attention": _attention,
    "take": lambda k, n, s: k.take(s[0], s[1], n.arg),
    "gather": lambda k, n, s: k.gather(s[0], s[1], n.arg),
    "scatter": lambda k, n, s: k.scatter(s[0], s[1], s[2], n.arg[0], n.arg[1]),
    "reshape": lambda k, n, s: k.reshape(s[0], n.shape),
    "permute": lambda k, n, s: k.permute(s[0], n.arg),
    "expand": lambda k, n, s: k.expand(s[0], n.shape),
    "slice": lambda k, n, s: k.slice(s[0], n.arg[0], n.shape, n.arg[1]),
    "pad": lambda k, n, s: k.pad(s[0], n.arg[0], n.arg[1]),
    "concat": lambda k, n, s: k.concat(s, n.arg),
}
