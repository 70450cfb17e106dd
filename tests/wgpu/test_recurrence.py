"""Recurrent layers with an open number of steps: one kernel runs all steps of any length."""

import random

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile
from support.rows import every

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
ACTIVATIONS = {"lstm": 3, "gru": 2, "rnn": 1}


def _drawn(r, rng):
    """A model of one random layer, model(x, initial h, lengths), and the axes of its arguments."""
    kind = r.choice(sorted(GATES))
    gates, direction = GATES[kind], r.choice(["forward", "reverse", "bidirectional"])
    both = 2 if direction == "bidirectional" else 1
    hidden, width = r.choice([1, 3, 5, 16, 17, 33, 64]), r.randint(1, 9)

    def array(*shape):
        return (rng.standard_normal(shape) * 0.4).astype(np.float32)

    options = {"direction": direction, "batch_first": r.random() < 0.3}
    if kind == "gru":
        options["linear_before_reset"] = r.random() < 0.5
    if kind == "lstm":
        options["input_forget"] = r.random() < 0.3
    if r.random() < 0.4:
        options["clip"] = 0.5
    if r.random() < 0.4:
        known = ["Sigmoid", "Tanh", "Relu", "Softsign", "HardSigmoid"]
        options["activations"] = [r.choice(known) for _ in range(ACTIVATIONS[kind])] * both
    weights = [array(both, gates * hidden, width), array(both, gates * hidden, hidden) / np.float32(hidden**0.5)]
    weights.append(array(both, 2 * gates * hidden) if r.random() < 0.7 else None)
    peepholes = array(both, 3 * hidden) if kind == "lstm" and r.random() < 0.4 else None
    has_lengths = r.random() < 0.4

    def model(x, h, lengths):
        own = [None if w is None else emberlet.asarray(w, device=x.backend) for w in [*weights, peepholes]]
        extra = {} if own[3] is None else {"peepholes": own[3]}
        found = lengths if has_lengths else None
        return getattr(F, kind)(x, *own[:3], initial_h=h, sequence_lens=found, **options, **extra)

    def arguments(steps, batch):
        x, h = array(steps, batch, width), array(both, batch, hidden)
        if options["batch_first"]:
            x, h = x.swapaxes(0, 1), h.swapaxes(0, 1)
        lengths = rng.integers(0, steps + 1, batch).astype(np.int32)
        return [np.ascontiguousarray(x), np.ascontiguousarray(h), lengths]

    first = 0 if options["batch_first"] else 1
    dims = {"x": {1 - first: "steps", first: "batch"}, "h": {first: "batch"}, "lengths": {0: "batch"}}
    return model, arguments, dims


def _equal(found, wanted, message=""):
    for got, want in zip(found, wanted, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5, err_msg=message)


@every("seed", range(10), share=2)
def test_drawn_layers_of_every_length_are_one_plan(seed):
    r, rng = random.Random(seed), np.random.default_rng(seed)
    model, arguments, dims = _drawn(r, rng)
    compiled = compile(model, backend="wgpu", dims=dims)
    for _ in range(4):
        given = arguments(r.randint(1, 40), r.randint(1, 5))
        _equal(compiled(*given), model(*[emberlet.asarray(a, backend="numpy") for a in given]), str(given[0].shape))
    assert len(compiled._open) == 1
    assert not compiled._plans
    assert not compiled.fixed


def test_more_units_than_a_workgroup_has_lanes():
    rng = np.random.default_rng(0)
    w, r = [(rng.standard_normal((1, 900, n)) * 0.05).astype(np.float32) for n in (3, 300)]

    def model(x):
        return F.gru(x, *[emberlet.asarray(a, device=x.backend) for a in (w, r)])

    compiled = compile(model, backend="wgpu", dims={"x": {0: "steps"}})
    for n in (2, 9):
        x = rng.standard_normal((n, 2, 3)).astype(np.float32)
        _equal(compiled(x), model(emberlet.asarray(x, backend="numpy")))
    assert not compiled.fixed


def test_a_saved_plan_takes_any_length(tmp_path):
    rng = np.random.default_rng(2)
    w, r, b = [(rng.standard_normal(s) * 0.3).astype(np.float32) for s in ((2, 64, 6), (2, 64, 16), (2, 128))]

    def model(x):
        own = [emberlet.asarray(a, device=x.backend) for a in (w, r, b)]
        return F.lstm(x, *own, direction="bidirectional")

    path = str(tmp_path / "lstm.plan")
    plan_file.save(path, model, emberlet.zeros((3, 2, 6)), dims={"x": {0: ("steps", 100)}})
    plan = plan_file.load(path)
    for n in (1, 7, 100):
        x = rng.standard_normal((n, 2, 6)).astype(np.float32)
        found = [np.array(y.to_list()) for y in plan.run(x)]
        _equal(found, model(emberlet.asarray(x, backend="numpy")))


def test_half_precision_is_rounded_at_every_step():
    rng = np.random.default_rng(3)
    w, r = [(rng.standard_normal((1, 20, n)) * 0.3).astype(np.float16) for n in (3, 5)]

    def model(x):
        return F.lstm(x, *[emberlet.asarray(a, device=x.backend) for a in (w, r)])

    compiled = compile(model, backend="wgpu", dims={"x": {0: "steps"}})
    for n in (2, 9, 20):
        x = rng.standard_normal((n, 2, 3)).astype(np.float16)
        for got, want in zip(compiled(x), model(emberlet.asarray(x, backend="numpy")), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=4e-3, atol=2e-3)
    assert len(compiled._open) == 1


def test_an_activation_of_ones_own_keeps_a_plan_for_each_length():
    w = np.full((1, 3, 2), 0.1, np.float32)

    def model(x):
        own = [emberlet.asarray(a, device=x.backend) for a in (w, w[:, :, :1].repeat(3, 2))]
        return F.rnn(x, *own, activations=[lambda z: F.softmax(z, axis=-1)])

    compiled = compile(model, backend="wgpu", dims={"x": {0: "steps"}})
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 2, 2)).astype(np.float32)
        _equal(compiled(x), model(emberlet.asarray(x, backend="numpy")))
    assert "by _run" in str(compiled.fixed["steps"])
