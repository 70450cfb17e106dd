"""Text generation with a transformer: it learns the next word, and then writes sentences word by word.

    python text_generation.py [--check]

The sentences it learns from follow a small grammar; one that it writes is right if it does, too.
"""

import argparse
import random
import re
import sys
import tempfile

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet import nn, optim
from emberlet.data import DataLoader
from emberlet.module import Module
from emberlet.train import Learner, RegressionOutput
from emberlet.train.metric import LossMetric

EXPECTED = 90.0  # percent of the sentences that it writes
SUBJECTS, VERBS, OBJECTS = "you they we cats".split(), "see find hear like".split(), "rain birds music food".split()
WORDS = ["<end>", "do", "and", *SUBJECTS, *VERBS, *OBJECTS]
S, V, T = ("({})".format("|".join(words)) for words in (SUBJECTS, VERBS, OBJECTS))
RIGHT = re.compile(f"(do {S} {V}|do {V}|{S} do {V}) {T}( and {T})?")
LENGTH = 7  # the most words of a sentence, and its end


def sentences(count, seed):
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        subject, verb, thing = draw.choice(SUBJECTS), draw.choice(VERBS), draw.choice(OBJECTS)
        words = draw.choice([["do", subject, verb, thing], ["do", verb, thing], [subject, "do", verb, thing]])
        found.append(" ".join(words + ["and", draw.choice(OBJECTS)] * (draw.random() < 0.5)))
    return found


class TextBatcher:
    """Sentences as tokens (batch, LENGTH + 1): 0, the words, and 0 from the end on."""

    def batch(self, items):
        tokens = np.zeros((len(items), LENGTH + 1), np.int64)
        for row, text in zip(tokens, items, strict=True):
            known = [WORDS.index(word) for word in text.split()]
            row[1 : len(known) + 1] = known
        return emberlet.asarray(tokens)


class TextGenerator(Module):
    def __init__(self, size=32, backend=None):
        self.words = nn.Embedding(len(WORDS), size, backend=backend)
        self.places = nn.Embedding(LENGTH, size, backend=backend)
        self.encoder = nn.TransformerEncoder(size, 2 * size, 4, 1, dropout=0.0, backend=backend)
        self.output = nn.Linear(size, len(WORDS), backend=backend)

    def forward(self, tokens, cache=None):  # (batch, new words) -> scores of the words after them
        begin, count = len(cache[0]) if cache else 0, tokens.shape[1]
        places = emberlet.arange(begin, begin + count, backend=tokens.backend).reshape((1, count))
        mask = None if cache else nn.causal_mask(count, count, tokens.backend)
        x = self.encoder(self.words(tokens) + self.places(places), mask_attn=mask, cache=cache)
        return self.output(x)

    def step(self, batch):
        scores, targets = self.forward(batch[:, :-1]).reshape((-1, len(WORDS))), batch[:, 1:].reshape((-1,))
        return RegressionOutput(F.cross_entropy(scores, targets), scores, targets)

    def write(self, count):
        """Sentences, each word drawn by the probabilities that the model gives."""
        cache, word, rows = self.encoder.new_cache(), emberlet.zeros((count, 1), dtype="int64"), []
        for _ in range(LENGTH):
            word = F.multinomial(F.softmax(self.forward(word, cache)[:, -1], -1), 1)
            rows.append(word.flatten().tolist())
        return [" ".join(WORDS[i] for i in row).split("<end>")[0].strip() for row in zip(*rows, strict=True)]


def main(words=None):
    parser = argparse.ArgumentParser(description="Train a transformer to write sentences.")
    parser.add_argument("--check", action="store_true", help=f"fail unless {EXPECTED:g} percent are right")
    options = parser.parse_args(words)
    F.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(
            folder, TextGenerator(), optim.AdamConfig().init(), 3e-3, num_epochs=4, metrics=[LossMetric()]
        )
        loader = DataLoader(sentences(1200, seed=1), TextBatcher(), batch_size=32, shuffle=1)
        model = learner.fit(loader, DataLoader(sentences(100, seed=2), TextBatcher(), batch_size=100))
    written = model.valid().write(200)
    reached = 100 * sum(RIGHT.fullmatch(text) is not None for text in written) / len(written)
    print(*written[:5], f"{reached:g} percent are right", sep="\n")
    return int(options.check and reached < EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
