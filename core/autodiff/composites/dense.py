"""linear and conv_transpose."""

from ...functional.dense import linear as dense
from ..arithmetic import call, reshaped, total
from ..rules.convolution import of_weight
from ..rules.products import rows_of, transposed


def linear(x, weight, bias):
    y = dense(x, weight, bias)

    def pull(g):
        rows = rows_of(g)
        found = [
            reshaped(g.backend.matmul(rows, transposed(weight)), x.shape),
            g.backend.matmul(transposed(rows_of(x)), rows),
        ]
        return found if bias is None else found + [total(rows, (0,), False)]

    return y, pull


def conv_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups):
    y = call("conv_transpose", x, weight, bias, stride, padding, output_padding, dilation, groups)

    def pull(g):
        backend = g.backend
        margins = [(low, high) for low, high in padding]
        crop = [(max(0, -low), max(0, -high)) for low, high in margins]  # negative padding grew the result
        inside = g
        if [c for c in crop if c != (0, 0)]:
            sizes = g.shape[:2] + tuple([g.shape[i + 2] - crop[i][0] - crop[i][1] for i in range(len(crop))])
            inside = backend.slice(g, (0, 0) + tuple([c[0] for c in crop]), sizes, (1,) * len(sizes))
        margins = tuple([(max(0, low), max(0, high)) for low, high in margins])
        of_x = backend.conv(inside, weight, None, stride, margins, dilation, groups)
        if of_x.shape != x.shape:  # windows that begin in the output padding
            of_x = backend.slice(of_x, (0,) * len(x.shape), x.shape, (1,) * len(x.shape))
        found = [of_x, of_weight(inside, x, weight.shape, stride, margins, dilation, groups)]
        return found if bias is None else found + [total(g, (0,) + tuple(range(2, len(g.shape))), False)]

    return y, pull
