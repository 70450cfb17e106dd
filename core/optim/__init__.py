"""Optimizers, learning-rate schedules, and what connects gradients with the parameters of a module.

    optim = emberlet.optim.AdamConfig().init()
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(1e-3, model, grads)

As in Burn, the learning rate is an argument of `step`, and gradients are consumed by it. Every name is imported from
its file on first use.
"""

_FILES = {
    "gradients": "GradientsParams GradientsAccumulator",
    "optimizer": "Optimizer",
    "groups": "Group freeze_group unfreeze_group",
    "clipping": "GradientClippingConfig",
    "sgd": "SgdConfig MomentumConfig",
    "adam": "AdamConfig AdamWConfig",
    "adagrad": "AdaGradConfig",
    "rmsprop": "RmsPropConfig",
    "lion": "LionConfig",
    "lbfgs": "LBFGSConfig",
    "decay": "WeightDecayConfig",
    "precision": "GradScaler GradScalerConfig mixed_precision",
    "schedules": "ConstantLr LinearLrSchedulerConfig CosineAnnealingLrSchedulerConfig ExponentialLrSchedulerConfig "
    "StepLrSchedulerConfig NoamLrSchedulerConfig PolynomialLrSchedulerConfig WarmupLrSchedulerConfig "
    "ComposedLrSchedulerConfig",
}


def __getattr__(name):
    for file in _FILES:
        if name in _FILES[file].split():
            found = getattr(__import__("emberlet.optim." + file, None, None, ("*",)), name)
            globals()[name] = found
            return found
    raise AttributeError("module 'emberlet.optim' has no attribute " + repr(name))


def __dir__():
    return sorted([name for names in _FILES.values() for name in names.split()])
