"""Networks that look at images: residual, U-shaped, mobile, transformer, variational, detecting."""

from collections.abc import Mapping

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recipe import Inputs, Recipe, export, export_traced, normal, seeded


class Residual(nn.Module):
    """Two convolutions and a shortcut around them, as in ResNet-18."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
            if stride > 1
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResidualCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Residual(16, 16, 1), Residual(16, 16, 1))
        self.layer2 = nn.Sequential(Residual(16, 32, 2), Residual(32, 32, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(32, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(image))))
        return self.fc(self.avgpool(self.layer2(self.layer1(x))).flatten(1))


class DoubleConv(nn.Sequential):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__(
            nn.Conv2d(inner, outer, 3, padding=1),
            nn.GroupNorm(4, outer),
            nn.SiLU(),
            nn.Conv2d(outer, outer, 3, padding=1),
            nn.InstanceNorm2d(outer, affine=True),
            nn.LeakyReLU(0.1),
        )


class UNet(nn.Module):
    """Two levels down, one up by a transposed convolution and one by bilinear resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = DoubleConv(1, 8)
        self.down2 = DoubleConv(8, 16)
        self.bottom = DoubleConv(16, 32)
        self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.mix2 = DoubleConv(32, 16)
        self.mix1 = DoubleConv(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        a = self.down1(image)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.avg_pool2d(b, 2))
        b = self.mix2(torch.cat([self.up2(c), b], dim=1))
        up = F.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.mix1(torch.cat([up, a], dim=1)))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, channels // 4, 1)
        self.expand = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = x.mean((2, 3), keepdim=True)
        return x * F.hardsigmoid(self.expand(F.relu(self.reduce(scale))))


