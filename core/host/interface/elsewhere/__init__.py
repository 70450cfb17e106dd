"""How other libraries name and call what is here: PyTorch, NumPy and Burn. For CPython only."""
