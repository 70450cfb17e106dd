"""Random estimators of scikit-learn as modules on MicroPython's Unix port, against scikit-learn's own predictions.

Classifiers, regressors, outlier detectors and clusterings, alone, after preprocessors, in pipelines, votes, stacks,
bags and one-against-the-rest, fitted to random rows, exported by skl2onnx and built by `emberlet micro`. Estimators
that skl2onnx cannot export or exports wrongly (onnxruntime then differs from scikit-learn) are not compared. A refusal
must be an error of the EmberletError family.

**Tolerances.** Every row gets scikit-learn's class, unless the two greatest scores are within 1e-4 of each other.
Scores and numbers are within 1e-3 of the largest magnitude of onnxruntime's: both compute in float32. Models for which
onnxruntime's results in float32 are farther than 2e-4 from scikit-learn's in float64 on any row are not compared.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime
from emberlet.errors import EmberletError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph

NEEDS = ("micropython-unix",)

Array = npt.NDArray[Any]

ROWS = 20
CLOSE = 1e-3
WELL = 2e-4
TIED = 1e-4
MODULES = (
    "calibration cluster compose covariance cross_decomposition decomposition discriminant_analysis ensemble "
    "feature_selection gaussian_process impute linear_model mixture multiclass multioutput naive_bayes neighbors "
    "neural_network pipeline preprocessing random_projection svm tree"
).split()


class Call(NamedTuple):
    """An estimator: its name in scikit-learn, and its arguments, which may hold estimators."""

    name: str
    positional: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"{self.name}({', '.join([*map(repr, self.positional), *(f'{k}={v!r}' for k, v in self.named)])})"


class Case(NamedTuple):
    """seed: of the rows; kind: what the estimator predicts; names: whether classes are text; missing: whether some
    numbers are NaN."""

    estimator: Call
    kind: str
    seed: int
    features: int
    classes: int
    names: bool
    missing: bool


class Fitted(NamedTuple):
    """A case's fitted estimator and its predictions for unseen rows; onnx: b"" where skl2onnx cannot export it."""

    estimator: Any
    onnx: bytes
    rows: Array
    why: str = ""


# -- drawing ----------------------------------------------------------------------------------------------------------


def call(name: str, *positional: Any, **named: Any) -> Call:
    return Call(name, positional, tuple(named.items()))


def _depth(r: random.Random) -> dict[str, Any]:
    return {"max_depth": r.choice([None, 1, 2, 3, 5])}


def _tree(r: random.Random, kind: str) -> Call:
    c = kind == "classes"
    end = "Classifier" if c else "Regressor"
    some = {"n_estimators": r.choice([1, 3, 8]), "random_state": 0}
    options = [
        lambda: call(f"DecisionTree{end}", **_depth(r), random_state=0),
        lambda: call(f"ExtraTree{end}", **_depth(r), random_state=0),
        lambda: call(f"RandomForest{end}", **_depth(r), **some),
        lambda: call(f"ExtraTrees{end}", **_depth(r), **some),
        lambda: call(f"GradientBoosting{end}", **some, max_depth=r.choice([1, 3])),
        lambda: call(f"HistGradientBoosting{end}", max_iter=r.choice([2, 5]), random_state=0),
        lambda: call(f"AdaBoost{end}", **some),
    ]
    return r.choice(options)()


