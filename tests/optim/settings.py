"""Optimizers with their options, as PyTorch has them and as emberlet has them, on one small model."""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 10
RATE = 0.03
# Centered RMSProp divides by the root of a difference of two means, which in float32 has few digits left where a
# gradient hardly changes. At small epsilons PyTorch's own float32 is up to 1e-4 away from its float64 after ten steps,
# so that there both are compared in float64, and in float32 with an epsilon of 1e-2.
RATES = {"rmsprop centered": 0.002, "lbfgs strong wolfe, long steps": 3.0}


def dtype_of(name: str) -> Any:
    """float64 for L-BFGS, whose many iterations let differences of float32 grow, and where a name says so."""
    return np.float64 if "lbfgs" in name or "float64" in name else np.float32


# name -> (PyTorch's class, its options, emberlet's config, its fields)
SETTINGS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "sgd": ("SGD", {}, "SgdConfig", {}),
    "sgd decay": ("SGD", {"weight_decay": 0.1}, "SgdConfig", {"weight_decay": 0.1}),
    "momentum": ("SGD", {"momentum": 0.9}, "SgdConfig", {"momentum": {"momentum": 0.9, "dampening": 0.0}}),
    "dampening": (
        "SGD", {"momentum": 0.8, "dampening": 0.2, "weight_decay": 0.01},
        "SgdConfig", {"momentum": {"momentum": 0.8, "dampening": 0.2}, "weight_decay": 0.01},
    ),
    "nesterov": (
        "SGD", {"momentum": 0.9, "nesterov": True},
        "SgdConfig", {"momentum": {"momentum": 0.9, "dampening": 0.0, "nesterov": True}},
    ),
    "adam": ("Adam", {}, "AdamConfig", {"epsilon": 1e-8}),
    "adam all": (
        "Adam", {"betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1},
        "AdamConfig", {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1},
    ),
    "adamw": ("AdamW", {}, "AdamWConfig", {"epsilon": 1e-8, "weight_decay": 0.01}),
    "adamw all": (
        "AdamW", {"betas": (0.85, 0.98), "eps": 1e-5, "weight_decay": 0.2},
        "AdamWConfig", {"beta_1": 0.85, "beta_2": 0.98, "epsilon": 1e-5, "weight_decay": 0.2},
    ),
    "adagrad": ("Adagrad", {}, "AdaGradConfig", {"epsilon": 1e-10}),
    "adagrad all": (
        "Adagrad", {"lr_decay": 0.1, "weight_decay": 0.05, "eps": 1e-5},
        "AdaGradConfig", {"lr_decay": 0.1, "weight_decay": 0.05},
    ),
    "rmsprop": ("RMSprop", {}, "RmsPropConfig", {"epsilon": 1e-8, "momentum": 0.0}),
    "rmsprop momentum": (
        "RMSprop", {"alpha": 0.9, "momentum": 0.7, "eps": 1e-5, "weight_decay": 0.1},
        "RmsPropConfig", {"alpha": 0.9, "momentum": 0.7, "weight_decay": 0.1},
    ),
    "rmsprop centered": (
        "RMSprop", {"centered": True, "momentum": 0.9, "eps": 1e-2},
        "RmsPropConfig", {"centered": True, "epsilon": 1e-2},
    ),
    "rmsprop centered in float64": (
        "RMSprop", {"centered": True, "momentum": 0.9, "eps": 1e-5}, "RmsPropConfig", {"centered": True},
    ),
    "rmsprop centered in float64, PyTorch's epsilon": (
        "RMSprop", {"centered": True}, "RmsPropConfig", {"centered": True, "epsilon": 1e-8, "momentum": 0.0},
    ),
    "clipped by value": (
        "SGD", {"clip": ("value", 0.05)}, "SgdConfig", {"grad_clipping": {"kind": "value", "threshold": 0.05}},
    ),
    "clipped by the norm of all": (
        "Adam", {"clip": ("norm", 0.1)},
        "AdamConfig", {"epsilon": 1e-8, "grad_clipping": {"kind": "global_norm", "threshold": 0.1}},
    ),
    "lbfgs": ("LBFGS", {"max_iter": 4}, "LBFGSConfig", {"max_iter": 4}),
    "lbfgs short history": (
        "LBFGS", {"max_iter": 6, "history_size": 2}, "LBFGSConfig", {"max_iter": 6, "history_size": 2},
    ),
    "lbfgs strong wolfe": (
        "LBFGS", {"max_iter": 5, "max_eval": 12, "line_search_fn": "strong_wolfe"},
        "LBFGSConfig", {"max_iter": 5, "max_eval": 12, "line_search_fn": "strong_wolfe"},
    ),
    "lbfgs strong wolfe, long steps": (
        "LBFGS", {"max_iter": 3, "line_search_fn": "strong_wolfe", "history_size": 3},
        "LBFGSConfig", {"max_iter": 3, "line_search_fn": "strong_wolfe", "history_size": 3},
    ),
}  # fmt: skip


def start(dtype: Any) -> dict[str, Any]:
    """The data and the first weights (PyTorch's layout) of a model of two dense layers with tanh between."""
    r = np.random.RandomState(7)
    arrays = {
        "x": r.randn(12, 3), "y": r.randn(12, 2), "0.weight": r.randn(5, 3) * 0.5, "0.bias": r.randn(5) * 0.1,
        "1.weight": r.randn(2, 5) * 0.5, "1.bias": r.randn(2) * 0.1,
    }  # fmt: skip
    return {k: v.astype(dtype) for k, v in arrays.items()}
