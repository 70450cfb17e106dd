"""Node cases and test models with every axis open: one plan on the GPU for the case's sizes and for others.

Every axis of an input that is longer than 1 gets a name, and axes of one length the same name, so that the model's
graph contains no size. At the case's own sizes the plan's results are compared with the case's. At other, random sizes
they are compared with onnxruntime's, or with NumPy's if onnxruntime lacks the operator; sizes that neither accepts are
drawn again. Axes that a plan cannot leave open are named (`Compiled.fixed`, `Compiled.cut`), and the results are
checked there too.

    python -m tests.conformance.open_axes [PATTERN]            what differs, and the counts
    python -m tests.conformance.open_axes --write              all of it, to benches/results/open_axes.md
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_tensor
from emberlet.errors import BackendError, EmberletError, ModelError

from . import drawn
from .cases import compare, node_cases, to_numpy
from .judge import Crash, Runtime

PAGE = Path(__file__).parents[2] / "benches" / "results" / "open_axes.md"
MOST = 24  # of a drawn size
KINDS = ("open", "partly", "own", "cut", "alone", "refused", "no axis", "no judge", "differs")
OTHERS = 3  # sizes that a case runs at besides its own
DRAWS = 8  # how often sizes that nothing accepts are drawn again
EXAMPLES = 6  # cases that a row of the page names


class Outcome(NamedTuple):
    """The outcome of a case. kind: "open", where one plan served several sizes; "own" where plans were of one size
    each, "alone" where no other size was found that the model takes, "cut", "refused", "no axis", "no judge" or
    "differs"; why: in words; sizes: how many others it ran at; crash: how onnxruntime ended, where it did."""

    kind: str
    why: str = ""
    sizes: int = 0
    crash: str = ""


def opened(
    model: onnx.ModelProto, inputs: dict[str, Any], most: int = 2
) -> tuple[onnx.ModelProto, dict[str, dict[int, str]]]:
    """The model with names for the axes of its inputs, and these: input -> axis -> name. most: 2 all axes, 1 those of
    the first input, 0 its first axis."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names: dict[str, dict[int, str]] = {}
    for value in copy.graph.input:
        array = inputs.get(value.name)
        if not isinstance(array, np.ndarray) or not value.type.HasField("tensor_type"):
            continue
        dims = value.type.tensor_type.shape.dim
        for axis in range(min(len(dims), array.ndim)):
            if most < 2 and (names.keys() - {value.name} or (names and not most)):
                continue
            if array.shape[axis] > 1 and not _says_lengths(array):
                dims[axis].dim_param = f"n{array.shape[axis]}"
                names.setdefault(value.name, {})[axis] = dims[axis].dim_param
    del copy.graph.value_info[:]
    for value in copy.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy, names


def _says_lengths(array: Any) -> bool:
    """Whether an input may hold sizes, pads or axes, for which other numbers could give results of any size: up to 8
    int64 in a row."""
    return bool(array.ndim == 1 and array.dtype == np.int64 and array.size <= 8)


def others(names: dict[str, dict[int, str]], inputs: dict[str, Any], choose: random.Random) -> Iterator[dict[str, Any]]:
    """Inputs of other sizes, alternately for all names at once and for one name. Elements are taken from the case;
    floats are weighted means of two elements, so that they lie in the case's range."""
    labels = sorted({label for axes in names.values() for label in axes.values()})
    for attempt in range(DRAWS * max(1, len(labels))):
        changed = labels if attempt % 2 == 0 else [choose.choice(labels)]
        size = {label: choose.randint(1, MOST) if choose.random() < 0.7 else choose.randint(1, 4) for label in changed}
        seeds = {name: choose.randrange(1 << 32) for name in inputs if names.get(name)}
        shapes = {
            name: [size.get(names[name].get(k, ""), d) for k, d in enumerate(inputs[name].shape)] for name in seeds
        }
        if any(math.prod(shape) > 1 << 14 for shape in shapes.values()):  # seven axes of 24 are 4 billion elements
            continue
        yield {
            name: _resampled(array, shapes[name], np.random.default_rng(seeds[name])) if name in seeds else array
            for name, array in inputs.items()
        }


