"""Fusion: which recorded nodes become one kernel."""
