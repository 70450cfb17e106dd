"""The backend of what is computed on the host."""

from ..errors import BackendError
from .registry import get_backend


def host_backend():
    """The numpy backend, or the python backend without NumPy."""
    try:
        return get_backend("numpy")
    except BackendError:
        return get_backend("python")