def _resampled(array: Any, shape: list[int], rng: np.random.Generator) -> Any:
    flat = array.reshape(-1)
    first = rng.choice(flat, shape)
    if array.dtype.kind != "f":
        return first
    with np.errstate(all="ignore"):
        part = rng.random(shape)
        mean = first * part + rng.choice(flat, shape) * (1 - part)
    return np.where(np.isfinite(mean), mean, first).astype(array.dtype)


class Judge:
    """The expected results: onnxruntime's, else NumPy's; None if neither accepts the inputs."""

    runtime = Runtime()  # the same process for all cases

    def __init__(self, model: onnx.ModelProto, module: Any) -> None:
        self.model = module
        self.crash = ""
        try:
            self.opened = self.runtime.open(model.SerializeToString())
        except Crash as crash:  # then the expected results are NumPy's alone
            self.opened, self.crash = False, str(crash)

    def __call__(self, given: dict[str, Any]) -> tuple[list[Any], bool] | None:
        """(NumPy's results, whether onnxruntime agrees or has no say)."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.model(*(to_tensor(v, "numpy") for v in given.values()))
        except (EmberletError, ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError):
            return None
        ours = [to_numpy(r) for r in (found if isinstance(found, tuple) else (found,))]
        theirs = None
        if self.opened:
            try:
                theirs = self.runtime.run(given)
            except Crash as crash:
                self.opened, self.crash = False, str(crash)
                return None
            if theirs is None:
                return None  # sizes that do not fit the model for onnxruntime do not count here
        return ours, theirs is None or not any(map(different, ours, theirs))


def different(got: Any, want: Any) -> str:
    """ "" if a result is as expected, else the difference."""
    if not isinstance(want, np.ndarray):
        if isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
            return next((said for g, w in zip(got, want, strict=True) if (said := different(g, w))), "")
        return "" if got is None and want is None else f"found {got!r}, wanted {want!r}"
    if got is None or np.shape(got) != want.shape:
        return f"shape {np.shape(got)}, wanted {want.shape}"
    if want.dtype.kind not in "fiub" and want.dtype.name not in ("bfloat16",):
        return "" if np.array_equal(got, want) else "other elements"
    g, w = np.asarray(got).astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(w)
    size = float(np.abs(w[finite]).max(initial=0.0))
    tolerance = {2: 4e-3}.get(want.dtype.itemsize, 1e-3) if want.dtype.kind == "f" else 0.0
    with np.errstate(all="ignore"):
        near = np.abs(g - w) <= tolerance * (np.abs(w) + size + 1e-3)
    wrong = ~(near | (g == w) | (np.isnan(g) & np.isnan(w)))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {w.size} elements differ; at {at} found {g[at]}, wanted {w[at]}"


def tried(
    name: str,
    model: onnx.ModelProto,
    inputs: dict[str, Any],
    check: Callable[[list[Any]], None],
    random_results: bool = False,
) -> Outcome:
    """One model, its axes open. check: raises AssertionError unless the results at its own sizes are right."""
    given_model = model
    for most in (2, 1, 0):
        model, names = opened(given_model, inputs, most)
        if not names:
            return Outcome("no axis")
        try:
            module = load(model, "numpy", name=name)
            break
        except ModelError as error:  # such as a convolution, whose kernel's size is part of the program
            if not most:
                return Outcome("refused", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    try:
        parameters = [e[0] for e in module.INPUTS] if getattr(module, "INPUTS", None) else []
        if set(parameters) != set(inputs):
            return Outcome("no axis", "inputs that the model does not read")
        labels = {label for axes in names.values() for label in axes.values()}
        compiled = module.compile(backend="wgpu", dims=dict.fromkeys(sorted(labels)))
        found = compiled(*(to_tensor(inputs[p], "numpy") for p in parameters))
    except (ModelError, BackendError) as error:
        return Outcome("refused", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    except Exception as error:
        return Outcome("differs", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    try:
        check(list(found) if isinstance(found, tuple) else [found])
    except AssertionError as error:
        said = [line for line in str(error).splitlines() if line.strip()]
        return Outcome("differs", f"at its own sizes: {' '.join(said)[:300]}")
    judge = Judge(model, module)
    ran = disagreed = 0
    choose = random.Random(zlib.crc32(name.encode()))
    for given in others(names, inputs, choose):
        right = judge(given)
        if right is None:
            continue
        ours, agreed = right
        if not agreed:
            disagreed += 1
            continue
        sizes = {k: v.shape for k, v in given.items() if isinstance(v, np.ndarray)}
        try:
            found = compiled(*(to_tensor(given[p], "numpy") for p in parameters))
        except Exception as error:
            return Outcome("differs", f"{sizes}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        got = [to_numpy(r) for r in (found if isinstance(found, tuple) else (found,))]
        for k in range(len(ours)):
            if random_results:
                if np.shape(got[k]) != np.shape(ours[k]):
                    return Outcome("differs", f"{sizes}, output {k}: {np.shape(got[k])}, not {np.shape(ours[k])}")
                continue
            said = different(got[k], ours[k])
            if said:
                return Outcome("differs", f"{sizes}, output {k}: {said}")
        ran += 1
        if ran == OTHERS:
            break
    crash = judge.crash
    if disagreed and not ran:
        return Outcome("no judge", "NumPy and onnxruntime differ at every other size that both take", 0, crash)
    if compiled.cut is not None:
        return Outcome("cut", str(compiled.cut), ran, crash)
    if not ran:
        return Outcome("alone", "", 0, crash)
    if compiled._open:
        closed = [f"{label}: {compiled.fixed[label]}" for label in sorted(labels) if label in compiled.fixed]
        return Outcome("partly" if closed else "open", "; ".join(closed), ran, crash)
    why = next((str(error) for error in compiled.fixed.values()), "no plan for other sizes could be made")
    return Outcome("own", why, ran, crash)


def node_case(name: str) -> Outcome:
    """One of ONNX's node cases."""
    case = node_cases()[name]
    inputs, outputs = case.data_sets[0]
    named = dict(zip([i.name for i in case.model.graph.input], inputs, strict=False))
    if any(not isinstance(v, np.ndarray) for v in named.values()):
        return Outcome("no axis", "inputs that are no arrays")
    if name == "test_bitcast_float64_to_int64":
        return Outcome("no axis", "the bits of float64, which the GPU computes in float32")
    is_drawn = drawn.is_drawn(name)

    def check(results: list[Any]) -> None:
        assert len(results) == len(outputs), f"{len(results)} outputs, expected {len(outputs)}"
        for got, want in zip(results, outputs, strict=True):
            compare(name, got, want, case.rtol, max(case.atol, 1e-6))

    return tried(name, case.model, named, check, is_drawn)


