"""One module per kind of case; fuzz/differential says what a kind defines."""
