"""What the expressions of document_rows.txt may name."""

from __future__ import annotations

import io
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
from emberlet import Config, autodiff, backend, codegen, data, linalg, nn, optim, store, train
from emberlet import functional as F
from emberlet.codegen import ir
from emberlet.codegen.ir import argument, types
from emberlet.codegen.ops import REGISTRY
from emberlet.errors import BackendError
from emberlet.module import Module
from emberlet.module.display import Content, DisplaySettings
from emberlet.train import metric
from PIL import Image

from tools.paths import ROOT

from .tensor_rows import OPERANDS

COUNT = itertools.count()
FIXTURES = ROOT / "tests" / "store" / "fixtures"


class Net(Module):
    """Two dense layers and a norm; takes (batch, 4)."""

    def __init__(self) -> None:
        self.encoder = [nn.Linear(4, 3), nn.Linear(3, 3)]
        self.norm = nn.BatchNorm(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.encoder[1](F.relu(self.encoder[0](x))))


class MyModuleConfig(Config):
    d_model: int
    d_ff: int
    dropout: float = 0.1

    def init(self) -> nn.Linear:
        return nn.Linear(self.d_model, self.d_ff)


class Fully(Module):
    """What FIXTURES / "state_dict.pt" holds."""

    def __init__(self) -> None:
        self.fc = [nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)]
        self.norm = nn.BatchNorm(4)
        self.conv = nn.Conv1d(4, 2, 3, bias=False)


