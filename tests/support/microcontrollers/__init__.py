"""What the tests of the microcontroller build share."""
