"""What MicroPython itself is run with: its Unix port, firmware for emulated boards, and its cross-compilers."""