class Visitor:
    """Names what it sees; leaves values as they are."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def visit(self, name: str, param: Any) -> None:
        self.seen.append(name)

    def map(self, name: str, tensor: Any) -> Any:
        return tensor


class Classifier(Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(x)

    def step(self, batch: Any) -> train.ClassificationOutput:
        points, targets = batch
        output = self(points)
        return train.ClassificationOutput(F.cross_entropy(output, targets), output, targets)


class Floats(emberlet.ModuleVisitor):  # type: ignore[misc]
    """As in Burn: called for parameters of floats."""

    def visit_float(self, id: Any, tensor: Any) -> None:
        assert isinstance(id, emberlet.ParamId)


class Doubled(emberlet.ModuleMapper):  # type: ignore[misc]
    def map_float(self, id: Any, tensor: Any) -> Any:
        return tensor * 2


class TimesTwo:
    def map(self, item: int) -> int:
        return item * 2


class MnistBatcher(data.Batcher):  # type: ignore[misc, name-defined]
    def batch(self, items: list[Any]) -> Any:
        return F.stack([item.image for item in items]), [item.label for item in items]


class Partial(Module):
    """A part of what FIXTURES / "state_dict.pt" holds."""

    def __init__(self) -> None:
        self.norm = nn.BatchNorm(4)


class Renderer(train.Events):
    """Shows nothing."""


class Mine(emberlet.NdArray):  # type: ignore[misc, name-defined]
    """A backend with a function more."""


@backend.extend(Mine)
def my_new_function(backend: Any, x: Any) -> Any:
    return x + 1


NAMES = {
    "TimesTwo": TimesTwo,
    "Renderer": Renderer,
    "Partial": Partial,
    "MnistBatcher": MnistBatcher,
    "Mine": Mine,
    "Floats": Floats,
    "Doubled": Doubled,
    "BytesIO": io.BytesIO,
    "Classifier": Classifier,
    "Content": Content,
    "DisplaySettings": DisplaySettings,
    "F": F,
    "FIXTURES": FIXTURES,
    "Module": Module,
    "MyModuleConfig": MyModuleConfig,
    "Net": Net,
    "Path": Path,
    "ROOT": ROOT,
    "ThreadPoolExecutor": ThreadPoolExecutor,
    "Visitor": Visitor,
    "argument": argument,
    "autodiff": autodiff,
    "backend": backend,
    "codegen": codegen,
    "data": data,
    "emberlet": emberlet,
    "ir": ir,
    "linalg": linalg,
    "metric": metric,
    "nn": nn,
    "np": np,
    "optim": optim,
    "store": store,
    "train": train,
    "types": types,
}


def setting(folder: Path) -> dict[str, Any]:
    """Names for one expression; it may write into `folder`."""

    def new(ending: str = "") -> str:
        """The path of a file that is not there."""
        return str(folder / f"{next(COUNT)}{ending}")

    def saved(ending: str, **options: Any) -> str:
        path = new(ending)
        net.save_into(path, **options)
        return path

    def gradients() -> tuple[Any, Any]:
        """A dense layer on an autodiff backend and the gradients of its sum."""
        layer = nn.Linear(3, 2, backend="autodiff:numpy")
        return layer, layer(tensors["t"].to("autodiff:numpy")).sum().backward()

    def builder() -> train.LearnerBuilder:
        return train.LearnerBuilder(new())

    def learner(**options: Any) -> train.Learner:
        return train.Learner(new(), Classifier(), optim.SgdConfig().init(), 0.1, **{"renderer": None, **options})

    def generated(**options: Any) -> Any:
        """What codegen writes for the digits model."""
        return codegen.generate(digits, new(), **options)

    def loaded(ending: str = ".bpk", **options: Any) -> Any:
        return Net().load_from(saved(ending), **options)

    def model(**options: Any) -> Module:
        """A model of the class that codegen writes for the digits."""
        made: Module = type(codegen.load(digits))(**options)
        return made

    def dtype_of(path: str) -> str:
        """The dtype of a weight in a file."""
        return str(store.open(path)["encoder.0.weight"].dtype)

    def mnist() -> str:
        """A folder with two images of 3 x 3 as MNIST's files for training and as those for tests."""
        folder = Path(new())
        folder.mkdir()
        for part in ("train", "t10k"):
            images = bytes([0, 0, 8, 3, *b"\0\0\0\2\0\0\0\3\0\0\0\3"]) + bytes(18)
            (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 3, 7]))
        return str(folder)

    def mnist_of(size: int) -> list[Any]:
        """Two items with images of this size."""
        return [data.MnistItem(image=np.zeros((size, size), np.float32), label=n) for n in (3, 7)]

    def pictures() -> str:
        """A folder with a picture of 3 x 3 in each of the folders cat and dog."""
        folder = Path(new())
        for name in ("cat", "dog"):
            (folder / name).mkdir(parents=True)
            Image.new("RGB", (3, 3)).save(folder / name / "1.png")
        return str(folder)

    def imported(path: Path) -> Any:
        """A module by its file."""
        found = spec_from_file_location(path.stem, path)
        assert found and found.loader
        module = module_from_spec(found)
        found.loader.exec_module(module)
        return module

    def example(path: str) -> Any:
        """The module of an example, which imports others beside it."""
        file = ROOT / "examples" / path
        beside = {other.stem for other in file.parent.glob("*.py")}
        others = {name: sys.modules.pop(name) for name in beside if name in sys.modules}  # another test's `model`
        known = set(sys.modules)
        sys.path.insert(0, str(file.parent))
        try:
            return imported(file)
        finally:
            sys.path.remove(str(file.parent))
            for name in set(sys.modules) - known:
                if Path(getattr(sys.modules[name], "__file__", None) or "").parent == file.parent:
                    del sys.modules[name]
            sys.modules.update(others)

    def digits_of_the_page(pixels: list[int]) -> list[float]:
        """What the page's program says of a drawn digit."""
        written = generated()
        sys.modules["digits"] = imported(written.module)
        try:
            program = imported(ROOT / "web" / "page" / "inference.py")
        finally:
            del sys.modules["digits"]
        found: list[float] = program.load("python", str(written.weights)).logits(pixels)
        return found

    def takes_pictures(page: str) -> bool:
        """Whether a page's program gives files of pictures and the camera to a model."""
        texts = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "web" / "page").glob("model*")}
        feeds = (ROOT / "web" / "page" / "feeds.mjs").read_text(encoding="utf-8")
        named = "model.mjs" in texts[page] and "feeds.mjs" in texts["model.mjs"]
        return named and all(word in feeds for word in ('accept: "image/*"', "createImageBitmap", "getUserMedia"))

    def built(builder: Any, name: str) -> Any:
        """The model that a ModelGen writes for the digits, with weights from the file `name`."""
        written = builder.input(digits).out_dir(new()).run_from_script()[0]
        assert written.weights.name == name and written.weights.exists()
        assert [path.name for path in written.module.parent.iterdir()].count(name) == 1
        kind = imported(written.module).Digits
        made, same = kind.from_file(written.weights), codegen.load(digits)
        x = emberlet.ones((1, 1, 8, 8))
        assert made(x).tolist() == same(x).tolist()
        return made

    def launched(kernel: emberlet.SourceTemplate) -> bool:
        """Whether a kernel of the gradient of ReLU computes it; without a GPU, whether the source is one."""
        try:
            _ = emberlet.Wgpu().device
        except BackendError:
            return "@compute" in kernel.source
        x, y = emberlet.asarray([1.0, 2.0, 3.0], backend="wgpu"), emberlet.asarray([0.0, 5.0, 0.0], backend="wgpu")
        out = x.backend.launch("relu", kernel.source, (x, y), x.dtype, x.shape, (1, 1, 1), kernel.values)
        return bool(out.tolist() == [0.0, 2.0, 0.0])

    def matmul_add_relu_custom(*tensors: Any) -> Any:
        return imported(ROOT / "examples" / "custom_kernel" / "fused.py").matmul_add_relu(*tensors)

    tensors = {k: emberlet.asarray(v) for k, v in OPERANDS.items()}
    digits = str(ROOT / "examples" / "digits" / "digits.onnx")
    net = Net()
    pt = str(FIXTURES / "state_dict.pt")
    return {
        **NAMES,
        **tensors,
        "Model": model,
        "a": tensors["t"].to("autodiff:numpy").require_grad(),
        "batch": (tensors["t"], emberlet.asarray([0, 1])),
        "builder": builder,
        "built": built,
        "digits": digits,
        "digits_of_the_page": digits_of_the_page,
        "dtype_of": dtype_of,
        "example": example,
        "imported": imported,
        "launched": launched,
        "matmul_add_relu_custom": matmul_add_relu_custom,
        "mnist": mnist,
        "mnist_of": mnist_of,
        "pictures": pictures,
        "takes_pictures": takes_pictures,
        "symmetric": emberlet.QuantizationScheme.PerTensorSymmetric(emberlet.QuantizationType.QInt8),
        "generated": generated,
        "gradients": gradients,
        "learner": learner,
        "loaded": loaded,
        "nested": str(FIXTURES / "checkpoint.pt"),
        "net": net,
        "new": new,
        "operator": lambda name: REGISTRY["", name],
        "pt": pt,
        "fully": Fully,
        "saved": saved,
    }
