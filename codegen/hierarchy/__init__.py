"""The hierarchy of the source model: a tree of regions over a flat graph, with a class for each distinct region."""
