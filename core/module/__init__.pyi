"""Types of emberlet.module (written by emberlet.host.interface.module_stubs)."""
# fmt: off
# ruff: noqa

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import IO, Any, ParamSpec, Protocol, Self, TypeVar

from ..backend import Backend
from ..burnpack import Burnpack
from ..param import Param
from ..session import Session
from ..store import LoadResult
from ..store.filters import Filtering
from ..store.naming import Renaming
from ..dtypes import DType
from ..tensor import Tensor
from .display import Content, DisplaySettings
from .record import Record

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _HasForward(Protocol[_P, _R]):
    def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class _Compiled(Protocol[_R]):
    def __call__(self, *args: Any, **kwargs: Any) -> _R: ...
    def __getattr__(self, name: str) -> Any: ...

class Module:
    """Subclass it, set Params and Modules as attributes in __init__ (super().__init__() need not be called), and write
    `forward`. Calling the module calls it."""
    @property
    def __call__(self: _HasForward[_P, _R]) -> Callable[_P, _R]: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the result; calling the module calls it. Subclasses override it."""
    def named_params(self) -> Iterator[tuple[str, Param]]:
        """(name, Param) of every parameter, in the order of the attributes; a Param held twice is yielded twice."""
    def load_record(self, record: Record | Burnpack | Mapping[str, Tensor], strict: bool = ..., layout: str | None = ...) -> Self:
        """Take the values from a Record, an open Burnpack or a dict of name -> Tensor; returns this module.

        Values are converted to the parameters' dtypes; no initializer runs. layout: "burn" if the weights of Linear are
        (d_input, d_output), "pytorch" if they are transposed, as in a PyTorch state dict; None: what the file declares.
        Raises LoadError, listing all names, where shapes or kinds of number differ, where an integer does not fit
        the parameter's dtype and, unless strict is False, where names are missing or left over; also for a dict with
        square Linear weights and no layout, since their shape does not tell which it is. Then nothing is loaded."""
    def params(self) -> list[Param]:
        """The Params, each once."""
    def num_params(self) -> int:
        """Number of elements of all parameters; nothing is initialized."""
    def visit(self, visitor: Any) -> None:
        """Call visitor(name, param), or visitor.visit(name, param), for every parameter.

        A visitor with Burn's methods gets what they get there: visit_float, visit_int and visit_bool are called with
        (ParamId, Tensor) for parameters of that kind. Raises ArgumentError if it has none of these."""
    def map(self, mapper: Any) -> Self:
        """A copy whose parameters have the values mapper(name, tensor), or mapper.map(name, tensor), and the identities of
        this module's; this module does not change.

        A mapper with Burn's methods gets what they get there: map_float, map_int and map_bool are called with (ParamId,
        Tensor) for parameters of that kind, and the others keep their values. A QuantizedWeight is one float parameter to a
        mapper, under its layer's name: it is given dequantized, and what comes back instead is quantized by the weight's
        scheme, with its dtype for `val()`; `cast` changes that alone. Raises ArgumentError if the mapper has none of these
        methods, ShapeError and DTypeError for a quantized weight of another shape, or of no floats."""
    def no_grad(self) -> Self:
        """Mark every parameter as not requiring a gradient. Returns self."""
    def train(self) -> Self:
        """Move this module to the autodiff backend around its own: its parameters require gradients, and the layers that
        are active only in training are. Returns self."""
    def valid(self) -> Self:
        """For a module in training, a copy on the inner backend, for validation and inference; it shares the values that
        the parameters have now. Any other module is returned as it is."""
    def backends(self) -> list[Backend]:
        """The backends of the parameters and constants, including those of lazy parameters."""
    def to(self, backend: Backend | str) -> Self:
        """Move every parameter and constant to another backend; a lazy parameter stays lazy. Returns self."""
    def cast(self, dtype: DType | str) -> Self:
        """Convert the parameters and constants that are floats to float16, bfloat16, float32 or float64; a lazy parameter
        stays lazy. Returns self.

        Batch norms, and floats that the dtype does not hold, stay in float32, as in `save_file`; a PrecisionWarning names
        the latter. A QuantizedWeight stays packed, and `val()` returns it in the dtype; the bias of a layer that takes and
        gives integers stays as it is. Raises DTypeError for another dtype."""
    def clone(self) -> Self:
        """A copy with Params of its own, of the same identities; lazy ones stay lazy."""
    def fork(self, backend: Backend | str) -> Self:
        """A copy on another backend; this module stays where it is."""
    def compile(self: _HasForward[_P, _R], *examples: Any, backend: Backend | str | None = ..., tune: bool = ..., dims: Mapping[str, int] | None = ...) -> _Compiled[_R]:
        """A callable that runs this module as one plan, planned for the dtypes and shapes of `examples`.

        backend: "wgpu", a GPU (docs/wgpu.md); "wasm", WebAssembly (docs/wasm.md); "native", machine code made by LLVM
        (docs/native.md); "numpy", a plan of NumPy calls (docs/numpy.md); "auto", the fastest of them, measured during the
        first calls. None: the one that this module is on; for "numpy" and "python", machine code where llvmlite is
        installed, with results on NumPy: `chosen` of the callable is then "native", and "numpy" from the first call on
        that machine code would compute otherwise, with the reason in `refused` and in a warning (docs/native.md). The plan
        has copies of the parameters: later changes of this module's do not reach it. Each new combination of shapes gets
        its own plan. tune: first measure which kernels are fastest on the GPU ("wgpu"). dims: axes that the plan leaves
        open, so that it serves every length (docs/wgpu.md)."""
    def compile_step(self, loss: Callable[..., Any], optimizer: Any, *examples: Any) -> Any:
        """A training step that runs as one plan: forward pass, backward pass and update (docs/training.md).

        loss(model, *batch): the loss of a batch, a tensor without axes, computed with the model that it is given; or a
        tuple of it and other results. optimizer: an Optimizer, such as AdamConfig().init(). examples: a batch to make the
        plan for; batches of other lengths need no other one on NumPy, one more on the GPU. Returns a CompiledStep,
        `step(lr, *batch)`, which updates this module, in training from now on, and the optimizer, and returns what `loss`
        returned. Where a step cannot be a plan it runs operation by operation, with one warning. Raises ArgumentError for
        an LBFGS."""
    def session(self, capacity: int | None = ..., *, initial: Mapping[str, Any] | None = ..., dims: Mapping[str, int] | None = ..., state: Sequence[Sequence[Any]] | None = ...) -> Session:
        """A Session: this model with its states kept from step to step (docs/sessions.md).

        capacity: the maximum number of positions of growing states; without it they are reallocated as needed.
        initial: initial states by name; the others are zeros. dims: sizes of the states' named dimensions that the first
        step's inputs do not determine. state: a table to use instead of the class's STATE. Raises
        EmberletError where there is none."""
    def to_record(self) -> Record:
        """The parameters' values, by name, as a Record."""
    def save_file(self, path: str | PathLike[str], precision: str | None = ..., metadata: Mapping[str, str] | None = ..., names: str | None = ...) -> int:
        """Write the parameters to a burnpack at `path`; returns its size in bytes.

        precision: None to store the parameters' dtypes, else "double" (float64, int64), "full" (float32, int32),
        "half" (float16, int16) or "bfloat16" (bfloat16, int16), metadata: text -> text. names: "burn" for the names in
        Burn's layers (a norm's gamma and beta), which load_file reads as well. Raises DTypeError if an integer does not
        fit, LoadError for other names, OSError; an existing file is then unchanged. Floats that a narrower dtype does not
        hold, and batch norms, stay float32; a PrecisionWarning names the former."""
    def load_file(self, path: str | PathLike[str], strict: bool = ..., layout: str | None = ..., zero_copy: bool = ...) -> Self:
        """`load_record` from the burnpack at `path`; zero_copy: see Burnpack.from_file."""
    def load_from(self, source: Any, *, filter: Filtering | None = ..., rename: Renaming | None = ..., layout: str | None = ..., contiguous: bool | None = ..., skip_enum_variants: bool | None = ..., partial: bool = ..., validate: bool = ...) -> LoadResult:
        """Take the values from a weight file of any format; returns a LoadResult with the names that were applied, skipped,
        missing, unused and wrong, and similar names for the missing ones.

        source: a path, bytes, a Store of `emberlet.store.open`, another Module, a Record, or a dict of name -> tensor.
        filter: which of this module's parameters to load: a pattern of `re`, several (any may match), a function of (name,
        container), or a Filter. rename: applied to the names of the file first: (pattern, replacement) pairs, a dict, a
        KeyRemapper or a function. layout: "pytorch" where dense weights are (d_output, d_input), "burn" where they are
        (d_input, d_output); None: what the file declares. contiguous: match layers of lists by order if their numbers have
        gaps; skip_enum_variants: match paths without the CamelCase variants of Rust's enums; both are on for
        PyTorch files. partial: keep parameters that are missing from the file; validate: refuse to load if a value does not
        match, instead of keeping that parameter.

        Raises LoadError, with the LoadResult as `result`, for missing and mismatched values, and if the layout of a square
        dense weight is unknown; FormatError; OSError. Nothing is loaded then."""
    def save_into(self, target: str | PathLike[str] | IO[bytes], *, filter: Filtering | None = ..., rename: Renaming | None = ..., layout: str | None = ..., names: str | None = ..., precision: str | None = ..., metadata: Mapping[str, str] | None = ..., overwrite: bool = ..., format: str | None = ..., shard: int | None = ...) -> int:
        """Write the parameters to a burnpack, safetensors, .npz or .gguf file, as the ending of the path says; returns the
        bytes written. One tensor at a time is in memory, and an existing file is replaced only by a complete one.

        target: a path, or a binary file open for writing (with `format`). filter: which parameters (see `load_from`).
        rename: their names in the file. layout: "pytorch" for dense weights as (d_output, d_input) and a batch
        norm's num_batches_tracked; GGUF always has it. names: "burn" for Burn's names of norms,
        and packed weights as Burn's quantized tensors. precision: as in
        `save_file`. metadata: text -> text. overwrite: replace a file that exists. shard: several safetensors files of at
        most so many bytes.

        Raises ExistsError, an EmberletError and a FileExistsError, DTypeError for what the format cannot hold, OSError."""
    def quantize_weights(self, bits: int = ..., mode: str = ..., level: str | int | tuple[int, int] = ..., calibration: str = ..., filter: Filtering | None = ..., fake: bool = ..., keep: Sequence[str] = ..., *, input_scales: bool = ..., method: str = ..., samples: Sequence[Any] | None = ..., correct_bias: bool = ..., tell: Callable[[str], None] = ..., scale_dtype: DType | str = ..., value_dtype: DType | str | None = ..., activations: str | Mapping[str, Any] | None = ...) -> list[str]:
        """Store the weights of layers in 8, 4 or 2 bits (QuantizedWeight); returns the names of these layers: Linear,
        convolutions, Embedding, Bilinear, and those within recurrent layers and attention. Layers with 1
        or 2 weights a channel stay floats: a file would not tell their bits. Lazy weights stay lazy.

        mode: "symmetric" or "affine"; level: which weights share a scale: "tensor", "channel" (those of an output), a
        number of a channel's weights, or (n, m), m weights of each of n channels; calibration: "min-max", or
        "absolute-mean", which clips weights beyond the mean absolute weight. filter: which layers, by the name of their
        weight (see `load_from`); keep: names of layers that stay as they are. scale_dtype: that of the scales, float32,
        float16, bfloat16, float8_e8m0fnu or float8_e4m3fn;
        value_dtype: None for integers, float8_e4m3fn, float8_e5m2 or float4_e2m1fn (WeightScheme). fake: keep
        the weights and only compute with quantized ones (FakeQuantizedWeight). activations: None for floats; else Linear
        and convolutions multiply integers, to which they quantize their inputs: "dynamic", by the range of each call;
        "static", from the smallest to the largest of their inputs over `samples`; {layer: (scale, zero point)}, as it says.

        method: "rtn" rounds each weight to the nearest. "gptq" corrects weights of Linear and of convolutions that are
        left to round for the error of the others (Frantar et al. 2022); "awq" multiplies weights of Linear by a number for
        each input, and the inputs by its inverse (Lin et al. 2023): `input_scales`, which without a method are 1 until a
        file is loaded. correct_bias: add to biases what the means of the outputs lost (Nagel et al. 2019). These look at
        `samples`, a list of the arguments of calls, and need NumPy; tell(text) is called with what is being done.

        Raises UnsupportedError for another scheme, for a method without samples, and on MicroPython."""
    def custom_settings(self) -> DisplaySettings | None:
        """DisplaySettings for printing this module and its children, or None. Override it."""
    def custom_content(self, content: Content) -> Content | None:
        """Override it to add lines to `content` and return it; None means the default."""

def items(value: Any) -> list[tuple[Any, Any]]: ...
def leaves(
    value: Any, kind: Any, prefix: str = ..., path: tuple[int, ...] = ...
) -> Iterator[tuple[str, Any, Any, Any]]: ...
