"""Plans with open sizes: one plan for every length of an axis."""
