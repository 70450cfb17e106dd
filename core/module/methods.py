"""The methods of Module that running a loaded model never needs.

The class gets these when one is first used on a microcontroller, and at once elsewhere (see __init__.py).
"""

from ..param import Param
from ..tensor import Tensor
from . import leaves


def params(self):
    """The Params, each once."""
    seen = {}
    found = []
    for _, param in self.named_params():
        if id(param) not in seen:
            seen[id(param)] = True
            found.append(param)
    return found


def num_params(self):
    """Number of elements of all parameters; nothing is initialized."""
    return sum([p.size for p in self.params()])


def visit(self, visitor):
    """Call visitor(name, param), or visitor.visit(name, param), for every parameter.

    A visitor with Burn's methods gets what they get there: visit_float, visit_int and visit_bool are called with
    (ParamId, Tensor) for parameters of that kind. Raises ArgumentError if it has none of these.
    """
    from .mapping import visit

    visit(self, visitor)


def map(self, mapper):
    """A copy whose parameters have the values mapper(name, tensor), or mapper.map(name, tensor), and the identities of
    this module's; this module does not change.

    A mapper with Burn's methods gets what they get there: map_float, map_int and map_bool are called with (ParamId,
    Tensor) for parameters of that kind, and the others keep their values. A QuantizedWeight is one float parameter to a
    mapper, under its layer's name: it is given dequantized, and what comes back instead is quantized by the weight's
    scheme, with its dtype for `val()`; `cast` changes that alone. Raises ArgumentError if the mapper has none of these
    methods, ShapeError and DTypeError for a quantized weight of another shape, or of no floats.
    """
    from .mapping import mapped

    return mapped(self, mapper)


def no_grad(self):
    """Mark every parameter as not requiring a gradient. Returns self."""
    for param in self.params():
        param.set_require_grad(False)
    return self


def train(self):
    """Move this module to the autodiff backend around its own: its parameters require gradients, and the layers that
    are active only in training are. Returns self."""
    # By name, because the package is built on the functions.
    return __import__("emberlet.autodiff.modules", None, None, ("*",)).train(self)


def valid(self):
    """For a module in training, a copy on the inner backend, for validation and inference; it shares the values that
    the parameters have now. Any other module is returned as it is."""
    for backend in self.backends():
        if hasattr(backend, "from_inner"):
            return __import__("emberlet.autodiff.modules", None, None, ("*",)).valid(self)
    return self


def backends(self):
    """The backends of the parameters and constants, including those of lazy parameters."""
    found = []
    for _, _, _, leaf in leaves(self, (Param, Tensor)):
        backend = leaf.backend
        if not any(b is backend for b in found):
            found.append(backend)
    return found


def to(self, backend):
    """Move every parameter and constant to another backend; a lazy parameter stays lazy. Returns self."""
    from .copying import move

    return move(self, backend)


def cast(self, dtype):
    """Convert the parameters and constants that are floats to float16, bfloat16, float32 or float64; a lazy parameter
    stays lazy. Returns self.

    Batch norms, and floats that the dtype does not hold, stay in float32, as in `save_file`; a PrecisionWarning names
    the latter. A QuantizedWeight stays packed, and `val()` returns it in the dtype; the bias of a layer that takes and
    gives integers stays as it is. Raises DTypeError for another dtype.
    """
    from .casting import cast

    return cast(self, dtype)


def clone(self):
    """A copy with Params of its own, of the same identities; lazy ones stay lazy."""
    from .copying import clone

    return clone(self)


def fork(self, backend):
    """A copy on another backend; this module stays where it is."""
    return self.clone().to(backend)


def compile(self, *examples, backend=None, tune=False, dims=None):
    """A callable that runs this module as one plan, planned for the dtypes and shapes of `examples`.

    backend: "wgpu", a GPU (docs/wgpu.md); "wasm", WebAssembly (docs/wasm.md); "native", machine code made by LLVM
    (docs/native.md); "numpy", a plan of NumPy calls (docs/numpy.md); "auto", the fastest of them, measured during the
    first calls. None: the one that this module is on; for "numpy" and "python", machine code where llvmlite is
    installed, with results on NumPy: `chosen` of the callable is then "native", and "numpy" from the first call on
    that machine code would compute otherwise, with the reason in `refused` and in a warning (docs/native.md). The plan
    has copies of the parameters: later changes of this module's do not reach it. Each new combination of shapes gets
    its own plan. tune: first measure which kernels are fastest on the GPU ("wgpu"). dims: axes that the plan leaves
    open, so that it serves every length (docs/wgpu.md).
    """
    from .compiling import compile

    return compile(self, examples, backend, tune, dims)


def compile_step(self, loss, optimizer, *examples):
    """A training step that runs as one plan: forward pass, backward pass and update (docs/training.md).

    loss(model, *batch): the loss of a batch, a tensor without axes, computed with the model that it is given; or a
    tuple of it and other results. optimizer: an Optimizer, such as AdamConfig().init(). examples: a batch to make the
    plan for; batches of other lengths need no other one on NumPy, one more on the GPU. Returns a CompiledStep,
    `step(lr, *batch)`, which updates this module, in training from now on, and the optimizer, and returns what `loss`
    returned. Where a step cannot be a plan it runs operation by operation, with one warning. Raises ArgumentError for
    an LBFGS.
    """
    return __import__("emberlet.training_step", None, None, ("*",)).CompiledStep(self, loss, optimizer, examples)


