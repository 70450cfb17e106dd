"""One module per kind of case; the package's docstring says what a kind defines."""
