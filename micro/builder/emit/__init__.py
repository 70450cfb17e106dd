"""Writes the modules of a model: kernels, the module that a user imports, trees, and the one that shows layers."""
