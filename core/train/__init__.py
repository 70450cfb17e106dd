"""Training: the learner, and the metrics (`emberlet.train.metric`). Every name is imported on first use."""

# module below emberlet -> the names that it gives
_FILES = {
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
}


def __getattr__(name):
    if name == "metric":
        return __import__("emberlet.train.metric", None, None, ("*",))
    for file in _FILES:
        if name in _FILES[file].split():
            found = getattr(__import__("emberlet." + file, None, None, ("*",)), name)
            globals()[name] = found
            return found
    raise AttributeError("module 'emberlet.train' has no attribute " + repr(name))


def __dir__():
    return sorted(["metric"] + [name for names in _FILES.values() for name in names.split()])
