"""Functions over whole axes: sums and moments, sorting, sets, normalization, losses."""
