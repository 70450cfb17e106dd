"""Calls as PyTorch's documentation writes them, by position and by keyword, for every function whose declaration names
PyTorch, and layers. F is torch.nn.functional, or torch for what that lacks; here it is emberlet.functional.

fixtures/torch_calls.py runs them through PyTorch once and keeps the answers; test_torch_calls.py runs them through
emberlet. A call marked "refused" means something else here, and says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

REFUSED = " | refused"


def arrays() -> dict[str, Any]:
    """name -> array: the operands of CALLS."""
    r = np.random.RandomState(7)

    def normal(*shape: int) -> Any:
        return r.randn(*shape).astype(np.float32)

    return {
        "x": normal(3, 4), "y": normal(3, 4), "v": normal(4), "u": normal(4), "c": normal(2, 3, 4), "one": normal(1, 1),
        "square": normal(4, 4), "wide": normal(5, 4), "b": normal(4), "b5": normal(5), "positive": abs(normal(3, 4)),
        "line": normal(2, 4, 9), "image": normal(2, 4, 6, 6), "volume": normal(1, 2, 5, 5, 5),
        "k1": normal(4, 2, 3), "k2": normal(4, 2, 3, 3), "k3": normal(4, 2, 2, 2, 2), "kt3": normal(2, 4, 2, 2, 2),
        "mean": normal(4), "var": abs(normal(4)) + 1, "columns": normal(2, 16, 9), "theta": normal(2, 2, 3),
        "grid": (r.rand(2, 3, 5, 2) * 2 - 1).astype(np.float32), "rows": normal(7, 3), "whole": np.arange(12) - 4,
        "i": np.array([[0, 6], [3, 3]]), "target": np.array([0, 3, 1]), "classes": np.array([0.2, 1, 2, 0.5], "f4"),
        "signs": np.array([1, -1, 1]), "signs4": np.array([1, -1, -1, 1]),
        "labels": np.array([[1, 3, -1, 2], [0, -1, 1, 2], [-1, 0, 0, 0]]), "times": normal(6, 3, 5),
        "words": np.array([[1, 4], [3, 3], [4, 1]]),
        "chances": np.array([[0, 0, 1], [0, 2, 0]], "f4"), "chance": np.array([0, 3, 0, 0], "f4"),
    }  # fmt: skip


CALLS = """
F.transpose(c, 0, 1)
F.transpose(c, 1, -1)
F.transpose(input=c, dim0=1, dim1=2)
F.transpose(x, 1, 0)
F.transpose(x, 0, 1) | refused
x.transpose(-2, -1) | refused
c.transpose(1, 2)
F.movedim(c, 0, 2)
F.movedim(c, source=(0, 1), destination=(1, 2))
F.squeeze(one)
F.squeeze(one, 0)
F.squeeze(one, dim=(0, 1))
F.squeeze(x, 0) | refused
F.unsqueeze(x, 1)
F.unsqueeze(x, dim=-1)
x.unsqueeze(0)
F.narrow(x, 1, 1, 2)
F.narrow(x, dim=0, start=1, length=2)
F.cat((x, y))
F.cat([x, y], dim=1)
F.cat(tensors=[x, y], dim=-1)
F.chunk(x, 2, 1)[1]
F.chunk(x, chunks=2, dim=0)[1]
F.randint(3, 4, (2, 2))
F.randint(1, (5,))
F.randint(low=2, high=3, size=(4,))
F.randint(1, size=(2,))
F.randperm(6).sum()
F.randperm(n=5).sum()
F.multinomial(chances, 1)
F.multinomial(chances, 3, True)
F.multinomial(input=chances, num_samples=2, replacement=True)
F.multinomial(chance, 1)
F.multinomial(chances, 2) | refused
F.multinomial(-chances, 1) | refused
F.item(one)
one.item()
x.tolist()
F.linear(x, wide)
F.linear(x, wide, b5)
F.linear(c, weight=wide, bias=b5)
F.linear(input=x, weight=wide)
F.linear(x, square) | refused
F.linear(x, square, b) | refused
F.linear(x[:, :1], one)
F.flatten(c)
F.flatten(c, 1)
F.flatten(c, start_dim=0, end_dim=1)
c.flatten(1, -1)
F.unfold(image, 2)
F.unfold(image, (2, 3), 1, 1, 2)
F.unfold(image, 3, 2)
F.unfold(image, kernel_size=2, stride=2)
F.fold(columns, (4, 4), 2)
F.fold(columns, (6, 6), 2, 1, 0, 2)
F.fold(columns, output_size=(6, 6), kernel_size=(2, 2), stride=(2, 2))
F.grid_sample(image, grid)
F.grid_sample(image, grid, 'bilinear', 'border', True)
F.grid_sample(image, grid, mode='nearest', padding_mode='zeros', align_corners=False)
F.affine_grid(theta, (2, 3, 4, 5))
F.affine_grid(theta, size=(2, 3, 4, 5), align_corners=True)
F.interpolate(image, 4)
F.interpolate(image, (4, 9))
F.interpolate(image, scale_factor=2)
F.interpolate(image, None, 2.0, 'bilinear', False)
F.interpolate(image, size=(8, 8), mode='bicubic', align_corners=True)
F.interpolate(image, size=(3, 3), mode='bilinear', antialias=True) | refused
F.interpolate(image, scale_factor=0.5, recompute_scale_factor=None)
F.adaptive_avg_pool1d(line, 3)
F.adaptive_avg_pool2d(image, (2, 3))
F.adaptive_avg_pool2d(image, output_size=1)
F.adaptive_max_pool1d(line, 2)
F.adaptive_max_pool1d(line, 2, True) | refused
F.adaptive_max_pool2d(image, (3, 2), False) | refused
F.adaptive_max_pool2d(image, (3, 2), return_indices=True) | refused
F.max_pool1d(line, 3)
F.max_pool1d(line, 3, 2, 1)
F.max_pool2d(image, 2)
F.max_pool2d(image, (3, 2), (2, 1), (1, 0), 1, True)
F.max_pool2d(image, kernel_size=2, stride=2, ceil_mode=True)
F.max_pool2d(image, 2, return_indices=True) | refused
F.max_pool3d(volume, 2)
F.max_pool3d(volume, 2, 1, 1, 2)
F.avg_pool1d(line, 2)
F.avg_pool1d(line, 3, 2, 1, False, True) | refused
F.avg_pool2d(image, 2, 2, 0)
F.avg_pool2d(image, 3, 2, 1, True) | refused
F.avg_pool2d(image, 3, 2, padding=1, ceil_mode=True, count_include_pad=False)
F.avg_pool2d(image, 2, divisor_override=3) | refused
F.avg_pool3d(volume, 2)
F.avg_pool3d(volume, 2, 2, 1, False, False) | refused
F.conv1d(line, k1, None, 2, 1, 1, 2)
F.conv1d(input=line, weight=k1, bias=b, groups=2)
F.conv2d(image, k2, b, 1, 1, 1, 2)
F.conv2d(image, k2, b, stride=(2, 1), padding='valid', dilation=2, groups=2)
F.conv3d(volume, k3)
F.conv3d(volume, k3, b, 1, 1, 2, 1)
F.conv_transpose1d(line, k1)
F.conv_transpose1d(line, k1, None, 2, 1, 1, 2)
F.conv_transpose2d(image, k2, None, 2, 1, 1, 2, 1)
F.conv_transpose2d(image, k2, None, 1, 0, 0, 2, 3)
F.conv_transpose3d(volume, kt3, b, 2, 0, 1, 1, 2)
F.conv_transpose3d(input=volume, weight=kt3, bias=b, dilation=2)
F.topk(x, 2, dim=1) | refused
F.topk(x, k=2, largest=False, sorted=True) | refused
F.cummax(x, dim=1) | refused
F.isin(whole, target)
F.isin(elements=whole, test_elements=target, invert=True)
F.isin(whole, target, assume_unique=False)
F.batch_norm(image, mean, var)
F.batch_norm(image, mean, var, u, v, False, 0.1, 1e-3)
F.batch_norm(image, mean, var, u, v, False)
F.batch_norm(image, running_mean=mean, running_var=var, weight=u, bias=v, training=False, eps=0.1)
F.batch_norm(image, mean, var, None, None, True) | refused
F.batch_norm(image, mean, var, training=True) | refused
F.layer_norm(x, (4,))
F.layer_norm(x, [4])
F.layer_norm(c, (3, 4), y)
F.layer_norm(x, (4,), u, v)
F.layer_norm(x, (4,), u, v, 1e-2)
F.layer_norm(input=x, normalized_shape=(4,), weight=u, bias=v, eps=1e-3)
F.layer_norm(x, normalized_shape=(4,))
F.layer_norm(x, x.shape[1:])
F.layer_norm(c, (2, 3, 4), eps=0.5)
F.layer_norm(x, (3,)) | refused
F.layer_norm(x, (4,), u, v, 1e-5, True) | refused
F.instance_norm(image, None, None, u, v, True, 0.1, 1e-5, True) | refused
F.cross_entropy(x, target, classes, None, 3, None, 'sum', 0.0, 1) | refused
F.rms_norm(x, (4,))
F.rms_norm(c, (3, 4), y)
F.rms_norm(x * 1e-4, (4,), u)
F.rms_norm(x, (4,), u, 0.1)
F.rms_norm(x, normalized_shape=[4], weight=u, eps=0.1)
F.rms_norm(x, (3,)) | refused
F.group_norm(image, 2)
F.group_norm(image, 2, u, v, 0.1)
F.group_norm(image, num_groups=4, weight=u, bias=v, eps=1e-2)
F.instance_norm(image)
F.instance_norm(image, None, None, u, v)
F.instance_norm(image, None, None, u, v, True, 0.1, 0.5)
F.instance_norm(image, weight=u, bias=v, eps=0.1)
F.instance_norm(image, mean, var) | refused
F.instance_norm(image, mean, var, u, v, False) | refused
F.local_response_norm(image, 3)
F.local_response_norm(image, 2)
F.local_response_norm(image, 4, 0.5, 0.7, 2.0)
F.local_response_norm(image, size=3, alpha=0.5, beta=0.6, k=2.0)
F.nll_loss(x, target)
F.nll_loss(x, target, classes)
F.nll_loss(x, target, classes, None, -100)
F.nll_loss(x, target, classes, None, 1, None, 'sum')
F.nll_loss(x, target, classes, True) | refused
F.nll_loss(x, target, ignore_index=3, reduction='none')
F.nll_loss(x, target, size_average=False) | refused
F.cross_entropy(x, target)
F.cross_entropy(x, target, classes, None, 3, None, 'sum', 0.0)
F.cross_entropy(x, target, weight=classes, ignore_index=0)
F.cross_entropy(x, target, label_smoothing=0.1) | refused
F.cross_entropy(x, y) | refused
F.norm(x)
F.norm(x, 'fro')
F.norm(x, 1, 0)
F.norm(x, p=3, dim=1, keepdim=True)
F.norm(x, p='fro', dim=0)
F.norm(x, 'nuc') | refused
F.embedding(i, rows)
F.embedding(input=i, weight=rows, padding_idx=0)
F.dot(u, v)
F.dot(u, tensor=v) | refused
F.outer(u, v)
F.outer(input=u, vec2=v)
F.rsqrt(positive)
F.rsqrt(whole * whole + 1)
F.exp2(x)
F.exp2(whole)
F.erf(x)
F.erfc(input=x)
F.fmod(x, y)
F.fmod(whole, 3)
F.fmod(x, other=1.5)
F.relu6(x)
F.relu6(x, False)
F.relu6(x, True) | refused
F.relu(x, inplace=False)
F.leaky_relu(x)
F.leaky_relu(x, 0.2, False)
F.leaky_relu(x, negative_slope=0.1)
F.prelu(image, b)
F.prelu(input=x, weight=b[:1])
F.silu(x)
F.silu(x, False)
F.silu(x, inplace=True) | refused
F.elu(x, 0.5)
F.elu(x, 0.5, False)
F.selu(x)
F.selu(x, False)
F.selu(x, True) | refused
F.celu(x, alpha=2.0)
F.celu(x, 2.0, True) | refused
F.hardtanh(x)
F.hardtanh(x, -0.5, 0.25, False)
F.hardtanh(x, min_val=-0.5, max_val=0.1)
F.softmin(x, 1)
F.softmin(x, dim=0)
F.glu(x)
F.glu(x, 1)
F.glu(c, dim=-1)
nn.ReLU()(x)
nn.ReLU6()(x)
nn.LeakyReLU(0.3)(x)
nn.GELU()(x)
nn.GELU('tanh')(x)
nn.SiLU()(x)
nn.Mish()(x)
nn.ELU(0.5)(x)
nn.SELU()(x)
nn.CELU(2.0)(x)
nn.GLU()(x)
nn.Tanh()(x)
nn.Sigmoid()(x)
nn.LogSigmoid()(x)
nn.Softsign()(x)
nn.Softplus()(x)
nn.Softmax(1)(x)
nn.LogSoftmax(-1)(x)
nn.Softmin(1)(x)
nn.Hardtanh(-0.5, 0.3)(x)
nn.Hardswish()(x)
nn.Hardshrink(0.3)(x)
nn.Softshrink(0.3)(x)
nn.Tanhshrink()(x)
nn.Identity(54, other=1)(x)
nn.Flatten()(image)
nn.Flatten(0, 1)(c)
nn.Unflatten(1, (2, 2))(image)
nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Softmax(1))(image)
nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Softmax(1))[1:](image)
nn.ModuleList([nn.ReLU(), nn.Tanh()])[1](x)
nn.ModuleDict({'a': nn.ReLU()})['a'](x)
nn.Upsample(scale_factor=2)(image)
nn.Upsample(size=(4, 9))(image)
nn.Upsample(None, 2, 'bilinear', True)(image)
nn.ZeroPad1d((1, 2))(line)
nn.ZeroPad2d((1, 2, 0, 3))(image)
nn.ZeroPad2d((-1, 2, 0, -2))(image)
nn.ZeroPad2d(1)(image[0])
nn.ZeroPad3d(1)(volume)
nn.ConstantPad1d(2, 3.5)(line)
nn.ConstantPad2d((3, 0, 2, 1), -1.0)(image)
nn.ConstantPad3d((1, 0, 0, 1, 2, 0), 2.0)(volume)
nn.ReflectionPad1d(2)(line)
nn.ReflectionPad2d((1, 2, 3, 0))(image)
nn.ReplicationPad1d((3, 1))(line)
nn.ReplicationPad2d((1, 1, 2, 0))(image)
nn.ReplicationPad3d(2)(volume)
nn.CircularPad1d(3)(line)
nn.CircularPad2d((1, 2, 3, 4))(image)
nn.L1Loss()(x, y)
nn.L1Loss(reduction='none')(x, y)
nn.SmoothL1Loss(beta=0.5)(x, y)
nn.SmoothL1Loss(reduction='sum')(x, y)
nn.MSELoss()(x, y)
nn.MSELoss(reduction='sum')(x, y)
nn.BCELoss()(F.sigmoid(x), F.sigmoid(y))
nn.BCEWithLogitsLoss(reduction='none')(x, F.sigmoid(y))
nn.NLLLoss(classes)(x, target)
nn.NLLLoss(ignore_index=3, reduction='none')(x, target)
nn.KLDivLoss(reduction='batchmean')(F.log_softmax(x, 1), F.softmax(y, 1))
nn.KLDivLoss(reduction='sum', log_target=True)(F.log_softmax(x, 1), F.log_softmax(y, 1))
nn.HuberLoss(delta=0.5)(x, y)
nn.CrossEntropyLoss()(x, target)
nn.CosineEmbeddingLoss(0.2)(x, y, signs)
nn.CosineEmbeddingLoss(margin=0.1, reduction='none')(x, y, signs)
nn.GaussianNLLLoss()(x, y, positive)
nn.GaussianNLLLoss(full=True, eps=1e-3, reduction='sum')(x, y, positive)
nn.HingeEmbeddingLoss()(v, signs4)
nn.HingeEmbeddingLoss(margin=0.5, reduction='none')(v, signs4)
nn.MarginRankingLoss()(v, u, signs4)
nn.MarginRankingLoss(0.5, reduction='sum')(v, u, signs4)
nn.MultiMarginLoss()(x, target)
nn.MultiMarginLoss(2, 0.5, classes)(x, target)
nn.MultiMarginLoss(p=1, margin=1.5, weight=classes, reduction='none')(x, target)
nn.MultiLabelMarginLoss()(x, labels)
nn.MultiLabelMarginLoss(reduction='none')(x, labels)
nn.MultiLabelSoftMarginLoss()(x, F.where(y > 0, 1.0, 0.0))
nn.MultiLabelSoftMarginLoss(reduction='none')(x, F.where(y > 0, 1.0, 0.0))
nn.SoftMarginLoss()(v, signs4)
nn.SoftMarginLoss(reduction='none')(v, signs4)
nn.PoissonNLLLoss()(x, positive)
nn.PoissonNLLLoss(full=True, reduction='none')(x, positive)
nn.PoissonNLLLoss(log_input=False, eps=1e-3)(positive, positive)
nn.TripletMarginLoss()(x, y, c[0])
nn.TripletMarginLoss(0.5, 1.0, swap=True, reduction='none')(x, y, c[0])
nn.TripletMarginLoss(margin=2.0, p=3, eps=1e-3)(x, y, c[0])
nn.TripletMarginWithDistanceLoss(margin=0.5)(x, y, c[0])
nn.TripletMarginWithDistanceLoss(distance_function=lambda p, q: ((p - q) ** 2).sum(-1), reduction='none')(x, y, c[0])
nn.CTCLoss()(F.log_softmax(times, 2), words, [6, 5, 6], [2, 1, 0])
nn.CTCLoss(blank=2, reduction='none')(F.log_softmax(times, 2), words, [6, 5, 4], [2, 2, 2])
nn.CTCLoss(reduction='sum', zero_infinity=True)(F.log_softmax(times, 2), words, [1, 5, 6], [2, 2, 2])
nn.CTCLoss(reduction='none')(F.log_softmax(times, 2), words, [1, 5, 6], [2, 2, 2])
F.ctc_loss(F.log_softmax(times, 2), words.reshape((6,)), [6, 5, 6], [2, 2, 2])
F.ctc_loss(F.log_softmax(times[:, 0], 1), words[0], [6], [2], reduction='none')
F.view_as_real(F.view_as_complex(image.reshape((2, 4, 18, 2))))
F.interpolate(image, size=(9, 4), mode='nearest-exact')
F.interpolate(image, scale_factor=1.7, mode='nearest-exact')
F.interpolate(volume, size=(3, 7, 2), mode='nearest-exact')
F.interpolate(line, scale_factor=0.4, mode='nearest-exact')
F.interpolate(image, size=(4, 9), mode='area')
F.interpolate(line, scale_factor=0.5, mode='area')
nn.Upsample(scale_factor=2, mode='nearest-exact')(image)
line.unfold(2, 3, 2)
x.unfold(dimension=0, size=2, step=1)
x.repeat(2, 2) | refused
nn.PixelShuffle(2)(image)
nn.PixelUnshuffle(3)(image)
nn.ChannelShuffle(2)(image)
nn.LocalResponseNorm(3)(image)
nn.LocalResponseNorm(2, alpha=0.5, beta=0.6, k=2.0)(line)
nn.Softmax2d()(image)
nn.CosineSimilarity()(x, y)
nn.CosineSimilarity(dim=0, eps=1e-3)(x, y)
nn.PairwiseDistance()(x, y)
nn.PairwiseDistance(p=1, eps=0.1, keepdim=True)(x, y)
nn.Threshold(0.1, 20.0)(x)
nn.AdaptiveAvgPool3d((2, None, 3))(volume)
nn.AdaptiveAvgPool2d((None, 3))(image)
nn.AdaptiveMaxPool1d(4)(line)
nn.AdaptiveMaxPool2d((2, None))(image)
nn.AdaptiveMaxPool3d(2)(volume)
nn.LPPool1d(2, 3)(line)
nn.LPPool2d(3, 2, stride=1, ceil_mode=True)(image)
nn.LPPool3d(2, 2)(volume)
nn.CircularPad3d((1, 2, 0, 1, 1, 0))(volume)
nn.ReflectionPad3d(1)(volume)
nn.CrossEntropyLoss(classes)(x, target) | refused
"""


def calls() -> list[tuple[str, bool]]:
    """(call, whether it is refused here) of every line."""
    lines = CALLS.strip().splitlines()
    return [(line.removesuffix(REFUSED), line.endswith(REFUSED)) for line in lines]
