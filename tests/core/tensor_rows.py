"""The emberlet equivalent of each call in the Burn Book's tensor tables, and its result in NumPy.

A row: Burn's call, emberlet's expression, the same computed by NumPy. Both see the same names: t, u (2×3 floats),
v (a vector), i, j (2×3 int64), b (2×3 bools), m (a mask), p (indices). The expression also knows emberlet and F.
`None` for NumPy's side: the expression itself is true when all is well.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    burn: str
    emberlet: str
    numpy: str | None = None
    note: str = ""


# The operands, as nested lists.
OPERANDS = {
    "t": [[1.5, -2.0, 0.25], [4.0, 3.5, -0.5]],
    "u": [[0.5, 2.0, 3.0], [1.0, -1.5, 2.5]],
    "v": [0.5, 0.75, 1.0],
    "i": [[5, -3, 2], [7, 0, -9]],
    "j": [[2, 3, -4], [5, 6, 7]],
    "b": [[True, False, True], [False, False, True]],
    "m": [[False, True, True], [True, False, False]],
    "p": [[1, 0, 1], [0, 0, 1]],
}

BASIC = (
    Row("Tensor::cat(tensors, dim)", "emberlet.concat([t, u], axis=1)", "np.concatenate([t, u], 1)"),
    Row("Tensor::empty(shape, device)", "emberlet.empty((2, 3), backend=t.backend).shape == (2, 3)"),
    Row("Tensor::from_primitive(primitive)", "emberlet.Tensor(t.data, t.dtype, t.shape, t.backend)", "t"),
    Row("Tensor::stack(tensors, dim)", "emberlet.stack([t, u], axis=0)", "np.stack([t, u])"),
    Row("tensor.all()", "b.all()", "b.all()"),
    Row("tensor.all_dim(dim)", "b.all(axis=1, keepdims=True)", "b.all(1, keepdims=True)",
        "every `*_dim` call: `axis=` and `keepdims=True`"),
    Row("tensor.any()", "b.any()", "b.any()"),
    Row("tensor.any_dim(dim)", "b.any(axis=1, keepdims=True)", "b.any(1, keepdims=True)"),
    Row("tensor.chunk(num_chunks, dim)", "t.chunk(2, 1)[1]", "t[:, 2:]"),
    Row("tensor.device()", "t.device == repr(t.backend)", None, "the backend's name"),
    Row("tensor.dims()", "t.shape == (2, 3)"),
    Row("tensor.equal(other)", "t == u", "t == u"),
    Row("tensor.expand(shape)", "v.expand(2, -1)", "np.broadcast_to(v, (2, 3))",
        "-1 keeps an axis; `broadcast_to` is the standard's"),
    Row("tensor.flatten(start_dim, end_dim)", "t.flatten(0, 1)", "t.reshape(-1)"),
    Row("tensor.flip(axes)", "t.flip((0, 1))", "t[::-1, ::-1]"),
    Row("tensor.into_data()", "t.into_data().to_list()", "t"),
    Row("tensor.into_primitive()", "t.data is not None"),
    Row("tensor.into_scalar()", "t[0, 0].item()", "t[0, 0]"),
    Row("tensor.narrow(dim, start, length)", "t.narrow(1, 1, 2)", "t[:, 1:3]"),
    Row("tensor.not_equal(other)", "t != u", "t != u"),
    Row("tensor.permute(axes)", "t.permute(1, 0)", "t.T"),
    Row("tensor.movedim(src, dst)", "t.movedim(0, 1)", "np.moveaxis(t, 0, 1)"),
    Row("tensor.repeat_dim(dim, times)", "t.repeat_dim(1, 2)", "np.tile(t, (1, 2))"),
    Row("tensor.repeat(sizes)", "t.tile((2, 2))", "np.tile(t, (2, 2))",
        "`tile`; the standard's `repeat` repeats each element"),
    Row("tensor.reshape(shape)", "t.reshape((3, -1))", "t.reshape(3, -1)"),
    Row("tensor.shape()", "t.shape == (2, 3)"),
    Row("tensor.slice(ranges)", "t[0:1, 1:3]", "t[0:1, 1:3]", "or `t.slice([(0, 1), (1, 3)])`"),
    Row("tensor.slice_assign(ranges, values)", "t.slice_assign([(0, 1), (1, 3)], u[1:, :2])",
        "np.array([[t[0, 0], u[1, 0], u[1, 1]], t[1]])", "in place: `t[0:1, 1:3] = values`"),
    Row("tensor.squeeze(dim)", "t[:1].squeeze(0)", "t[0]"),
    Row("tensor.to_data()", "t.to_data().to_list()", "t"),
    Row("tensor.to_device(device)", "t.to('python')", "t"),
    Row("tensor.unsqueeze()", "t.unsqueeze()", "t[None]"),
    Row("tensor.unsqueeze_dim(dim)", "t.unsqueeze(1)", "t[:, None]", "`expand_dims` in the standard"),
)  # fmt: skip

NUMERIC = (
    Row("Tensor::eye(size, device)", "emberlet.eye(3)", "np.eye(3)"),
    Row("Tensor::full(shape, fill_value, device)", "emberlet.full((2, 2), 7.5)", "np.full((2, 2), 7.5)"),
    Row("Tensor::ones(shape, device)", "emberlet.ones((2, 2))", "np.ones((2, 2))"),
    Row("Tensor::zeros(shape)", "emberlet.zeros((2, 2))", "np.zeros((2, 2))"),
    Row("Tensor::zeros(shape, device)", "emberlet.zeros((2, 2), backend=t.backend)", "np.zeros((2, 2))"),
    Row("tensor.abs()", "t.abs()", "abs(t)"),
    Row("tensor.add(other) or tensor + other", "t + u", "t + u"),
    Row("tensor.add_scalar(scalar) or tensor + scalar", "t + 2", "t + 2",
        "operators take numbers; this covers every `*_scalar` and `*_elem`"),
    Row("tensor.all_close(other, atol, rtol)", "t.all_close(t + 1e-7, atol=1e-5, rtol=1e-5)", "True"),
    Row("tensor.argmax(dim)", "t.argmax(1, keepdims=True)",
        "t.argmax(1, keepdims=True)", "without keepdims the axis is dropped"),
    Row("tensor.argmin(dim)", "t.argmin(1, keepdims=True)", "t.argmin(1, keepdims=True)"),
    Row("tensor.argsort(dim)", "t.argsort(1)", "t.argsort(1)"),
    Row("tensor.argsort_descending(dim)", "t.argsort(1, descending=True)", "(-t).argsort(1)"),
    Row("tensor.bool()", "i.bool()", "i != 0"),
    Row("tensor.clamp(min, max)", "t.clip(-1, 2)", "t.clip(-1, 2)"),
    Row("tensor.clamp_max(max)", "t.clamp_max(2)", "np.minimum(t, 2)"),
    Row("tensor.clamp_min(min)", "t.clamp_min(-1)", "np.maximum(t, -1)"),
    Row("tensor.contains_nan()", "t.contains_nan()", "np.isnan(t).any()"),
    Row("tensor.div(other) or tensor / other", "t / u", "t / u",
        "integers become float32; `trunc_divide` keeps them, as Burn does"),
    Row("tensor.div_scalar(scalar) or tensor / scalar", "t / 2", "t / 2"),
    Row("tensor.equal_elem(other)", "t == 4", "t == 4"),
    Row("tensor.full_like(fill_value)", "emberlet.full_like(t, 3)", "np.full_like(t, 3)"),
    Row("tensor.gather(dim, indices)", "t.gather(0, p)", "np.take_along_axis(t, p, 0)"),
    Row("tensor.greater(other)", "t > u", "t > u"),
    Row("tensor.greater_elem(scalar)", "t > 1", "t > 1"),
    Row("tensor.greater_equal(other)", "t >= u", "t >= u"),
    Row("tensor.greater_equal_elem(scalar)", "t >= 1.5", "t >= 1.5"),
    Row("tensor.is_close(other, atol, rtol)", "t.is_close(u, atol=0.1, rtol=0.5)",
        "np.isclose(t, u, atol=0.1, rtol=0.5)"),
    Row("tensor.is_nan()", "t.isnan()", "np.isnan(t)"),
    Row("tensor.lower(other)", "t < u", "t < u"),
    Row("tensor.lower_elem(scalar)", "t < 1", "t < 1"),
    Row("tensor.lower_equal(other)", "t <= u", "t <= u"),
    Row("tensor.lower_equal_elem(scalar)", "t <= 1.5", "t <= 1.5"),
    Row("tensor.mask_fill(mask, value)", "t.mask_fill(m, 9)", "np.where(m, 9, t)"),
    Row("tensor.mask_where(mask, value_tensor)", "t.mask_where(m, u)", "np.where(m, u, t)"),
    Row("tensor.max()", "t.max()", "t.max()"),
    Row("tensor.max_dim(dim)", "t.max(axis=1, keepdims=True)", "t.max(1, keepdims=True)"),
    Row("tensor.max_dim_with_indices(dim)", "t.max_with_indices(1)[1]", "t.argmax(1, keepdims=True)"),
    Row("tensor.max_pair(other)", "t.maximum(u)", "np.maximum(t, u)"),
    Row("tensor.mean()", "t.mean()", "t.mean()"),
    Row("tensor.mean_dim(dim)", "t.mean(axis=1, keepdims=True)", "t.mean(1, keepdims=True)"),
    Row("tensor.min()", "t.min()", "t.min()"),
    Row("tensor.min_dim(dim)", "t.min(axis=1, keepdims=True)", "t.min(1, keepdims=True)"),
    Row("tensor.min_dim_with_indices(dim)", "t.min_with_indices(1)[1]", "t.argmin(1, keepdims=True)"),
    Row("tensor.min_pair(other)", "t.minimum(u)", "np.minimum(t, u)"),
    Row("tensor.mul(other) or tensor * other", "t * u", "t * u"),
    Row("tensor.mul_scalar(scalar) or tensor * scalar", "t * 2", "t * 2"),
    Row("tensor.neg() or -tensor", "-t", "-t"),
    Row("tensor.not_equal_elem(scalar)", "t != 4", "t != 4"),
    Row("tensor.ones_like()", "t.ones_like()", "np.ones_like(t)"),
    Row("tensor.pad(pads, value)", "t.pad((1, 0, 0, 2), 9)", "np.pad(t, [(0, 2), (1, 0)], constant_values=9)",
        "(left, right, top, bottom), or a (low, high) pair per axis"),
    Row("tensor.powf(other) or tensor.powi(intother)", "t.abs() ** u", "abs(t) ** u"),
    Row("tensor.powf_scalar(scalar) or tensor.powi_scalar(intscalar)", "t ** 2", "t ** 2"),
    Row("tensor.prod()", "t.prod()", "t.prod()"),
    Row("tensor.prod_dim(dim)", "t.prod(axis=1, keepdims=True)", "t.prod(1, keepdims=True)"),
    Row("tensor.rem(other) or tensor % other", "t % u",
        "t % u", "has the sign of the divisor; `fmod`, that of the dividend"),
    Row("tensor.scatter(dim, indices, values)", "t.scatter(0, p, u)",
        "np.add.at(r := t.copy(), (p, np.arange(3)[None].repeat(2, 0)), u) or r", "adds; `reduction=` selects another"),
    Row("tensor.select(dim, indices)", "t.select(1, p[0])", "t[:, p[0]]", "`take(x, indices, axis=)` in the standard"),
    Row("tensor.select_assign(dim, indices, values)", "t.select_assign(1, p[0], u)",
        "np.add.at(r := t.copy(), (slice(None), p[0]), u) or r", "adds"),
    Row("tensor.sign()", "t.sign()", "np.sign(t)"),
    Row("tensor.sort(dim)", "t.sort(1)", "np.sort(t, 1)"),
    Row("tensor.sort_descending(dim)", "t.sort(1, descending=True)", "-np.sort(-t, 1)"),
    Row("tensor.sort_descending_with_indices(dim)", "t.sort_with_indices(1, descending=True)[1]", "(-t).argsort(1)"),
    Row("tensor.sort_with_indices(dim)", "t.sort_with_indices(1)[1]", "t.argsort(1)"),
    Row("tensor.sub(other) or tensor - other", "t - u", "t - u"),
    Row("tensor.sub_scalar(scalar) or tensor - scalar", "t - 2", "t - 2"),
    Row("tensor.sum()", "t.sum()", "t.sum()"),
    Row("tensor.sum_dim(dim)", "t.sum(axis=1, keepdims=True)", "t.sum(1, keepdims=True)"),
    Row("tensor.topk(k, dim)", "t.topk(2, 1)", "-np.sort(-t, 1)[:, :2]"),
    Row("tensor.topk_with_indices(k, dim)", "t.topk_with_indices(2, 1)[1]", "(-t).argsort(1)[:, :2]"),
    Row("tensor.tril(diagonal)", "t.tril(k=0)", "np.tril(t)"),
    Row("tensor.triu(diagonal)", "t.triu(k=1)", "np.triu(t, 1)"),
    Row("tensor.zeros_like()", "t.zeros_like()", "np.zeros_like(t)"),
)  # fmt: skip

FLOAT = (
    Row("Tensor::one_hot(index, num_classes, device)", "emberlet.asarray(2).one_hot(4)", "np.eye(4, dtype=int)[2]"),
    Row("tensor.ceil()", "t.ceil()", "np.ceil(t)"),
    Row("tensor.cos()", "t.cos()", "np.cos(t)"),
    Row("tensor.erf()", "t.erf()", "np.vectorize(math.erf)(t)"),
    Row("tensor.exp()", "t.exp()", "np.exp(t)"),
    Row("tensor.floor()", "t.floor()", "np.floor(t)"),
    Row("tensor.from_floats(floats, device)", "emberlet.asarray([1.5, 2.5])", "np.array([1.5, 2.5])"),
    Row("tensor.from_full_precision(tensor)", "t.from_full_precision('float16')", "t.astype(np.float16)"),
    Row("tensor.int()", "t.int()", "t.astype(int)"),
    Row("tensor.log()", "t.abs().log()", "np.log(abs(t))"),
    Row("tensor.log1p()", "t.abs().log1p()", "np.log1p(abs(t))"),
    Row("tensor.matmul(other)", "t @ u.T", "t @ u.T"),
    Row("tensor.random(shape, distribution, device)", "F.random((2, 3), 'normal', 0, 1, seed=3).shape == (2, 3)", None,
        "or `F.uniform`, `F.normal`, `F.bernoulli`, `F.randint`"),
    Row("tensor.random_like(distribution)", "t.random_like('uniform', 0, 1).shape == t.shape"),
    Row("tensor.recip()", "t.reciprocal()", "1 / t"),
    Row("tensor.round()", "t.round()", "np.round(t)"),
    Row("tensor.sin()", "t.sin()", "np.sin(t)"),
    Row("tensor.sqrt()", "t.abs().sqrt()", "np.sqrt(abs(t))"),
    Row("tensor.swap_dims(dim1, dim2)", "t.swap_dims(0, 1)", "t.T"),
    Row("tensor.tanh()", "t.tanh()", "np.tanh(t)"),
    Row("tensor.to_full_precision()", "t.astype('float16').to_full_precision()", "t.astype(np.float16)"),
    Row("tensor.transpose()", "t.transpose()", "t.T", "the last two axes; `t.mT` in the standard"),
    Row("tensor.var(dim)", "t.var(axis=1, correction=1, keepdims=True)", "t.var(1, ddof=1, keepdims=True)",
        "the standard divides by n unless told otherwise"),
    Row("tensor.var_bias(dim)", "t.var(axis=1, keepdims=True)", "t.var(1, keepdims=True)"),
    Row("tensor.var_mean(dim)", "t.var_mean(axis=1, correction=1, keepdims=True)[1]", "t.mean(1, keepdims=True)"),
    Row("tensor.var_mean_bias(dim)", "t.var_mean(axis=1, keepdims=True)[0]", "t.var(1, keepdims=True)"),
)  # fmt: skip

INT = (
    Row("tensor.arange(5..10, device)", "emberlet.arange(5, 10)", "np.arange(5, 10)"),
    Row("tensor.arange_step(5..10, 2, device)", "emberlet.arange(5, 10, 2)", "np.arange(5, 10, 2)"),
    Row("tensor.float()", "i.float()", "i.astype(float)"),
    Row("tensor.from_ints(ints)", "emberlet.asarray([1, 2])", "np.array([1, 2])"),
    Row("tensor.int_random(shape, distribution, device)", "F.randint(0, 10, (2, 3), seed=3).max() < 10"),
    Row("tensor.cartesian_grid(shape, device)", "emberlet.cartesian_grid((2, 3))", "np.stack(np.indices((2, 3)), -1)"),
    Row("tensor.one_hot(num_classes)", "p.one_hot(3)", "np.eye(3, dtype=int)[p]"),
)  # fmt: skip

BOOL = (
    Row("Tensor::diag_mask(shape, diagonal)", "emberlet.diag_mask((3, 3), 1)", "~np.eye(3, k=1, dtype=bool)"),
    Row("Tensor::tril_mask(shape, diagonal)", "emberlet.tril_mask((3, 3), 0)", "~np.tri(3, dtype=bool)"),
    Row("Tensor::triu_mask(shape, diagonal)", "emberlet.triu_mask((3, 3), 0)", "np.tri(3, k=-1, dtype=bool)"),
    Row("tensor.argwhere()", "b.argwhere()", "np.argwhere(b)"),
    Row("tensor.float()", "b.float()", "b.astype(float)"),
    Row("tensor.int()", "b.int()", "b.astype(int)"),
    Row("tensor.nonzero()", "b.nonzero()[1]", "b.nonzero()[1]"),
    Row("tensor.not()", "~b", "~b", "or `b.logical_not()`"),
)  # fmt: skip

QUANTIZATION = (
    Row("tensor.quantize(scheme, qparams)", "t.quantize(qparams=(0.5, 1)).values", "np.round(t / 0.5) + 1",
        "`F.quantize_linear` gives the integers alone"),
    Row("tensor.dequantize()", "t.quantize(qparams=(0.25, 0)).dequantize()", "t"),
)  # fmt: skip

SIGMOID = "1 / (1 + np.exp(-t))"
SOFTMAX = "np.exp(t) / np.exp(t).sum(1, keepdims=True)"
ACTIVATION = (
    Row("activation::gelu(tensor)", "F.gelu(t)", "t * (1 + np.vectorize(math.erf)(t / 2**0.5)) / 2"),
    Row("activation::hard_sigmoid(tensor, alpha, beta)", "F.hard_sigmoid(t, 0.2, 0.5)", "np.clip(0.2 * t + 0.5, 0, 1)"),
    Row("activation::leaky_relu(tensor, negative_slope)", "F.leaky_relu(t, 0.1)", "np.where(t < 0, 0.1 * t, t)"),
    Row("activation::log_sigmoid(tensor)", "F.log_sigmoid(t)", f"np.log({SIGMOID})"),
    Row("activation::log_softmax(tensor, dim)", "F.log_softmax(t, 1)", f"np.log({SOFTMAX})"),
    Row("activation::mish(tensor)", "F.mish(t)", "t * np.tanh(np.log1p(np.exp(t)))"),
    Row("activation::prelu(tensor, alpha)", "F.prelu(t, v[:1])", "np.where(t < 0, v[0] * t, t)"),
    Row("activation::quiet_softmax(tensor, dim)", "F.quiet_softmax(t, 1)",
        "np.exp(t) / (1 + np.exp(t).sum(1, keepdims=True))"),
    Row("activation::relu(tensor)", "F.relu(t)", "np.maximum(t, 0)"),
    Row("activation::sigmoid(tensor)", "F.sigmoid(t)", SIGMOID),
    Row("activation::silu(tensor)", "F.silu(t)", "t / (1 + np.exp(-t))"),
    Row("activation::softmax(tensor, dim)", "F.softmax(t, 1)", SOFTMAX),
    Row("activation::softmin(tensor, dim)", "F.softmin(t, 1)", "np.exp(-t) / np.exp(-t).sum(1, keepdims=True)"),
    Row("activation::softplus(tensor, beta)", "F.softplus(t, 2)", "np.log1p(np.exp(2 * t)) / 2"),
    Row("activation::tanh(tensor)", "F.tanh(t)", "np.tanh(t)"),
)  # fmt: skip

DISPLAY = (
    Row('println!("{}", tensor)', "'shape:  [2, 3]' in str(t)", None, "`print(t)`"),
    Row('println!("{:.2}", tensor)', "'[1.50, -2.00, 0.25]' in F.format_with(t, '.2f')", None,
        "on CPython `print(f\"{t:.2f}\")`; MicroPython's f-strings do not call `__format__`"),
    Row("set_print_options(print_options)", "emberlet.set_print_options(precision=1) is None and '-2.0,' in str(t)"
        " and emberlet.set_print_options() is None"),
    Row("check_closeness(&tensor1, &tensor2)", "'PASS' in emberlet.check_closeness(t, t)"),
)  # fmt: skip

SECTIONS = {
    "Basic operations": BASIC,
    "Numeric operations": NUMERIC,
    "Float operations": FLOAT,
    "Int operations": INT,
    "Bool operations": BOOL,
    "Quantization": QUANTIZATION,
    "Activation functions": ACTIVATION,
    "Display": DISPLAY,
}
