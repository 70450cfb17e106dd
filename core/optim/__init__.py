"""Optimizers, learning-rate schedules, and what connects gradients with the parameters of a module.

    optim = emberlet.optim.AdamConfig().init()
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(1e-3, model, grads)

As in Burn, the learning rate is an argument of `step`, and gradients are consumed by it. Every name is imported from
its file on first use.
"""

from ..lazy import lazy

__getattr__, __dir__ = lazy(
    globals(),
    {
        "optim.gradients": "GradientsParams GradientsAccumulator",
        "optim.optimizer": "Optimizer",
        "optim.groups": "Group freeze_group unfreeze_group",
        "optim.clipping": "GradientClippingConfig",
        "optim.sgd": "SgdConfig MomentumConfig",
        "optim.adam": "AdamConfig AdamWConfig",
        "optim.adagrad": "AdaGradConfig",
        "optim.rmsprop": "RmsPropConfig",
        "optim.lion": "LionConfig",
        "optim.lbfgs": "LBFGSConfig",
        "optim.decay": "WeightDecayConfig",
        "optim.precision": "GradScaler GradScalerConfig mixed_precision",
        "optim.schedules": "ConstantLr LinearLrSchedulerConfig CosineAnnealingLrSchedulerConfig StepLrSchedulerConfig "
        "ExponentialLrSchedulerConfig NoamLrSchedulerConfig PolynomialLrSchedulerConfig WarmupLrSchedulerConfig "
        "ComposedLrSchedulerConfig",
    },
)
