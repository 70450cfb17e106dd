"""What looks at whole axes: sums and moments, order, sets, normalization, losses."""
