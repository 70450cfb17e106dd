"""Small programs whose plans take each decision of the kernels, for tests that compute them."""
