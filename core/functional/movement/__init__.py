"""Moving elements without arithmetic: shapes, axes, joining, splitting."""
