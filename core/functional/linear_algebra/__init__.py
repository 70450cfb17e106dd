"""Matrix products, determinants and einsum."""
