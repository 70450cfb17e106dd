"""Models and layers for the microcontroller build, and running them on MicroPython's ports."""
