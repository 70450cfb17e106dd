"""Training: the metrics (`emberlet.train.metric`) and what goes with them. Every name is imported on first use."""

# module below emberlet -> the names that it gives
_FILES = {
    "train.metric.shares": "accuracy",
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
