"""Training: the learner, and the metrics (`emberlet.train.metric`). Every name is imported on first use."""

from ..lazy import lazy

__getattr__, __dir__ = lazy(
    globals(),
    {
        "train.metric": "metric",
        "train.metric.shares": "accuracy",
        "train.learner.outputs": "ClassificationOutput RegressionOutput TrainOutput TrainStep ValidStep",
        "train.learner.learner": "Learner",
        "train.learner.builder": "LearnerBuilder",
        "train.learner.strategies": "Composed EarlyStopping Keep KeepAll KeepBest KeepEvery KeepLast",
        "train.learner.checkpoints": "Checkpoints",
        "train.learner.history": "History",
        "train.learner.interrupting": "Interrupter",
        "train.learner.events": "Events Step",
        "train.learner.loggers": "FileLogger TensorBoardLogger",
        "train.learner.renderers.plain": "PlainRenderer",
        "train.learner.renderers.dashboard": "Dashboard",
        "train.learner.renderers.notebook": "NotebookRenderer",
        "train.learner.on_ray": "fit_on_ray",
    },
)
