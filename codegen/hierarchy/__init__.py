"""The hierarchy of the source model, a tree of regions over a flat graph, and a class for each distinct one."""
