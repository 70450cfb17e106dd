"""WebGPU for MicroPython in a browser tab."""
