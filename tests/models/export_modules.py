"""Make the models under `modules/` again: the names of their modules, and PyTorch's checkpoint of each.

    pip install torch==2.13.0 transformers==5.23.0 onnx onnxscript numpy
    python tests/models/export_modules.py            # all of them
    python tests/models/export_modules.py bert       # those whose names begin like this

modules/NAME/model.onnx is the export of a small network with random weights. modules/NAME/checkpoint.npz is its
state_dict with other weights, an input of PyTorch and its output with those weights: in_NAME and out_NAME.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

HERE = Path(__file__).parent / "modules"
KEPT = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy")


class Bottleneck(nn.Module):
    """As torchvision's, without its normalization, which exporters fold into the convolutions."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 1)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1)
        self.conv3 = nn.Conv2d(width, 4 * width, 1)
        self.downsample = None
        if stride > 1 or width_in != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(width_in, 4 * width, 1, stride))

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return torch.relu(self.conv3(y) + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        wide = width
        for i, depth in enumerate((3, 4, 6, 3)):
            blocks = []
            for k in range(depth):
                blocks.append(Bottleneck(wide, width << i, 2 if i and not k else 1))
                wide = 4 * (width << i)
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(wide, 10)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(torch.relu(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def bert() -> tuple[nn.Module, tuple[Any, ...], list[dict[int, str]]]:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=40,
        hidden_size=8,
        num_hidden_layers=12,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=24,
    )
    config.return_dict = False
    return BertModel(config), (torch.randint(0, 40, (2, 7)),), [{0: "batch", 1: "length"}]


def llama() -> tuple[nn.Module, tuple[Any, ...], list[dict[int, str]]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=40,
        hidden_size=8,
        num_hidden_layers=8,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=16,
        use_cache=False,
    )
    return LlamaForCausalLM(config), (torch.randint(0, 40, (2, 7)),), [{0: "batch", 1: "length"}]


def resnet50() -> tuple[nn.Module, tuple[Any, ...], list[dict[int, str]]]:
    return ResNet50(2), (torch.randn(2, 3, 32, 32),), [{0: "batch"}]


NETWORKS = {
    "bert": (bert, True),
    "llama": (llama, True),
    "resnet50": (resnet50, True),
    "resnet50_traced": (resnet50, False),
}


def randomized(network: nn.Module, seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.2 + (p.ndim == 1))
    return network.eval()


def export(name: str) -> None:
    torch.manual_seed(0)
    make, dynamo = NETWORKS[name]
    network, inputs, axes = make()
    randomized(network, 1)
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    names = [f"in{i}" for i in range(len(inputs))]
    if dynamo:
        dims = {n: torch.export.Dim(n, min=1 if n == "batch" else 2, max=24) for a in axes for n in a.values()}
        shapes = tuple({i: dims[n] for i, n in a.items()} for a in axes)
        torch.onnx.export(
            network, inputs, path, input_names=names, dynamic_shapes=shapes, dynamo=True, external_data=False
        )
    else:
        given = dict(zip(names, axes, strict=True))
        torch.onnx.export(network, inputs, path, input_names=names, dynamic_axes=given, dynamo=False)
    proto = onnx.load(path)
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if p.key in KEPT]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    del proto.graph.value_info[:]
    del proto.graph.metadata_props[:]
    onnx.save(proto, path)
    randomized(network, 2)
    with torch.no_grad():
        results = network(*inputs)
    first = results[0] if not isinstance(results, torch.Tensor) else results
    arrays = {k: v.numpy() for k, v in network.state_dict().items()}
    arrays |= {f"in_{n}": x.numpy() for n, x in zip(names, inputs, strict=True)}
    np.savez_compressed(folder / "checkpoint.npz", **arrays, out_first=first.numpy())
    print(name, path.stat().st_size, (folder / "checkpoint.npz").stat().st_size)


if __name__ == "__main__":
    for name in NETWORKS:
        if not sys.argv[1:] or any(name.startswith(prefix) for prefix in sys.argv[1:]):
            export(name)