def _simple(r: random.Random, kind: str) -> Call:
    """An estimator that is not made of others."""
    if r.random() < 0.35:
        return _tree(r, kind)
    kernel = {"kernel": r.choice(["linear", "rbf", "poly", "sigmoid"])}
    layers = {"hidden_layer_sizes": r.choice([(4,), (8, 3)]), "max_iter": 40, "random_state": 0}
    layers["activation"] = r.choice(["relu", "tanh", "logistic", "identity"])
    weights = r.choice(["uniform", "distance"])
    if kind == "classes":
        options = [
            lambda: call("LogisticRegression", C=r.choice([0.1, 1.0])),
            lambda: call("LinearSVC"),
            lambda: call("SVC", **kernel, probability=r.random() < 0.3),
            lambda: call("NuSVC", **kernel, nu=0.1),
            lambda: call("SGDClassifier", random_state=0, loss=r.choice(["hinge", "log_loss", "modified_huber"])),
            lambda: call("Perceptron", random_state=0),
            lambda: call("PassiveAggressiveClassifier", random_state=0),
            lambda: call("RidgeClassifier"),
            lambda: call("MLPClassifier", **layers),
            lambda: call("KNeighborsClassifier", n_neighbors=r.choice([1, 3, 5]), weights=weights),
            lambda: call("GaussianNB"),
            lambda: call("BernoulliNB", binarize=r.choice([0.0, 0.4])),
            lambda: call("LinearDiscriminantAnalysis"),
            lambda: call("QuadraticDiscriminantAnalysis", reg_param=0.1),
            lambda: call("GaussianProcessClassifier"),
        ]  # fmt: skip
    else:
        options = [
            lambda: call(r.choice(["LinearRegression", "Ridge", "BayesianRidge", "HuberRegressor", "ARDRegression"])),
            lambda: call(r.choice(["Lasso", "ElasticNet", "Lars", "LassoLars", "OrthogonalMatchingPursuit"])),
            lambda: call(r.choice(["PoissonRegressor", "GammaRegressor", "TweedieRegressor", "QuantileRegressor"])),
            lambda: call(r.choice(["SGDRegressor", "PassiveAggressiveRegressor", "TheilSenRegressor"]), random_state=0),
            lambda: call("LinearSVR"),
            lambda: call("SVR", **kernel),
            lambda: call("NuSVR", **kernel),
            lambda: call("MLPRegressor", **layers),
            lambda: call("KNeighborsRegressor", n_neighbors=r.choice([1, 3]), weights=weights),
            lambda: call("PLSRegression", n_components=2),
            lambda: call("GaussianProcessRegressor", alpha=0.1),
            lambda: call("RANSACRegressor", random_state=0),
        ]  # fmt: skip
    return r.choice(options)()


def _composed(r: random.Random, kind: str) -> Call:
    """An estimator, sometimes made of several."""
    end = "Classifier" if kind == "classes" else "Regressor"
    draw = r.random()
    if draw < 0.68:
        return _simple(r, kind)

    def some() -> list[tuple[str, Call]]:
        return [(f"e{k}", _simple(r, kind)) for k in range(r.choice([2, 3]))]

    if draw < 0.75:
        return call(f"Bagging{end}", _simple(r, kind), n_estimators=r.choice([2, 4]), random_state=0,
                    max_features=r.choice([1.0, 0.7]))  # fmt: skip
    if draw < 0.82:
        soft = {"voting": r.choice(["soft", "hard"]), "flatten_transform": False} if kind == "classes" else {}
        return call(f"Voting{end}", some(), **soft)
    if draw < 0.88:
        return call(f"Stacking{end}", some(), cv=2)
    if draw < 0.91 and kind == "classes":
        return call("CalibratedClassifierCV", _simple(r, kind), cv=2, method=r.choice(["sigmoid", "isotonic"]))
    if draw < 0.97 and kind == "classes":
        return call(r.choice(["OneVsRestClassifier", "OneVsOneClassifier"]), _simple(r, kind))
    return _simple(r, kind)


def _step(r: random.Random, features: int) -> Call:
    """A preprocessor."""
    options = [
        lambda: call("StandardScaler", with_mean=r.random() < 0.8),
        lambda: call("MinMaxScaler", clip=r.random() < 0.3),
        lambda: call(r.choice(["RobustScaler", "MaxAbsScaler"])),
        lambda: call("Normalizer", norm=r.choice(["l1", "l2", "max"])),
        lambda: call("Binarizer", threshold=0.2),
        lambda: call("PCA", n_components=r.choice([2, 3]), whiten=r.random() < 0.3),
        lambda: call("TruncatedSVD", n_components=2),
        lambda: call("PolynomialFeatures", 2, interaction_only=r.random() < 0.3),
        lambda: call("KBinsDiscretizer", 3, encode=r.choice(["ordinal", "onehot-dense"]), quantile_method="linear"),
        lambda: call("PowerTransformer"),
        lambda: call("QuantileTransformer", n_quantiles=10),
        lambda: call("VarianceThreshold"),
        lambda: call("SelectKBest", k=2),
        lambda: call("FeatureUnion", [("a", _step(r, features)), ("b", call("StandardScaler"))]),
        lambda: call("KernelPCA", 2, kernel=r.choice(["linear", "rbf", "poly"])),
        lambda: call("GaussianRandomProjection", 3, random_state=0),
        lambda: call("KMeans", 3, random_state=0),
    ]  # fmt: skip
    return r.choice(options)()


