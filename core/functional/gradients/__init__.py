"""Gradients. What computes them is in emberlet.autodiff, which is loaded only where they are asked for."""
