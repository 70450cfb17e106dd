"""Reorders weights for the kernels that read them: once, when a plan is made."""

from ..record.node import Node, topological, unpacked


def reorder_weights(roots, compute, memo):
    """Store the weights of convolutions with the output channel last, which kernels/tile.py reads four at a time.

    The weight of a node becomes a view (a permutation back) of the stored one, so that nothing else changes.
    compute(nodes): evaluates nodes that depend on no input. memo: id of a weight -> (weight, stored), shared by plans
    of one model.
    """
    wanted = []
    for node in topological(roots):
        if node.op not in ("conv", "dot_bytes") or node.arg is None:
            continue
        weight = node.srcs[1]
        groups = node.arg[3]
        if weight.op not in ("data", "buffer") or (weight.shape[0] // groups) % 4 or groups > 1:
            continue
        rank = len(weight.shape)
        if id(weight) not in memo:
            order = tuple(range(1, rank)) + (0,)
            shape = tuple([weight.shape[a] for a in order])
            word = unpacked(weight).word
            stored = Node("permute", (weight,), order, weight.dtype, shape, word)
            memo[id(weight)] = (weight, stored)
            wanted.append(stored)
        stored = memo[id(weight)][1]
        back = (rank - 1,) + tuple(range(rank - 1))
        node.srcs = (node.srcs[0], Node("permute", (stored,), back, weight.dtype, weight.shape, stored.word))
    if wanted:
        compute(wanted)
