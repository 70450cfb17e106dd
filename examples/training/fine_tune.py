"""Train a model that was imported from ONNX further: its first layers stay, a new last layer learns another task.

    python fine_tune.py [--check] [--backend NAME]

The digits' network learns to tell even from odd digits.
"""

import argparse
import sys
from pathlib import Path

import emberlet
from digits_data import batches
from emberlet import codegen, nn, optim
from emberlet import functional as F
from emberlet.optim import GradientsParams, Group, freeze_group, unfreeze_group
from emberlet.train.metric import accuracy

EXPECTED = 80.0, 90.0  # percent of the validation's digits with a new head, and after all layers are trained
MODEL = Path(__file__).parent.parent / "digits" / "digits.onnx"


def right(model, backend):
    """The percentage of the validation's digits that the model gets right."""
    scores = [accuracy(model(images), labels % 2) for images, labels in batches(backend, "validation")]
    return sum(scores) / len(scores)


def trained(model, optimizer, rate, backend, epochs):
    for epoch in range(epochs):
        for images, labels in batches(backend, "training", seed=epoch):
            loss = F.cross_entropy(model(images), labels % 2)
            model = optimizer.step(rate, model, GradientsParams.from_grads(loss.backward(), model))
    return model


def main(name, check):
    emberlet.manual_seed(0)
    model = codegen.load(MODEL, backend=name)
    model.fc2 = nn.Linear(32, 2, backend=name)  # a new head
    model.train()
    backend = emberlet.autodiff(name)

    # First the head alone.
    freeze_group(model, lambda path, param: not path.startswith("fc2"))
    before = model.conv1.weight.val().tolist()
    model = trained(model, optim.AdamConfig().init(), 1e-2, backend, 3)
    assert model.conv1.weight.val().tolist() == before
    first = right(model.valid(), name)

    # Then everything, the old layers at a tenth of the rate.
    unfreeze_group(model, ".")
    optimizer = optim.AdamWConfig().init([Group("^(conv|fc1)", rate=0.1)])
    model = trained(model, optimizer, 3e-3, backend, 3)
    second = right(model.valid(), name)
    print(f"even or odd: {first:.1f} % with a new head, {second:.1f} % after training all layers")
    assert model.conv1.weight.val().tolist() != before
    return int(check and (first < EXPECTED[0] or second < EXPECTED[1]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument(
        "--check", action="store_true", help="fail unless {:g} and {:g} percent are right".format(*EXPECTED)
    )
    options = parser.parse_args()
    sys.exit(main(options.backend, options.check))
