"""`x[key] = value` in place: writes words into a buffer that no other tensor refers to.

Work submitted earlier reads the old words, as a queue runs in order. Work recorded but not yet submitted refers to the
node, and then nothing is written in place. Runs on CPython only, which counts references.
"""

import sys

from emberlet.tensor import Tensor

from ..record.bounds import UNKNOWN, interval
from ..record.node import depends_on_input, unpacked
from ..render.template import read
from . import storage

LONGEST = 1 << 14  # words written from the host; longer values are copied on the GPU
AXES = 5  # axes of a region that the kernel supports
WORKGROUP = 64
MAX_GROUPS = 65535


def _references(holder):
    """The reference counts of a tensor's node and of the node's Allocation."""
    node = holder.data
    return sys.getrefcount(node), sys.getrefcount(node.buffer)


class _Alone:
    def __init__(self, buffer=None, data=None):
        self.buffer = buffer
        self.data = data


_UNSHARED = _references(_Alone(data=_Alone([]))) if hasattr(sys, "getrefcount") else (0, 0)


def write_region(backend, x, starts, sizes, steps, value):
    """Put `value`, of shape `sizes`, at starts[i] + j * steps[i] along each axis i of x. Returns False, and does
    nothing, if the elements are shared, packed, or in several buffers."""
    if "host" in (x.data.op, value.data.op) or not x.size or depends_on_input(x.data) or depends_on_input(value.data):
        return False
    if x.data.word not in ("f32", "i32", "u32") or (x.data.op != "buffer" and not _alone(x)):
        return False
    if not value.size:
        return True
    backend.realize(x)
    if _references(x) != _UNSHARED or x.data.buffer.gpu is None or x.data.op != "buffer":
        return False
    node = x.data
    bounds = interval(value.data) if node.bounds is not None else None
    at, axes = _axes(x.shape, starts, sizes, steps)
    words = _words(value.data, node.word)
    if words is not None and len(axes) == 1 and axes[0][1] == 1:
        backend.device.write(node.buffer, words, 4 * at)
    elif len(axes) > AXES or not _dispatch(backend, node, value, words, at, axes):
        return False
    if bounds is not None:
        seen = node.bounds
        known = seen != UNKNOWN and bounds != UNKNOWN
        node.bounds = (min(seen[0], bounds[0]), max(seen[1], bounds[1])) if known else UNKNOWN
        node.exact = False
    return True


def _alone(x):
    """Whether only x refers to its node, which has no buffer yet (references to None cannot be counted)."""
    return _references(x)[0] == _UNSHARED[0]


def _axes(shape, starts, sizes, steps):
    """(position of the first element, [(length, stride)…] of the region, outermost first, axes merged where
    possible)."""
    at = 0
    stride = 1
    axes = []
    for i in range(len(shape) - 1, -1, -1):
        at += starts[i] * stride
        if sizes[i] > 1:
            step = steps[i] * stride
            if axes and step == axes[0][0] * axes[0][1]:
                axes[0] = (axes[0][0] * sizes[i], axes[0][1])
            else:
                axes.insert(0, (sizes[i], step))
        stride *= shape[i]
    return at, axes or [(1, 1)]


def _words(node, word):
    """The words of a node with few elements, all on the host; else None."""
    while node.op == "reshape":
        node = node.srcs[0]
    if node.word != word or node.count > LONGEST:
        return None
    if node.op == "full":
        return storage.unsigned([storage.word_of(node.arg, node.dtype)] * node.count)
    return node.arg if node.op == "data" else None


def _dispatch(backend, node, value, words, at, axes):
    """Copy on the GPU, one invocation per word. words: the value's, if they are on the host. False if the value is in
    several buffers."""
    device = backend.device
    if words is None:
        source = Tensor(unpacked(value.data), value.dtype, value.shape, backend)
        backend.realize(source)
        values = backend.upload(source.data)
        if values.gpu is None or source.data.word != node.word:
            return False
    else:
        values = device.allocate(len(words))
        device.write(values, words)
    axes = [(1, 0)] * (AXES - len(axes)) + axes
    lengths = [n for n, _ in axes]
    strides = [step & 0xFFFFFFFF for _, step in axes]
    numbers = device.allocate(4 * (2 + 2 * AXES))
    device.write(numbers, storage.unsigned([value.size, at] + lengths + strides))
    groups = (value.size + WORKGROUP - 1) // WORKGROUP
    rows = (groups + MAX_GROUPS - 1) // MAX_GROUPS
    device.enter()
    try:
        pipeline, layout = device.pipeline("assign", read("assign.wgsl"))
        encoder = device.raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        run.set_pipeline(pipeline)
        run.set_bind_group(0, device.bind(layout, [numbers, values, node.buffer], (1, 1, 1)))
        run.dispatch_workgroups(min(groups, MAX_GROUPS), rows, 1)
        run.end()
        device.queue.submit([encoder.finish()])
    except Exception as error:
        raise device.failure("assigning to a part of a tensor", error)
    finally:
        device.leave()
    return True
