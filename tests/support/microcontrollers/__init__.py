"""Code shared by the tests of the microcontroller build."""
