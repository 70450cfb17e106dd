"""Builds of MicroPython: its Unix port, firmware for emulated boards, and its cross-compilers."""
