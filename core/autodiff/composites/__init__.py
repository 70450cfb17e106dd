"""Functions with a backward of their own, faster or more stable than that of their primitives.

Each takes the function's arguments with tensors of the inner backend, and returns (result, pull): pull(gradient) gives
the gradients of the tensors among the arguments, in order. `dispatch.OWN` lists them.
"""
