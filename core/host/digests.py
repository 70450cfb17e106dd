"""BLAKE2 without hashlib, which loads all of OpenSSL on import."""

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