def session(self, capacity=None, *, initial=None, dims=None, state=None):
    """A Session: this model with its states kept from step to step (docs/sessions.md).

    capacity: the maximum number of positions of growing states; without it they are reallocated as needed.
    initial: initial states by name; the others are zeros. dims: sizes of the states' named dimensions that the first
    step's inputs do not determine. state: a table to use instead of the class's STATE. Raises
    EmberletError where there is none.
    """
    from ..session import Session

    return Session(self, capacity, initial, dims, state)


def to_record(self):
    """The parameters' values, by name, as a Record."""
    from .record import record_of

    return record_of(self)


def save_file(self, path, precision=None, metadata=None, names=None):
    """Write the parameters to a burnpack at `path`; returns its size in bytes.

    precision: None to store the parameters' dtypes, else "double" (float64, int64), "full" (float32, int32),
    "half" (float16, int16) or "bfloat16" (bfloat16, int16), metadata: text -> text. names: "burn" for the names in
    Burn's layers (a norm's gamma and beta), which load_file reads as well. Raises DTypeError if an integer does not
    fit, LoadError for other names, OSError; an existing file is then unchanged. Floats that a narrower dtype does not
    hold, and batch norms, stay float32; a PrecisionWarning names the former.
    """
    record = self.to_record()
    if names is not None:
        from ..errors import LoadError
        from .burn_names import as_burn

        if names != "burn":
            raise LoadError("names is None or 'burn', found {!r}".format(names))
        record = as_burn(self, record)
    return record.save(path, precision, metadata)


def load_file(self, path, strict=True, layout=None, zero_copy=False):
    """`load_record` from the burnpack at `path`; zero_copy: see Burnpack.from_file."""
    from ..burnpack import Burnpack

    return self.load_record(Burnpack.from_file(path, zero_copy), strict, layout)


def load_from(
    self,
    source,
    *,
    filter=None,
    rename=None,
    layout=None,
    contiguous=None,
    skip_enum_variants=None,
    partial=False,
    validate=True,
):
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
    dense weight is unknown; FormatError; OSError. Nothing is loaded then.
    """
    from ..store.loading import load

    return load(
        self, source, filter=filter, rename=rename, layout=layout, contiguous=contiguous,
        skip_enum_variants=skip_enum_variants, partial=partial, validate=validate,
    )  # fmt: skip


def save_into(
    self,
    target,
    *,
    filter=None,
    rename=None,
    layout="burn",
    names=None,
    precision=None,
    metadata=None,
    overwrite=False,
    format=None,
    shard=None,
):
    """Write the parameters to a burnpack, safetensors, .npz or .gguf file, as the ending of the path says; returns the
    bytes written. One tensor at a time is in memory, and an existing file is replaced only by a complete one.

    target: a path, or a binary file open for writing (with `format`). filter: which parameters (see `load_from`).
    rename: their names in the file. layout: "pytorch" for dense weights as (d_output, d_input) and a batch
    norm's num_batches_tracked; GGUF always has it. names: "burn" for Burn's names of norms,
    and packed weights as Burn's quantized tensors. precision: as in
    `save_file`. metadata: text -> text. overwrite: replace a file that exists. shard: several safetensors files of at
    most so many bytes.

    Raises ExistsError, an EmberletError and a FileExistsError, DTypeError for what the format cannot hold, OSError.
    """
    from ..store.sources import from_module
    from ..store.writing import format_of, save

    kind = format_of(target, format)
    packed = {"burnpack": None, "gguf": "blocks"}.get(kind, "parts")  # those that hold a packed weight as one tensor
    layout = "pytorch" if kind == "gguf" else layout
    store = from_module(self, filter=filter, layout=layout, names=names, precision=precision, packed=packed)
    if rename is not None:
        store = store.rename(rename)
    return save(store, target, format=format, metadata=metadata, overwrite=overwrite, shard=shard)


def quantize_weights(
    self,
    bits=8,
    mode="symmetric",
    level="channel",
    calibration="min-max",
    filter=None,
    fake=False,
    keep=(),
    *,
    input_scales=False,
    method="rtn",
    samples=None,
    correct_bias=False,
    tell=None,
    scale_dtype="float32",
    value_dtype=None,
    activations=None,
):
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

    Raises UnsupportedError for another scheme, for a method without samples, and on MicroPython.
    """
    try:
        from ..store.quantizing import quantize_weights
    except ImportError:  # MicroPython lacks what it imports
        from ..errors import refuse

        refuse("quantizing")
    return quantize_weights(
        self, bits, mode, level, calibration, filter, fake, keep, input_scales, method, samples, correct_bias, tell,
        scale_dtype, value_dtype, activations,
    )  # fmt: skip


def custom_settings(self):
    """DisplaySettings for printing this module and its children, or None. Override it."""
    return None


def custom_content(self, content):
    """Override it to add lines to `content` and return it; None means the default."""
    return None


METHODS = {
    "params": params,
    "num_params": num_params,
    "visit": visit,
    "map": map,
    "no_grad": no_grad,
    "train": train,
    "valid": valid,
    "backends": backends,
    "to": to,
    "cast": cast,
    "clone": clone,
    "fork": fork,
    "compile": compile,
    "compile_step": compile_step,
    "session": session,
    "to_record": to_record,
    "save_file": save_file,
    "load_file": load_file,
    "load_from": load_from,
    "save_into": save_into,
    "quantize_weights": quantize_weights,
    "custom_settings": custom_settings,
    "custom_content": custom_content,
}
