"""onnxruntime in its own process, so that its segmentation faults do not end the calling process."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Any

SECONDS = 300.0  # for one answer


class Crash(Exception):
    """onnxruntime crashed or did not answer; the text says how."""


class Runtime:
    """A process that holds one model at a time. It starts with the first model, and again after a crash."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def open(self, model: bytes) -> bool:
        """Whether onnxruntime accepts the model; `run` then runs it. Raises Crash.

        Version 1.32 ends with a segmentation fault while it rearranges some models of float16; a model that ends the
        process is opened once more without its last step of optimization.
        """
        try:
            return bool(self._ask((model, True)))
        except Crash:
            return bool(self._ask((model, False)))

    def run(self, given: dict[str, Any]) -> list[Any] | None:
        """The results; None if onnxruntime refuses the inputs. Raises Crash; no model is open then."""
        found: list[Any] | None = self._ask(given)
        return found

    def check(self, model: bytes) -> bool:
        """Whether ONNX's checker and its inference of shapes and types accept the model. Raises Crash."""
        return bool(self._ask(model))

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = self._pipe = None

    def _ask(self, question: Any) -> Any:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, there = context.Pipe()
            self._process = context.Process(target=_serve, args=(there,), daemon=True)
            self._process.start()
            there.close()
        try:
            self._pipe.send(question)
            if self._pipe.poll(SECONDS):
                return self._pipe.recv()
            how = f"gave no answer within {SECONDS:.0f} s"
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            how = f"ended with {signal.Signals(-code).name if code < 0 else f'status {code}'}"
        self.close()
        raise Crash(f"onnxruntime {how}")


def _serve(pipe: Any) -> None:
    """Answers (bytes of a model, whether to optimize all of it) with whether it is a model, a dictionary of inputs with
    the results, and bytes of a model with whether ONNX accepts it."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    session: Any = None
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        answer: Any = None
        try:
            if isinstance(question, tuple):
                session = None
                options.graph_optimization_level = levels.ORT_ENABLE_ALL if question[1] else levels.ORT_ENABLE_EXTENDED
                session = onnxruntime.InferenceSession(question[0], options, providers=["CPUExecutionProvider"])
                answer = True
            elif isinstance(question, bytes):
                made = onnx.load_from_string(question)
                onnx.checker.check_model(made)
                onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
                answer = True
            else:
                answer = session.run(None, question)
        except Exception:  # an operator that it does not have, or sizes that do not fit the model
            answer = None
        pipe.send(answer)
