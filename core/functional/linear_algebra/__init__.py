"""Products of matrices, dense layers, determinants, einsum."""
