"""`backward`: the gradient of an operation that a program added to a backend."""

from ..backend import Backend


def _everything(output, *args):
    return (output,) + args


def backward(name, backend_class=None, saves=None):
    """Decorator: function(gradient, *saved) is the backward of the operation `name`, which was added with
    `emberlet.backend.extend`. It returns the gradients of the operation's tensor arguments, in order, None where there
    is none; all tensors are of the inner backend.

    backend_class: the backends it is for; None: all. saves(output, *arguments) chooses what is kept for it, by default
    the output and all arguments. For an operation of several outputs, `gradient` is a dict, index -> gradient.
    """

    def declare(function):
        setattr(backend_class or Backend, "backward_of_" + name, (function, saves or _everything))
        return function

    return declare
