"""Attention over heads: the probabilities are computed again in the backward pass instead of being kept."""

from ..arithmetic import add, compare, div, mul, number, sub, total, unary, undo_broadcast, where
from ..rules.products import transposed


def dot_product_attention(q, keys, values, bias, scale, softcap, blind, sink):
    from ...functional.transformer.dot_product_attention import dot_product_attention as attend

    out = attend(q, keys, values, bias, scale, softcap, blind, sink)

    def pull(g):
        heads, shared = q.shape[1], keys.shape[1]
        k, v = _repeated(keys, heads), _repeated(values, heads)
        p, capped = _probabilities(q, k, bias, scale, softcap, sink)
        of_p = g.backend.matmul(g, transposed(v))
        rest = mul(p, sub(of_p, total(mul(g, out), (3,))))
        of_scores = rest if not softcap else mul(rest, _slope(capped, softcap))
        of_q = mul(g.backend.matmul(of_scores, k), number(scale, q))
        of_k = mul(g.backend.matmul(transposed(of_scores), q), number(scale, q))
        found = [of_q, _summed(of_k, shared), _summed(g.backend.matmul(transposed(p), g), shared)]
        if bias is not None:
            found.append(undo_broadcast(rest, bias.shape))
        if sink is not None:
            found.append(_of_sink(g, out, sink, p))
        return found

    return out, pull


def _repeated(x, heads):
    """Keys or values for each query head."""
    batch, shared, length, width = x.shape
    if shared == heads:
        return x
    backend = x.backend
    x = backend.expand(backend.reshape(x, (batch, shared, 1, length, width)),
                       (batch, shared, heads // shared, length, width))  # fmt: skip
    return backend.reshape(x, (batch, heads, length, width))


def _summed(g, shared):
    """The gradients of heads that share keys or values, summed."""
    batch, heads, length, width = g.shape
    if shared == heads:
        return g
    return total(g.backend.reshape(g, (batch, shared, heads // shared, length, width)), (2,), False)


def _probabilities(q, k, bias, scale, softcap, sink):
    backend = q.backend
    scores = mul(backend.matmul(q, transposed(k)), number(scale, q))
    if softcap:
        cap = number(softcap, q)
        scores = mul(unary("tanh", div(scores, cap)), cap)
    capped = scores
    if bias is not None:
        scores = add(scores, bias)
    peak = backend.reduce("max", scores, (3,), True)
    if sink is not None:
        sink = backend.reshape(sink, (1, sink.size, 1, 1))
        peak = compare("maximum", peak, sink)
    # A query that sees no key has weights of 0.
    peak = where(compare("eq", peak, number(float("-inf"), peak)), number(0, peak), peak)
    e = unary("exp", sub(scores, peak))
    whole = total(e, (3,))
    if sink is not None:
        whole = add(whole, unary("exp", sub(sink, peak)))
    return div(e, where(compare("eq", whole, number(0, e)), number(1, e), whole)), capped


def _slope(capped, softcap):
    """The derivative of softcap * tanh(x / softcap), from its value."""
    ratio = div(capped, number(softcap, capped))
    one = number(1, ratio)
    return mul(sub(one, ratio), add(one, ratio))


def _of_sink(g, out, sink, p):
    """-(the sink's share) * sum(g * out); its share is what the probabilities leave."""
    share = sub(number(1, p), total(p, (3,)))
    found = undo_broadcast(unary("neg", mul(share, total(mul(g, out), (3,)))), (1, sink.size, 1, 1))
    return g.backend.reshape(found, sink.shape)
