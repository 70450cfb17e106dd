"""InferenceSession: a model generated in memory, run on the backend of its provider."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from math import prod
from operator import index
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..errors import EmberletError, IndexingError
from ..host.extras import missing
from ..host.sharing.interop import is_javascript
from .errors import Fail, InvalidArgument, InvalidGraph, RuntimeException
from .metadata import DTYPES, ModelMetadata, NodeArg, metadata, node_arg
from .model_file import read
from .options import RunOptions, SessionOptions
from .providers import CPU, WEBGPU, backend_of, chosen

if TYPE_CHECKING:
    from pathlib import Path

    from .values import IOBinding, OrtValue

FIX = "Please fix either the inputs/outputs or the model."


class InferenceSession:
    """A model ready to run.

    path_or_bytes: an ONNX file or its bytes. providers: names, or (name, options) pairs, in order of preference; by
    default the CPU. Raises NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, ValueError and
    TypeError.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[Any, Any]]] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._options = SessionOptions() if sess_options is None else sess_options
        self._source = path_or_bytes
        self._tasks: set[asyncio.Future[None]] = set()
        proto, folder = read(path_or_bytes)
        self._meta = metadata(proto)
        self._describe(proto)
        self._choose(proto, folder, providers, provider_options)

    def _describe(self, proto: Any) -> None:
        """The inputs and outputs, as the file declares them."""
        graph, fixed, denoted = proto.graph, self._options._fixed, self._options._fixed_by_denotation
        constants = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
        self._inputs = [node_arg(i, fixed, denoted) for i in graph.input if i.name not in constants]
        self._overridable = [node_arg(i, fixed, denoted) for i in graph.input if i.name in constants]
        self._ranked = {i.name for i in graph.input if i.type.tensor_type.HasField("shape")}
        if proto.ir_version < 4:
            self._overridable = []  # such files list every constant among the inputs
        self._declared = [node_arg(o, fixed, denoted) for o in graph.output]

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Switch to other providers. The model is read again."""
        self._choose(*read(self._source), providers, provider_options)

    def _choose(self, proto: Any, folder: Path | None, providers: Any, provider_options: Any) -> None:
        self._providers, self._provider_options = chosen(providers, provider_options)
        if self._providers[0] == WEBGPU:
            from ..errors import BackendError

            try:
                self._load(WEBGPU, proto, folder)
                return
            except (BackendError, RuntimeError) as error:  # the latter if a tab cannot suspend Python
                warnings.warn(f"{WEBGPU} is not available ({error}); {CPU} runs the model", stacklevel=3)
                self._providers.remove(WEBGPU)
                self._provider_options.pop(WEBGPU)
        self._load(CPU, proto, folder)

    def _load(self, provider: str, proto: Any, folder: Path | None) -> None:
        from ..backend import get_backend
        from ..codegen import weights
        from ..codegen.emit.instance import instantiate
        from ..codegen.generation import translate

        self._backend = get_backend(backend_of(provider))
        if provider == WEBGPU:
            self._backend.device  # noqa: B018  (opened now, so that the CPU can take over where there is none)
        try:
            model, written, _ = translate(proto, proto.graph.name or "model", folder=folder)
            instance = instantiate(written, model.name, self._backend)
            instance.load_record(weights.tensors(written.record, self._backend), layout="burn")
        except EmberletError as error:
            if not proto.HasField("graph"):
                raise InvalidArgument("No graph was found in the protobuf.") from None
            raise InvalidGraph(f"This is an invalid model. {error}") from None
        self._model: Any = instance if self._backend.name == "python" else instance.compile(backend=self._backend)
        names = {o: i for i, o in enumerate(model.outputs)}
        self._place = {o.name: names[o.name] for o in self._declared}
        self._outputs = [
            o if o.shape or not found.present else o._replace(shape=_dims(found.type))
            for o, found in zip(self._declared, model.graph.outputs, strict=True)
        ]

    # -- what it is ---------------------------------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order, without constants."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The constants that the file lists among its inputs. They cannot be overridden here."""
        return self._overridable

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model's file."""
        return self._meta

    def get_providers(self) -> list[str]:
        """The providers of this session, the active one first."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider, which have no effect."""
        return self._provider_options

    def get_session_options(self) -> SessionOptions:
        """The options the session was created with."""
        return self._options

    def enable_fallback(self) -> None:
        """Accepted: a session whose GPU cannot be opened runs on the CPU."""

    def disable_fallback(self) -> None:
        """Accepted."""

    # -- running ------------------------------------------------------------------------------------------------------

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: dict[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs of the given names, or all for None or an empty list: arrays, lists of arrays or dicts.

        Raises ValueError if an input is missing, InvalidArgument if one does not match, holds an index outside its axis
        or has an unknown name, RuntimeException if the model fails. In a tab, WebGPU needs a browser
        that can suspend Python; otherwise RuntimeException is raised: use `run_awaited` or the CPU.
        """
        names, values = self._checked(output_names, input_feed, run_options)
        try:
            found = self._quick(values)
            return self._picked(names, self._computed(self._tensors(values)) if found is None else found)
        except IndexingError as error:
            raise InvalidArgument(str(error)) from error
        except EmberletError as error:
            raise RuntimeException(str(error)) from error
        except RuntimeError as error:
            if "await the _async twin" in str(error):
                error = RuntimeError(
                    "this browser cannot suspend Python while the GPU computes: use `await session.run_awaited(...)`, "
                    f"`session.run_async(...)` or {CPU}"
                )
            raise RuntimeException(str(error)) from None

    async def run_awaited(
        self,
        output_names: Sequence[str] | None,
        input_feed: dict[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The awaitable form of `run`: it does not block the event loop while a GPU computes. onnxruntime has no such
        method."""
        names, values = self._checked(output_names, input_feed, run_options)
        try:
            call = getattr(self._model, "call_async", None)
            tensors = self._tensors(values)
            wasm = self._backend.name == "wasm"  # which waits for nothing
            results = await call(*tensors) if call and not wasm else self._computed(tensors)
            return self._picked(names, results)
        except IndexingError as error:
            raise InvalidArgument(str(error)) from error
        except EmberletError as error:
            raise RuntimeException(str(error)) from error

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: dict[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in a thread (in a tab, as a task), then call callback(outputs, user_data, ""), or callback([], user_data,
        message) if the run fails.
        """
        if sys.platform == "emscripten":

            async def task() -> None:
                try:
                    results, said = await self.run_awaited(output_names, input_feed, run_options), ""
                except Exception as error:
                    results, said = [], str(error)
                callback(results, user_data, said)

            running = asyncio.ensure_future(task())
            self._tasks.add(running)  # the loop itself keeps no reference
            running.add_done_callback(self._tasks.discard)
            return

        def work() -> None:
            try:
                results, said = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, said = [], str(error)
            callback(results, user_data, said)

        Thread(target=work, daemon=True).start()

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """`run` with OrtValues for the inputs and outputs."""
        from .values import OrtValue

        return [OrtValue(v) for v in self.run(output_names, dict(input_dict_ort_values), run_options)]

    def io_binding(self) -> IOBinding:
        """An IOBinding for this session."""
        from .values import IOBinding

        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on the bound inputs; outputs bound to memory are written there."""
        from .values import OrtValue

        names = list(iobinding._outputs)
        iobinding._results = []
        for name, found in zip(names, self.run(names, iobinding._inputs, run_options), strict=True):
            bound = iobinding._outputs[name]
            if bound is not None:
                bound.update_inplace(found)
            iobinding._results.append(OrtValue(found) if bound is None else bound)

    def end_profiling(self) -> str:
        """Raises NotImplemented: `emberlet profile` shows the time of each kernel."""
        raise NotImplementedError(
            "a session records no profile; `emberlet profile MODEL` shows the time of each kernel"
        )

    # -- checks -------------------------------------------------------------------------------------------------------

    def _checked(
        self, output_names: Sequence[str] | None, feed: dict[str, Any], options: RunOptions | None
    ) -> tuple[list[str], list[Any]]:
        """(the names of the outputs, the inputs converted for the model)"""
        if isinstance(output_names, str):
            raise TypeError(f"output_names is the text {output_names!r}, expected a list of names")
        given = list(feed.keys())
        lacking = [i.name for i in self._inputs if i.name not in feed and not i.type.startswith("optional")]
        if lacking:
            raise ValueError(f"Required inputs ({lacking}) are missing from input feed ({given}).")
        if options is not None and options.terminate:
            raise Fail("Exiting due to terminate flag being set to true.")
        known = {i.name for i in self._inputs}
        replaceable = {i.name for i in self._overridable}
        for name in given:
            if name in replaceable:
                raise NotImplementedError(f"the input {name} has a value in the model, which cannot be replaced here")
            if name not in known:
                raise InvalidArgument(f"Invalid input name: {name}")
        names = list(output_names or self._place)
        for name in names:
            if name not in self._place:
                raise InvalidArgument(f"Invalid output name:{name}")
        return names, [self._value(i, feed.get(i.name)) for i in self._inputs]

    def _value(self, arg: NodeArg, value: Any) -> Any:
        """An input: an array (without NumPy, a Tensor), a list of them, a dict, None."""
        value = getattr(value, "_value", value) if type(value).__name__ == "OrtValue" else value
        kind = arg.type
        if kind.startswith("optional("):
            kind = kind[9:-1]
            if value is None:
                return None
        if value is None:
            raise Fail(f"Missing Input: {arg.name}")
        if kind.startswith("seq(tensor("):
            return [self._array(v, kind[11:-2]) for v in value]
        if not kind.startswith("tensor("):
            return value
        array = self._array(value, kind[7:-1])
        if arg.name in self._ranked and not arg.shape and array.shape and prod(array.shape) == 1:
            return array.reshape(())  # onnxruntime takes any shape, which its results then have
        self._check_shape(arg, array.shape)
        return array

    def _array(self, value: Any, wanted: str) -> Any:
        """An array, or lists, as an array of the dtype that onnxruntime calls `wanted`."""
        if missing(["numpy"]):
            from ..functional import asarray

            return asarray(value, dtype=DTYPES.get(wanted, wanted), device=self._backend)
        import numpy as np

        from .values import dtype_named, type_of

        if isinstance(value, list):
            value = np.array(value, dtype_named(wanted))
        if not isinstance(value, np.ndarray):
            if not hasattr(value, "__array__") or isinstance(value, np.generic):
                advice = "; pass what its .to_py() gives" if is_javascript(value) else ""
                raise RuntimeError(f"Unable to handle object of type {type(value)}{advice}")
            value = np.asarray(value)
        found = type_of(value)
        if found != wanted:
            raise InvalidArgument(
                f"Unexpected input data type. Actual: (tensor({found})) , expected: (tensor({wanted}))"
            )
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))

    def _check_shape(self, arg: NodeArg, shape: tuple[int, ...]) -> None:
        if arg.name not in self._ranked:
            return
        if len(shape) != len(arg.shape):
            found = f"Got: {len(shape)} Expected: {len(arg.shape)}"
            raise InvalidArgument(f"Invalid rank for input: {arg.name} {found} {FIX}")
        wrong = [
            f" index: {i} Got: {n} Expected: {d}"
            for i, (n, d) in enumerate(zip(shape, arg.shape, strict=True))
            if isinstance(d, int) and d >= 0 and n != d
        ]
        if wrong:
            said = "\n".join(wrong)
            raise InvalidArgument(
                f"Got invalid dimensions for input: {arg.name} for the following indices\n{said}\n {FIX}"
            )

    def _quick(self, values: list[Any]) -> Any:
        """The results of a compiled NumPy model if it has a plan for the shapes, else None."""
        known = getattr(self._model, "arrays", None)
        found = known(values) if known and all(hasattr(v, "__array__") for v in values) else None
        return None if found is None else tuple(found)

    def _tensors(self, values: list[Any]) -> list[Any]:
        """The inputs converted for the model."""
        if missing(["numpy"]):
            return values
        from ..host.sharing.arrays import to_tensor

        return [to_tensor(v, self._backend) for v in values]

    def _computed(self, tensors: list[Any]) -> Any:
        """The model's results. What is compiled in WebAssembly for them has `intra_op_num_threads` threads."""
        asked = index(self._options.intra_op_num_threads)
        if self._backend.name != "wasm" or asked <= 0:
            return self._model(*tensors)
        before = self._backend.set_threads(min(asked, 8))
        try:
            return self._model(*tensors)
        finally:
            self._backend.set_threads(before)

    def _picked(self, names: Sequence[str], results: Any) -> list[Any]:
        every = results if isinstance(results, tuple) else (results,)
        return [_own(every[self._place[name]]) for name in names]


def _dims(t: Any) -> list[Any]:
    """The inferred shape of an output without a declared one."""
    shape = getattr(t, "shape", None)
    return [] if shape is None else list(shape)


def _own(value: Any) -> Any:
    """A result as an array that the caller owns; without NumPy, as a Tensor on the host."""
    if isinstance(value, list | tuple):
        return [_own(v) for v in value]
    if missing(["numpy"]):
        return value.to("python") if hasattr(value, "backend") else value
    import numpy as np

    from ..host.sharing.arrays import to_array

    array = value if isinstance(value, np.ndarray) else to_array(value)
    return array.copy() if hasattr(array, "flags") and not array.flags.writeable else array
