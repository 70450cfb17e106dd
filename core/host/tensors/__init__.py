"""What CPython adds to tensors: names on axes, and pictures."""
