"""Records attention as one operation, for a backend with a kernel for it."""

from emberlet import shapes


def record(backend, good, q, keys, values, bias, scale, softcap, blind, sink):
    """The composite `dot_product_attention` (functional/transformer) as an "attention" node, or as its parts unless
    the kernel is a `good` choice and the bias has the shape of the scores."""
    scores = q.shape[:3] + keys.shape[2:3]
    # Called even if the answer is clear, so that a plan with open sizes learns which of them must be equal.
    fits = bias is None or shapes.broadcast(scores, bias.shape) == scores
    if not good or not fits:
        from emberlet.functional.transformer.dot_product_attention import compose_attention

        return compose_attention(q, keys, values, bias, scale, softcap, blind, sink)
    tensors = [q, keys, values]
    if bias is not None:
        if len(bias.shape) < 4:
            bias = backend.reshape(bias, (1,) * (4 - len(bias.shape)) + bias.shape)
        tensors.append(bias)
    if sink is not None:
        tensors.append(backend.reshape(sink, (q.shape[1],)))
    arg = (scale, softcap, bias is not None, sink is not None, blind and bias is not None, None)
    args = (q, keys, values, bias, scale, softcap, blind, sink)
    shape = q.shape[:3] + values.shape[3:]
    return backend._record("dot_product_attention", tensors, args, "attention", arg, q.dtype, shape)
