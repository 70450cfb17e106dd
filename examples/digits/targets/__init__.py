"""The targets of the demo: each runs the same generated model through the same `classify.py`."""

from .browser import TARGETS as BROWSER
from .desktop import TARGETS as DESKTOP
from .micropython import TARGETS as MICROPYTHON
from .target import Answer, Kit, Target, TargetError

__all__ = ["ALL", "Answer", "Kit", "Target", "TargetError"]

ALL = [*DESKTOP, *MICROPYTHON, *BROWSER]