def model_case(case: Any) -> Outcome:
    """One of tests/models."""
    inputs, outputs = case.inputs(), case.outputs()

    def check(results: list[Any]) -> None:
        for got, want in zip(results, outputs.values(), strict=True):
            step = 1 if want.dtype.kind in "iu" and want.dtype.itemsize == 1 else 0  # a tie
            atol = max(case.atol, 1e-4, step)
            np.testing.assert_allclose(to_numpy(got), want, rtol=max(case.rtol, 1e-3), atol=atol)

    return tried(case.id, onnx.load(str(case.model)), inputs, check)


def page(told: dict[str, dict[str, Outcome]], whole: dict[str, int], seconds: float) -> str:
    """The page's text. whole: how many cases there are."""
    lines = [
        "# Open axes\n",
        "`python -m tests.conformance.open_axes --write`: every axis longer than 1 of every input left open, on the "
        f"GPU, at the case's sizes and at up to {OTHERS} others, of 1 to {MOST}, beside onnxruntime and NumPy. "
        f"{seconds / 60:.0f} minutes, ONNX {onnx.__version__}.\n",
        "*one plan*: it served every size that it can. *some axes*: the others cannot be left open. *a plan for each "
        "size*: none can. *cut*: Python runs between plans, since values decide. *own size*: of the sizes drawn the "
        "model takes none but its own. All of them give the right results. "
        "*no axis*: no input has an axis longer than 1 (rows of up to 8 int64 aside, which may be shapes), or an "
        "input is no array. *no judge*: at other sizes onnxruntime and emberlet on NumPy differ, which has nothing "
        "to do with open axes.\n",
        "| | cases run | one plan | some axes | a plan for each size | cut | own size | refused | no axis | no judge "
        "| differ | other sizes run |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for title, outcomes in told.items():
        counts = Counter(o.kind for o in outcomes.values())
        cells = [counts[k] for k in KINDS]
        ran = sum(o.sizes for o in outcomes.values())
        lines.append(f"| {title} | {len(outcomes)} of {whole[title]} | " + " | ".join(map(str, cells)) + f" | {ran} |")
    crashes: dict[str, list[str]] = {}
    for outcomes in told.values():
        for name, o in outcomes.items():
            if o.crash:
                crashes.setdefault(o.crash, []).append(name)
    lines += [f"\n{crash} on {', '.join(names)}; NumPy alone is the judge there." for crash, names in crashes.items()]
    for heading, kinds in (
        ("Differ", ("differs",)),
        ("Refused", ("refused",)),
        ("Why axes are not left open", ("own", "partly")),
    ):
        reasons: dict[str, list[str]] = {}
        for outcomes in told.values():
            for name, o in outcomes.items():
                if o.kind in kinds:
                    reasons.setdefault(_reason(o.why), []).append(name.removeprefix("test_"))
        if reasons:
            lines += [f"\n## {heading}\n", "| reason | cases | such as |", "|---|---:|---|"]
            for reason, cases in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
                lines.append(f"| {reason} | {len(cases)} | {', '.join(cases[:EXAMPLES])} |")
    return "\n".join(lines) + "\n"


def _reason(why: str) -> str:
    """A reason without the parts that differ from case to case."""
    head, _, tail = why.partition(" is needed while the plan is made, by ")
    if tail:
        kind = "a float" if "a float of" in head else "the sign" if "the sign of" in head else "the number"
        return f"{kind} is needed by `{tail.split('; ')[0].replace('emberlet.', '')}`"
    return why.replace("|", "\\|")[:160]


def _slow_last(name: str) -> tuple[bool, str]:
    return name.startswith("test_attention"), name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--only", choices=("node cases", "test models"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th case, from K on")
    parser.add_argument("--minutes", type=float, help="as many cases as that takes, in an order that is drawn")
    options = parser.parse_args()
    from models.index import cases as models

    part, parts = (int(n) for n in options.part.split("/"))
    begin = time.monotonic()
    told: dict[str, dict[str, Outcome]] = {}
    work: dict[str, list[tuple[str, Callable[[], Outcome]]]] = {
        "node cases": [(name, lambda name=name: node_case(name)) for name in sorted(node_cases(), key=_slow_last)],
        "test models": [(case.id, lambda case=case: model_case(case)) for case in models()],
    }
    if options.only:
        work = {options.only: work[options.only]}
    for title, entries in work.items():
        told[title] = {}
        chosen = [e for e in entries if options.pattern in e[0]][part::parts]
        end = None
        if options.minutes:
            order = random.Random(0)
            order.shuffle(chosen)
            chosen.sort(key=lambda entry: _slow_last(entry[0])[0])
            end = time.monotonic() + options.minutes * 60 * (0.85 if title == "node cases" else 0.15)
        for name, run in chosen:
            if end is not None and time.monotonic() > end:
                break
            try:
                told[title][name] = run()
            except Exception as error:  # a mistake of this file
                traceback.print_exc()
                told[title][name] = Outcome("differs", f"{type(error).__name__}: {error}")
            outcome = told[title][name]
            if options.verbose or outcome.crash or outcome.kind in ("differs", "refused"):
                print(f"{name}: {outcome.kind} ({outcome.sizes}) {outcome.why} {outcome.crash}".rstrip(), flush=True)
        print(title, dict(Counter(o.kind for o in told[title].values())), flush=True)
        if options.write:  # now, so that a crash later on loses none of it
            whole = {kind: len(entries) for kind, entries in work.items() if kind in told}
            PAGE.write_text(page(told, whole, time.monotonic() - begin), encoding="utf-8")
    return int(any(o.kind == "differs" for outcomes in told.values() for o in outcomes.values()))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
