"""What the configs of optimizers share."""

from ..config import Config


class OptimizerConfig(Config):
    """Base of the configs: the settings, and the rule `update`."""

    def init(self, groups=()):
        """An Optimizer with these settings. groups: `Group`s with a rate and settings of their own; the first that
        matches a parameter counts."""
        from .optimizer import Optimizer

        return Optimizer(self, groups)
