"""Text classification with a transformer: does a sentence ask, order, or tell?

    python text_classification.py [--check]

The sentences are drawn from a small grammar; the same words occur in all three kinds, so that their order counts.
"""

import argparse
import random
import sys
import tempfile

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.data import DataLoader
from emberlet.module import Module
from emberlet.optim import NoamLrSchedulerConfig
from emberlet.train import ClassificationOutput, Learner
from emberlet.train.metric import AccuracyMetric, LossMetric

EXPECTED = 95.0  # percent of the sentences of the validation
KINDS = ("question", "order", "statement")
SUBJECTS, VERBS, OBJECTS = "you they we cats".split(), "see find hear like".split(), "rain birds music food".split()
WORDS = ["<pad>", "do", "please", "and", "often", "never", *SUBJECTS, *VERBS, *OBJECTS]
LENGTH = 8


def sentences(count, seed):
    """(sentence, kind) pairs."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        kind = draw.randrange(3)
        subject, verb, thing = draw.choice(SUBJECTS), draw.choice(VERBS), draw.choice(OBJECTS)
        words = {0: ["do", subject, verb, thing], 1: ["do", verb, thing], 2: [subject, "do", verb, thing]}[kind]
        if draw.random() < 0.5:
            words += ["and", draw.choice(OBJECTS)]
        if draw.random() < 0.3:
            words.insert(draw.randrange(len(words) + 1), draw.choice(["please", "often", "never"]))
        found.append((" ".join(words), kind))
    return found


class TextBatcher:
    """Sentences as tokens (batch, LENGTH), with 0 where a sentence has ended."""

    def batch(self, items):
        tokens = np.zeros((len(items), LENGTH), np.int64)
        for row, (text, _) in zip(tokens, items, strict=True):
            known = [WORDS.index(word) for word in text.split()]
            row[: len(known)] = known
        return {"tokens": emberlet.asarray(tokens), "targets": emberlet.asarray([kind for _, kind in items])}


class TextClassifier(Module):
    def __init__(self, size=32, backend=None):
        self.words = nn.Embedding(len(WORDS), size, backend=backend)
        self.places = nn.Embedding(LENGTH, size, backend=backend)
        self.encoder = nn.TransformerEncoder(size, 2 * size, 4, 1, dropout=0.1, backend=backend)
        self.output = nn.Linear(size, len(KINDS), backend=backend)

    def forward(self, tokens):  # (batch, LENGTH) -> (batch, kinds)
        places = self.places(emberlet.arange(LENGTH, backend=tokens.backend).reshape((1, LENGTH)))
        x = self.encoder(self.words(tokens) + places, mask_pad=tokens == 0)
        return self.output(x.mean(axis=1))

    def step(self, batch):
        output = self.forward(batch["tokens"])
        return ClassificationOutput(F.cross_entropy(output, batch["targets"]), output, batch["targets"])


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a transformer to tell kinds of sentences apart.")
    parser.add_argument("--check", action="store_true", help=f"fail unless {EXPECTED:g} percent are right")
    options = parser.parse_args(words)
    F.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(
            folder, TextClassifier(), optim.AdamConfig(weight_decay=5e-5).init(),
            NoamLrSchedulerConfig(factor=0.5, warmup_steps=40, model_size=32), num_epochs=3,
            metrics=[AccuracyMetric(), LossMetric()],
        )  # fmt: skip
        learner.fit(
            DataLoader(sentences(1200, seed=1), TextBatcher(), batch_size=32, shuffle=1),
            DataLoader(sentences(300, seed=2), TextBatcher(), batch_size=100),
        )
    reached = max(learner.history.of("valid", "Accuracy").values())
    return int(options.check and reached < EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
