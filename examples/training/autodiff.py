"""The Burn Book's chapter "Autodiff", step by step.

python autodiff.py [--check] [--backend NAME]
"""

import argparse

import emberlet
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend


def main(name):
    # A backend becomes differentiable by wrapping it; nothing is global.
    inner = get_backend(name)
    backend = emberlet.autodiff(inner)

    # Gradients are kept for tensors that ask for them.
    x = emberlet.asarray([[1.0, 2.0], [3.0, 4.0]], backend=backend).require_grad()
    y = emberlet.asarray([[0.5, -1.0], [1.5, 2.0]], backend=backend)
    loss = F.exp(x @ y * 0.1).sum()
    grads = loss.backward()

    # `grads` holds the gradients; tensors do not. They are on the backend inside.
    gradient = x.grad(grads)
    expected = F.exp(x.inner() @ y.inner() * 0.1) @ y.inner().mT * 0.1
    print("gradient", gradient.tolist(), "on", gradient.backend)
    assert gradient.backend is inner
    assert abs(gradient - expected).max().item() < 1e-5

    # A constant has none, and says how to ask.
    try:
        y.grad(grads)
    except emberlet.errors.EmberletError as error:
        print("refused:", str(error).partition(":")[0])
    assert not y.is_require_grad() and x.is_require_grad()

    # What is taken out is gone; what is detached has no history.
    assert x.grad_remove(grads) is not None and x.grad(grads) is None
    assert not (x * 2).detach().is_require_grad()

    # Validation runs on the backend inside: there is no block that switches recording off.
    model = nn.Linear(2, 3, backend=inner).train()
    rows = emberlet.asarray([[1.0, 2.0]], backend=inner)
    validated = model.valid()(rows)
    trained = model(rows.to(backend))
    assert validated.backend is inner and trained.backend is backend
    assert trained.inner().tolist() == validated.tolist()

    # A gradient of a gradient: autodiff of autodiff.
    second = emberlet.grad(lambda x: emberlet.grad(lambda x: (x**3).sum())(x).sum())
    found = second(emberlet.asarray([1.0, 2.0], backend=inner))
    print("second derivative of x ** 3 at 1 and 2:", found.tolist())
    assert abs(found - emberlet.asarray([6.0, 12.0], backend=inner)).max().item() < 1e-4


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--check", action="store_true", help="the same: every step checks itself")
    main(parser.parse_args().backend)
