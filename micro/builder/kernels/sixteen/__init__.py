"""Layers on 16-bit tensors, two bytes per element, the lower one first (quantization/sixteen.py)."""
