"""Functions of each element by itself: arithmetic, comparisons, exponentials, activations."""
