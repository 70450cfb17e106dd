"""Writes a model's modules: the kernels, the module that a program imports, trees, and the module that lists layers."""