def draw(choose: random.Random) -> Case | None:
    r = choose
    kind = r.choices(["classes", "numbers", "outliers", "groups"], [10, 7, 1, 1])[0]
    features, missing = r.choice([3, 5, 9]), r.random() < 0.12
    if kind == "outliers":
        last = r.choice([call("IsolationForest", n_estimators=4, random_state=0), call("OneClassSVM"),
                         call("LocalOutlierFactor", novelty=True), call("SGDOneClassSVM", random_state=0)])  # fmt: skip
    elif kind == "groups":
        mixture = call("GaussianMixture", 2, random_state=0, covariance_type=r.choice(["full", "diag"]))
        last = r.choice([call("KMeans", 3, random_state=0), call("MiniBatchKMeans", 3, random_state=0), mixture])
    else:
        last = _composed(r, kind)
    steps: list[Call] = []
    if missing:
        steps.append(call("SimpleImputer", strategy=r.choice(["mean", "median", "constant", "most_frequent"])))
    if r.random() < 0.5:
        if r.random() < 0.25:
            columns = r.sample(range(features), features)
            cut = r.randrange(1, features)
            parts = [("a", _step(r, features), columns[:cut]), ("b", call("StandardScaler"), columns[cut:])]
            steps.append(call("ColumnTransformer", parts))
        else:
            steps += [_step(r, features) for _ in range(r.choice([1, 1, 2]))]
    estimator = call("make_pipeline", *steps, last) if steps else last
    return Case(estimator, kind, r.randrange(1 << 30), features, r.choice([2, 2, 3, 4]), r.random() < 0.2, missing)


# -- what a case computes ---------------------------------------------------------------------------------------------


@cache
def _names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in MODULES:
        module = import_module(f"sklearn.{name}")
        found.update({n: value for n, value in vars(module).items() if not n.startswith("_")})
    return found


