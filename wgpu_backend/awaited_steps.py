"""The steps of a Session where Python awaits the GPU and never frees objects (MicroPython in a tab).

Without finalizers nothing frees the memory of an unused tensor. So a step reads its outputs to the host and frees the
buffers that only it has used: those of its inputs and outputs, and of the states before it.
"""

from emberlet.tensor import Tensor

from .record.node import Node, is_leaf, topological


class AwaitedSteps:
    """Runs the steps of a session operation by operation, where Resident (resident.py) would run plans. entries: the
    states, with `input`, `output` and `axis` (core/session)."""

    def __init__(self, model, entries, backend):
        self.model = model
        self.entries = entries
        self.backend = backend
        self._made = {}  # id -> Allocation of each state that a step computed and one session alone holds

    def step(self, arguments, check=None):
        """None: a step that is not awaited cannot read its outputs."""
        return None

    async def step_async(self, arguments, check=None):
        """The results of the model, computed: states as Tensors in GPU memory, the others on the host. check: called
        with the new length of each growing state before anything runs; raises if that is too long."""
        arguments, uploaded = self._uploads(arguments)
        results = self.model.forward(*arguments)
        results = list(results) if isinstance(results, tuple) else [results]
        states = [e.output for e in self.entries if e.output < len(results)]
        for e in self.entries:
            if check is not None and e.axis is not None and e.output in states:
                check(results[e.output].shape[e.axis])
        there = [x for x in results if isinstance(x, Tensor) and x.backend is self.backend]
        leaves = [node for node in topological([x.data for x in there]) if is_leaf(node)]
        self.backend.realize(*there)
        others = {id(node.buffer) for node in leaves}  # weights and the like, with which a result may share memory
        kept = {id(results[k].data.buffer) for k in states if results[k].backend is self.backend}
        used = {}
        for k in range(len(results)):
            x = results[k]
            if k in states or not isinstance(x, Tensor) or x.backend is not self.backend or x.data.op != "buffer":
                continue
            words = await self.backend.device.read_async(x.data.buffer, x.data.nbytes)
            if id(x.data.buffer) not in others:
                used[id(x.data.buffer)] = x.data.buffer
            results[k] = Tensor(Node("data", (), words, x.dtype, x.shape, x.data.word), x.dtype, x.shape, self.backend)
        for node in uploaded:
            if node.op == "buffer":
                used[id(node.buffer)] = node.buffer
        for key in used:
            if key not in kept:
                used[key].free()
        for k in states:
            x = results[k]
            if x.backend is self.backend and x.data.op == "buffer" and id(x.data.buffer) not in others:
                self._made[id(x.data.buffer)] = x.data.buffer
        return results

    def _uploads(self, arguments):
        """(the arguments with copies of those that would be uploaded, the nodes of these). A tensor's own upload would
        stay on the GPU."""
        states = [e.input for e in self.entries]
        out, nodes = [], []
        for i in range(len(arguments)):
            x = arguments[i]
            if i not in states and isinstance(x, Tensor) and x.backend is self.backend and x.data.op == "data":
                node = Node("data", (), x.data.arg, x.dtype, x.shape, x.data.word)
                nodes.append(node)
                x = Tensor(node, x.dtype, x.shape, self.backend)
            out.append(x)
        return out, nodes

    def release(self, before, after):
        """Free the states `before` a step, except those that are also `after` it or that others hold."""
        kept = [id(x.data.buffer) for x in after if x.backend is self.backend]
        for x in before:
            key = id(x.data.buffer) if x.backend is self.backend else None
            if key in self._made and key not in kept:
                self._made.pop(key).free()

    def share(self, states):
        """Note that others hold these states from now on: a fork, or a snapshot."""
        for x in states:
            if x.backend is self.backend:
                self._made.pop(id(x.data.buffer), None)
