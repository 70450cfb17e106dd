"""Layers on tensors of 16 bits: two bytes an element, the lower one first (quantization/sixteen.py)."""
