"""Inputs without the axis of a batch, as PyTorch's layers take them. Loaded where one is given.

Each function applies a layer as to a batch of one, and returns results without that axis.
"""

from ..errors import ShapeError, refuse


def windows(layer, x):
    """A convolution or pooling of x (channels, *spatial) -> (channels', *spatial'). Raises ShapeError for any other
    rank."""
    if len(x.shape) != layer.RANK + 1:
        refuse("layer axes", type(layer).__name__, layer.RANK, x.shape)
    return _without(layer.forward(_with(x, 0)), 0)


def recurrent(layer, x, state):
    """A recurrent layer of x (seq, d_input) and its state, (d_hidden,) or (2, d_hidden), or None: (outputs, state)."""
    axis = 0 if layer.batch_first else 1
    if state is not None:
        state = _each(state, lambda h: _with(h, len(h.shape) - 1))
    y, state = layer.forward(_with(x, axis), state)
    return _without(y, axis), _each(state, lambda h: _without(h, len(h.shape) - 2))


def attention(layer, query, key, value, mask_pad, mask_attn, cache, need_weights):
    """MultiHeadAttention of query (seq_q, d_model), key and value (seq_k, d_model) and mask_pad (seq_k,) -> an
    AttentionOutput: context (seq_q, d_model), weights (n_heads, seq_q, seq_k). Raises ShapeError for any other rank."""
    given = [query, key, value]
    shapes = [tuple(x.shape) for x in given if x is not None]
    if any(len(shape) != 2 for shape in shapes):
        raise ShapeError(
            "MultiHeadAttention needs all inputs with a batch or all without, found shapes {}".format(shapes)
        )
    one = [None if x is None else _with(x, 0) for x in given + [mask_pad]]
    found = layer.forward(one[0], one[1], one[2], one[3], mask_attn, cache, need_weights)
    return type(found)(_without(found.context, 0), None if found.weights is None else _without(found.weights, 0))


def _each(state, change):
    """The state of a recurrent layer with each tensor changed."""
    if hasattr(state, "cell"):
        return type(state)(change(state.cell), change(state.hidden))
    return type(state)(change(state.hidden)) if hasattr(state, "hidden") else change(state)


def _with(x, axis):
    shape = tuple(x.shape)
    return x.reshape(shape[:axis] + (1,) + shape[axis:])


def _without(x, axis):
    shape = tuple(x.shape)
    return x.reshape(shape[:axis] + shape[axis + 1 :])
