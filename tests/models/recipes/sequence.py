"""Networks that read a sequence: recurrent stacks, a sound front end, control flow."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recipe import Recipe, export, export_traced, normal, rng, seeded, tokens


class LSTMStack(nn.Module):
    """Embedding, two bidirectional LSTM layers, one class a step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 20, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(40, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        x, _ = self.lstm(self.embedding(tokens))
        return F.log_softmax(self.head(x), dim=-1)


class LSTMStep(nn.Module):
    """A stack that is called repeatedly and gets its last state back as an input."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 24, num_layers=2, proj_size=0)
        self.head = nn.Linear(24, 1)

    def forward(self, frames: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, (h, c) = self.lstm(frames, (h, c))
        return torch.sigmoid(self.head(x)), h, c


class GRUStack(nn.Module):
    """Two GRU layers from a given first state; the last step, and the state it ends in."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 24, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 4)

    def forward(self, sequence: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        x, last = self.gru(sequence, state)
        return self.head(torch.tanh(self.norm(x[:, -1]))), last


class RNNStack(nn.Module):
    """The plain recurrence, rectified, both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(6, 12, nonlinearity="relu", bidirectional=True)
        self.head = nn.Linear(24, 3)

    def forward(self, sequence: Tensor) -> Tensor:
        x, _ = self.rnn(sequence)
        return self.head(x).mean(0)


def mel_filters(rate: int, bins: int, bands: int) -> Tensor:
    """(bands, bins) triangles evenly spaced on the mel scale."""

    def to_mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    mels = torch.linspace(to_mel(60), to_mel(rate / 2), bands + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    at = torch.linspace(0, rate / 2, bins)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return torch.minimum((at - low) / (middle - low), (high - at) / (high - middle)).clamp(min=0)


class AudioFrontEnd(nn.Module):
    """Samples -> short-time Fourier transform -> mel bands -> log -> two convolutions along time -> keyword scores."""

    def __init__(self, frame: int = 256, hop: int = 128, bands: int = 20) -> None:
        super().__init__()
        self.frame, self.hop = frame, hop
        self.register_buffer("window", torch.hann_window(frame))
        self.register_buffer("mel", mel_filters(8000, frame // 2 + 1, bands))
        self.conv1 = nn.Conv1d(bands, 24, 3, padding=1)
        self.conv2 = nn.Conv1d(24, 24, 3, stride=2, dilation=2, padding=2, groups=4)
        self.head = nn.Linear(24, 6)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = torch.stft(samples, self.frame, self.hop, window=self.window, center=False, return_complex=True)
        power = torch.view_as_real(spectrum).pow(2).sum(-1)
        features = torch.log(torch.matmul(self.mel, power) + 1e-6)
        x = F.gelu(self.conv1(features), approximate="tanh")
        x = F.gelu(self.conv2(x))
        return self.head(x.amax(-1)), features


class Looping(torch.nn.Module):
    """A loop with an input as its count, and a branch on a value: scripting exports them as Loop and If."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        for _ in range(int(steps.item())):
            x = torch.tanh(self.cell(x))
        if bool(x.sum() > 0):
            y = self.out(x)
        else:
            y = self.out(-x) * 2.0
        return y


def _samples(seed: int, batch: int, length: int) -> np.ndarray:
    """Two tones and some noise, so that the spectrum has something to show."""
    t = np.arange(length) / 8000
    pitch = rng(seed).uniform(200, 2000, (batch, 2, 1))
    return (np.sin(2 * np.pi * pitch * t).sum(1) * 0.4 + normal(seed, batch, length, scale=0.05)).astype(np.float32)


SEQUENCE = {0: "batch", 1: "length"}

RECIPES = [
    Recipe(
        "lstm_stack",
        "embedding and two bidirectional LSTM layers, dynamic batch and length",
        lambda: export(
            seeded(LSTMStack), (torch.zeros(2, 7, dtype=torch.int64),), inputs=["tokens"],
            outputs=["log_probabilities"], dynamic=[SEQUENCE], opset=20,
        ),
        lambda: {
            "batch1_length4": {"tokens": tokens(1, 50, 1, 4)}, "batch3_length11": {"tokens": tokens(2, 50, 3, 11)},
        },
    ),
    Recipe(
        "lstm_step",
        "two LSTM layers whose state goes in and comes out (TorchScript exporter, opset 14)",
        lambda: export_traced(
            seeded(LSTMStep), (torch.zeros(3, 2, 12), torch.zeros(2, 2, 24), torch.zeros(2, 2, 24)),
            inputs=["frames", "h", "c"], outputs=["activity", "h_out", "c_out"],
            dynamic={"frames": {0: "time", 1: "batch"}, "h": {1: "batch"}, "c": {1: "batch"}}, opset=14,
        ),
        lambda: {
            f"time{t}_batch{n}": {
                "frames": normal(t, t, n, 12), "h": normal(20 + t, 2, n, 24, scale=0.3),
                "c": normal(40 + t, 2, n, 24, scale=0.3),
            }
            for t, n in ((1, 1), (6, 2))
        },
    ),
    Recipe(
        "gru_stack",
        "two GRU layers from a given state, dynamic batch and length",
        lambda: export(
            seeded(GRUStack), (torch.zeros(2, 5, 8), torch.zeros(2, 2, 24)), inputs=["sequence", "state"],
            outputs=["scores", "last"], dynamic=[SEQUENCE, {1: "batch"}], opset=18,
        ),
        lambda: {
            f"batch{n}_length{t}": {
                "sequence": normal(t, n, t, 8), "state": normal(20 + t, 2, n, 24, scale=0.3),
            }
            for n, t in ((1, 3), (4, 9))
        },
    ),
    Recipe(
        "rnn_stack",
        "a bidirectional rectified RNN layer (TorchScript exporter, opset 11)",
        lambda: export_traced(
            seeded(RNNStack), (torch.zeros(5, 2, 6),), inputs=["sequence"], outputs=["scores"],
            dynamic={"sequence": {0: "time", 1: "batch"}}, opset=11,
        ),
        lambda: {"time4_batch1": {"sequence": normal(1, 4, 1, 6)}, "time9_batch3": {"sequence": normal(2, 9, 3, 6)}},
    ),
    Recipe(
        "audio_frontend",
        "STFT, mel bands, logarithm and convolutions along time; dynamic batch",
        lambda: export(
            seeded(AudioFrontEnd), (torch.zeros(2, 2048),), inputs=["samples"], outputs=["scores", "features"],
            dynamic=[{0: "batch"}], opset=20,
        ),
        lambda: {f"batch{n}": {"samples": _samples(n, n, 2048)} for n in (1, 2)},
        atol=1e-3,
    ),
    Recipe(
        "loop_and_branch",
        "a scripted module: Loop over a count that is an input, If on a value, weights used inside both",
        lambda: export_traced(
            torch.jit.script(seeded(Looping)), (torch.zeros(2, 6), torch.tensor(3)), inputs=["x", "steps"],
            outputs=["y"], dynamic={"x": {0: "batch"}}, opset=17,
        ),
        lambda: {
            f"steps{k}": {"x": normal(seed, 3, 6), "steps": np.array(k, dtype=np.int64)} for k, seed in ((0, 1), (5, 3))
        },
    ),
]  # fmt: skip