class InvertedResidual(nn.Module):
    """Expand, depthwise convolution, channel gate, project: MobileNetV3's block."""

    def __init__(self, inner: int, wide: int, outer: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.skip = stride == 1 and inner == outer
        self.block = nn.Sequential(
            nn.Conv2d(inner, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            SqueezeExcitation(wide),
            nn.Conv2d(wide, outer, 1, bias=False),
            nn.BatchNorm2d(outer),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x) if self.skip else self.block(x)


class MobileCNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.blocks = nn.Sequential(
            InvertedResidual(8, 32, 16, 3, 2), InvertedResidual(16, 48, 16, 5, 1), InvertedResidual(16, 64, 24, 3, 2)
        )
        self.classifier = nn.Sequential(nn.Linear(24, 64), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(64, 10))
        nn.init.normal_(self.classifier[3].weight, std=1.5)  # or all ten probabilities are nearly the same

    def forward(self, image: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.blocks(self.stem(image)), 1)
        return F.softmax(self.classifier(x.flatten(1)), dim=-1)


class ViT(nn.Module):
    """8×8 patches of a 32×32 image, a class token, learned positions, two pre-norm encoder layers."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.2)
        self.position = nn.Parameter(torch.randn(1, 17, width) * 0.2)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, activation="gelu", batch_first=True, norm_first=True, dropout=0.0
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        return self.head(self.norm(self.encoder(x))[:, 0])


class VAE(nn.Module):
    """Encode to a mean and a log variance, draw by the noise given, decode with transposed convolutions."""

    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ELU(), nn.Flatten(), nn.Linear(784, 64)
        )
        self.mean = nn.Linear(64, latent)
        self.log_variance = nn.Linear(64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 784),
            nn.PReLU(),
            nn.Unflatten(1, (16, 7, 7)),
            nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
            nn.Softplus(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, image: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = F.elu(self.encoder(image))
        mean, log_variance = self.mean(x), self.log_variance(x).clamp(-6, 2)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


@torch.library.custom_op("emberlet_models::nms", mutates_args=())
def nms(boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float) -> Tensor:
    """(selected, 3) int64 of batch, class and box; only ever exported, never run."""
    raise NotImplementedError


@nms.register_fake
def _(boxes: Tensor, scores: Tensor, most: int, overlap: float, least: float) -> Tensor:
    selected = torch.library.get_ctx().new_dynamic_size()
    return boxes.new_empty((selected, 3), dtype=torch.int64)


class Detector(nn.Module):
    """A single-shot head: anchors on two grids, box deltas decoded, the overlapping ones dropped class by class."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.classes = classes
        self.stage1 = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU())
        self.stage2 = nn.Sequential(nn.Conv2d(24, 32, 3, 2, 1), nn.ReLU())
        self.box = nn.ModuleList([nn.Conv2d(24, 8, 3, padding=1), nn.Conv2d(32, 8, 3, padding=1)])
        self.score = nn.ModuleList([nn.Conv2d(24, 2 * classes, 3, padding=1), nn.Conv2d(32, 2 * classes, 3, padding=1)])
        for layer in self.score:
            nn.init.normal_(layer.weight, std=0.5)  # or all scores are nearly the same
        self.register_buffer("anchors", torch.cat([self.grid(8, 0.2), self.grid(4, 0.4)]))

    @staticmethod
    def grid(side: int, size: float) -> Tensor:
        """(side · side · 2, 4) centers and sizes: one square anchor and one wide one per cell."""
        at = (torch.arange(side) + 0.5) / side
        y, x = torch.meshgrid(at, at, indexing="ij")
        cell = torch.stack([x, y], -1).reshape(-1, 1, 2).expand(-1, 2, -1)
        sizes = torch.tensor([[size, size], [size * 1.5, size * 0.75]]).expand(side * side, 2, 2)
        return torch.cat([cell, sizes], -1).reshape(-1, 4)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = image.shape[0]
        a = self.stage1(image)
        maps = [a, self.stage2(a)]
        deltas = torch.cat(
            [f(m).permute(0, 2, 3, 1).reshape(n, -1, 4) for f, m in zip(self.box, maps, strict=True)], dim=1
        )
        scores = torch.cat(
            [f(m).permute(0, 2, 3, 1).reshape(n, -1, self.classes) for f, m in zip(self.score, maps, strict=True)],
            dim=1,
        ).sigmoid()
        center = self.anchors[:, :2] + deltas[..., :2] * 0.1 * self.anchors[:, 2:]
        half = self.anchors[:, 2:] * torch.exp(deltas[..., 2:] * 0.2) * 0.5
        boxes = torch.cat([center - half, center + half], dim=-1)
        chosen = nms(boxes, scores.transpose(1, 2), 4, 0.4, 0.5)
        batch, label, index = chosen[:, 0], chosen[:, 1], chosen[:, 2]
        return boxes[batch, index], scores[batch, index, label], chosen


def _detector() -> onnx.ModelProto:
    import onnxscript
    from onnxscript import opset18 as op

    def to_onnx(boxes, scores, most: int, overlap: float, least: float):  # type: ignore[no-untyped-def]
        return op.NonMaxSuppression(
            boxes,
            scores,
            op.Constant(value=onnx.helper.make_tensor("most", onnx.TensorProto.INT64, [1], [most])),
            op.Constant(value=onnx.helper.make_tensor("overlap", onnx.TensorProto.FLOAT, [1], [overlap])),
            op.Constant(value=onnx.helper.make_tensor("least", onnx.TensorProto.FLOAT, [1], [least])),
        )

    assert onnxscript.__version__
    return export(
        seeded(Detector),
        (torch.zeros(2, 3, 32, 32),),
        inputs=["image"],
        outputs=["boxes", "scores", "selected"],
        dynamic=[{0: "batch"}],
        opset=18,
        translations={torch.ops.emberlet_models.nms.default: to_onnx},
    )


def _images(channels: int, side: int, *batches: int) -> Mapping[str, Inputs]:
    return {f"batch{n}": {"image": normal(n, n, channels, side, side)} for n in batches}


def _vae_inputs() -> Mapping[str, Inputs]:
    return {
        f"batch{n}": {
            "image": np.abs(normal(n, n, 1, 28, 28)).clip(0, 1),
            "noise": normal(10 + n, n, 8),
        }
        for n in (1, 3)
    }


RECIPES = [
    Recipe(
        "residual_cnn",
        "residual CNN; batch norm left in place for the importer to fold",
        lambda: export_traced(
            seeded(ResidualCNN), (torch.zeros(2, 3, 32, 32),), inputs=["image"], outputs=["logits"],
            dynamic={"image": {0: "batch"}}, opset=13, fold=False,
        ),
        lambda: _images(3, 32, 1, 3),
    ),
    Recipe(
        "unet",
        "U-Net, dynamic batch; group and instance norm, transposed convolution, bilinear resize",
        lambda: export(
            seeded(UNet), (torch.zeros(2, 1, 16, 24),), inputs=["image"], outputs=["mask"], dynamic=[{0: "batch"}],
            opset=20,
        ),
        lambda: {f"batch{n}": {"image": normal(n, n, 1, 16, 24)} for n in (1, 2)},
    ),
    Recipe(
        "unet_traced",
        "the same U-Net from the TorchScript exporter, opset 11, dynamic batch, height and width",
        lambda: export_traced(
            seeded(UNet), (torch.zeros(2, 1, 16, 24),), inputs=["image"], outputs=["mask"],
            dynamic={"image": {0: "batch", 2: "height", 3: "width"}}, opset=11,
        ),
        lambda: {
            "small": {"image": normal(1, 1, 1, 16, 24)}, "tall": {"image": normal(2, 2, 1, 32, 12)},
        },
    ),
    Recipe(
        "mobile_cnn",
        "mobile CNN: depthwise convolutions, squeeze and excitation, hard swish, hard sigmoid, ReLU6",
        lambda: export(
            seeded(MobileCNN), (torch.zeros(2, 3, 32, 32),), inputs=["image"], outputs=["probabilities"],
            dynamic=[{0: "batch"}], opset=18,
        ),
        lambda: _images(3, 32, 1, 3),
    ),
    Recipe(
        "vit",
        "vision transformer, dynamic batch",
        lambda: export(
            seeded(ViT), (torch.zeros(2, 3, 32, 32),), inputs=["image"], outputs=["logits"], dynamic=[{0: "batch"}],
            opset=20,
        ),
        lambda: _images(3, 32, 1, 3),
    ),
    Recipe(
        "vae",
        "variational autoencoder; the noise is an input, so that the answer is one",
        lambda: export(
            seeded(VAE), (torch.zeros(2, 1, 28, 28), torch.zeros(2, 8)), inputs=["image", "noise"],
            outputs=["reconstruction", "mean", "log_variance"], dynamic=[{0: "batch"}, {0: "batch"}], opset=19,
        ),
        _vae_inputs,
    ),
    Recipe(
        "detector",
        "single-shot detector head, decoded anchors, NonMaxSuppression: how many are detected depends on values",
        _detector,
        lambda: _images(3, 32, 1, 2),
    ),
]  # fmt: skip