def fitted(case: Case) -> Fitted | None:
    """None where scikit-learn itself cannot fit it."""
    from skl2onnx import to_onnx

    rng = np.random.default_rng(case.seed)
    x = rng.normal(0, 1, (120, case.features)).astype(np.float32)
    x[:, 0] *= np.float32(3)
    x[:, 1] += np.float32(2)
    score = x @ rng.normal(0, 1, case.features) + np.sin(2 * x[:, 0]) + rng.normal(0, 0.2, 120)
    if case.missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    y: Any = np.abs(score) + 0.1 if case.kind == "numbers" else np.digitize(score, np.quantile(score, np.linspace(0, 1, case.classes + 1)[1:-1]))  # fmt: skip  # noqa: E501
    if case.names:
        y = np.array([f"class {k}" for k in "dacb"])[y] if case.kind != "numbers" else y
    known, unseen = x[:100], np.ascontiguousarray(x[100 : 100 + ROWS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = eval(repr(case.estimator), _names())
            estimator.fit(known, y[:100])
            estimator.predict(unseen)
        except Exception:
            return None
        data, why = b"", ""
        for options in ({id(estimator): {"zipmap": False}} if case.kind == "classes" else None, None):
            try:
                data = to_onnx(estimator, known[:1], options=options).SerializeToString()
                break
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
        return Fitted(estimator, data, unseen, why)


def _session(data: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def by_onnxruntime(data: bytes, rows: Array) -> list[Array]:
    """Each output, row by row."""
    session = _session(data)
    name = session.get_inputs()[0].name
    found = [session.run(None, {name: row[None]}) for row in rows]
    return [np.concatenate([np.asarray(row[k]).reshape(1, -1) for row in found]) for k in range(len(found[0]))]


def on_micropython(result: BuildResult, rows: Array) -> tuple[list[int], Array]:
    """For each row the index of the greatest score, and the scores. Raises AssertionError where the port fails."""
    from tools.micropython import unix_port

    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**{k: v.encode() for k, v in result.sources.items()}, **result.extra}.items():
            Path(folder, name).write_bytes(content)
        numbers = repr(rows.astype(float).tolist()).replace("nan", "float('nan')")
        script = (
            f"import sys\nsys.path.insert(0, {folder!r})\nimport m\nfor row in {numbers}:\n"
            "    scores = m.predict(row)\n    print(m.best(), *scores)\n"
        )
        lines = unix_port().run(script, heap="64M", micropypath=[]).check().stdout.splitlines()
    found = np.array([[float(v) for v in line.split()] for line in lines])
    return found[:, 0].astype(int).tolist(), found[:, 1:]


def built(data: bytes) -> BuildResult:
    """Raises EmberletError where the model is refused."""
    return build(read_graph(data, "m"), Options("m"))


def difference(case: Case) -> str:
    given = fitted(case)
    if given is None or not given.onnx:
        return ""
    try:
        result = built(given.onnx)
    except EmberletError:
        return ""
    except Exception as error:
        return f"the build ended with {type(error).__name__}: {error}"
    try:
        wanted = by_onnxruntime(given.onnx, given.rows)
    except Exception:
        return ""
    return compared(case, given, result, wanted)


def _conditioned(given: Fitted, scores: Array) -> Array:
    """For each row True if onnxruntime's scores in float32 are those of scikit-learn in float64 on all rows. With
    coefficients of 1e5, or steps at numbers that rounding moves, they are not, or only by chance. True where the scores
    are others."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(given.estimator, name) and scores.dtype.kind == "f":
            own = np.asarray(getattr(given.estimator, name)(given.rows), float).reshape(len(scores), -1)
            if own.shape[1] == 1:
                own, scores = np.abs(own), np.abs(scores[:, -1:])
            if own.shape == scores.shape:
                close = np.abs(own - scores).max(1) <= WELL * max(1.0, float(np.abs(own).max()))
                return np.full(len(close), close.all())
    return np.ones(len(given.rows), bool)


def compared(case: Case, given: Fitted, result: BuildResult, wanted: list[Array]) -> str:
    """ "" if the module predicts the same as scikit-learn for every row on which onnxruntime does."""
    classes = np.asarray(given.estimator.predict(given.rows))
    agree = np.ones(len(given.rows), bool)
    is_label = case.kind == "classes"
    if is_label and wanted[0].size != len(classes):
        return ""  # skl2onnx takes one row for several
    if is_label:
        agree = np.asarray(wanted[0].reshape(-1) == classes) & _conditioned(given, wanted[-1])
    try:
        best, scores = on_micropython(result, given.rows)
    except AssertionError as error:
        return f"MicroPython failed: {error}"
    labels = next((port.labels for port in result.program.outputs if port.labels), ())
    expected = [w for w in wanted if w.dtype.kind == "f" or not is_label]
    same = [w for w in expected if w.shape[1] == scores.shape[1]]
    if not is_label:
        apart = np.abs(wanted[0].reshape(len(classes), -1) - classes.reshape(len(classes), -1)).max()
        if apart > WELL * max(1.0, float(np.abs(classes).max())):
            return ""
    if is_label and labels:
        found = np.array([labels[k] for k in best])
        ordered = np.sort(scores, 1)
        tied = ordered[:, -1] - ordered[:, -2] <= TIED * np.abs(scores).max() if scores.shape[1] > 1 else False
        wrong = agree & (found != classes) & ~np.asarray(tied)
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            said = f"row {k} is {found[k]!r}, scikit-learn says {classes[k]!r}"
            return f"{said}: {scores[k]} beside {[w[k] for w in wanted]}"
    elif (is_label and scores.shape[1] == 1 and np.array_equal(scores[:, 0], classes)) or not agree.any():
        return ""
    elif is_label:
        return f"the module has no labels: outputs {[o.name for o in result.program.outputs]}"
    if not same:
        return f"the module gives {scores.shape[1]} numbers, onnxruntime {[w.shape[1] for w in wanted]}"
    close = [
        np.abs(scores - w.astype(float)).max(1) <= CLOSE * max(1.0, float(np.abs(w.astype(float)).max())) for w in same
    ]
    off = agree & ~np.any(close, 0)
    if off.any():
        k = int(np.flatnonzero(off)[0])
        return f"{int(off.sum())} of {len(off)} rows; row {k} gives {scores[k]}, onnxruntime {[w[k] for w in wanted]}"
    return ""


# -- shrinking --------------------------------------------------------------------------------------------------------


def simpler(case: Case) -> Iterable[Case]:
    yield from (case._replace(estimator=e) for e in _simpler(case.estimator))
    if case.names:
        yield case._replace(names=False)
    if case.classes > 2:
        yield case._replace(classes=case.classes - 1)
    if case.features > 3:
        yield case._replace(features=3)


def _simpler(e: Call) -> Iterable[Call]:
    if e.name == "make_pipeline":
        parts = e.positional
        for k in range(len(parts)):
            rest = (*parts[:k], *parts[k + 1 :])
            if k < len(parts) - 1:
                yield rest[0] if len(rest) == 1 else Call(e.name, rest)
            yield from (Call(e.name, (*parts[:k], s, *parts[k + 1 :])) for s in _simpler(parts[k]))
        return
    for value in e.positional:
        if isinstance(value, Call):
            yield value
        elif isinstance(value, list):
            yield from (part[1] for part in value if isinstance(part, tuple))


def program(case: Case) -> str:
    return (
        "from fuzz.differential.kinds import estimators\nfrom fuzz.differential.kinds.estimators import *\n\n"
        f"case = {case!r}\nprint(estimators.difference(case))\n"
    )
