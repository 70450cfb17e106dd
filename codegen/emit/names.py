"""Names for the generated code: identifiers made from a model's names, and the choice of a variable for each value."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable

from emberlet.host.digests import blake2b

MAX_LENGTH = 48
MAX_FILE = 160  # bytes of a file's name without its extension; file systems allow 255
_PARAMETER = re.compile(
    r"(.{2,}?)_(w|b|weights?|bias(?:es)?|kernel|gamma|beta|scale|mean|var|riv|rm|s)(?:_\d+)?", re.IGNORECASE
)
MAX_LOCAL = 22  # three of them and an operator fit on a line

# Names that the generated code refers to; no variable, field or class may take them.
RESERVED = frozenset(
    "emberlet nn F Model self super len range int float bool str tuple list min max abs sum print iter zip enumerate "
    "type object property classmethod staticmethod isinstance True False None match case forward backend".split()
)

# Names that say which operation made a value rather than what the value is: those of exporters and of operators.
_UNINFORMATIVE = frozenset(
    "x y z t v val value out output input tensor node n graph result res var tmp i o a b c data onnx torch aten "
    "linear view conv addmm bmm mm mul add sub div permute transpose unsqueeze squeeze slice select expand clone cat "
    "getitem reshape flatten relu sigmoid tanh gelu silu softmax matmul gemm pool maxpool dropout identity convolution "
    "to type contiguous t mean pow sqrt exp log neg sum max min where eq ne lt le gt ge index gather scatter split "
    "chunk constant shape cast plus times activation batchnorm batch norm layer native sym size arange full zeros "
    "ones concat max_pool avg_pool batch_norm layer_norm scaled_dot_product_attention split_with_sizes split_split "
    "group_norm instance_norm embedding unsafe_view masked_fill bitwise_not logical_not leaky_relu upsample_bilinear "
    "upsample_nearest upsample_bicubic hardtanh hardswish hardsigmoid index_select "
    "zeros_like ones_like full_like to_copy "
    "new_zeros new_ones new_full repeat repeat_interleave masked_select index_put stack mse bool float long "
    "argmax argmin topk cumsum clamp clamp_min clamp_max rsqrt".split()
)


def identifier(text: str, fallback: str = "value", limit: int = MAX_LENGTH) -> str:
    """A Python identifier made from `text`: letters of any script, no keyword, no leading underscore, as many of its
    last words as fit `limit` characters."""
    name = shortened(_words(text), limit) or fallback
    if not name[0].isidentifier():
        name = f"{fallback}_{name}"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in RESERVED:
        name += "_"
    return name


def _words(text: str) -> str:
    """The words of `text`, joined by single underscores: only characters allowed in identifiers, as Python normalizes
    them."""
    text = unicodedata.normalize("NFKC", text)
    return re.sub(r"_+", "_", "".join(c if ("a" + c).isidentifier() else "_" for c in text)).strip("_")


def shortened(name: str, limit: int) -> str:
    """As many of a name's last words as fit `limit` characters; a longer single word is cut."""
    while len(name) > limit and "_" in name:
        name = name.partition("_")[2]
    return name[:limit]


def file_stem(text: str) -> str:
    """The name of a module's file, made from a model's name, valid on every file system.

    It is unique per model, except on file systems that treat two letters as equal.
    """
    from emberlet.host.files import RESERVED_BY_WINDOWS

    name = identifier(text, "model", limit=len(text) + 1).lower()
    if name in RESERVED_BY_WINDOWS:
        name += "_"
    if len(name.encode()) <= MAX_FILE:
        return name
    kept = name.encode()[: MAX_FILE - 9].decode(errors="ignore")
    return f"{kept.rpartition('_')[0] or kept}_{blake2b(name.encode(), digest_size=4).hexdigest()}"


def class_name(text: str) -> str:
    """A class name made from `text`: "my-model" becomes "MyModel"."""
    parts = [p for p in _words(text).split("_") if p]
    name = "".join(p[0].upper() + p[1:] for p in parts)[:MAX_LENGTH] or "Network"
    if not name[0].isidentifier():
        return "Model" + name
    # A file is often called model.onnx, and the class's base is Model.
    return "Network" if keyword.iskeyword(name) or name in RESERVED else name


def clean(text: str, limit: int = 4000) -> str:
    """Text made safe for a comment: one line of limited length, without control characters or ones that change the
    writing direction."""
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    return shown if len(shown) <= limit else shown[:limit].rpartition(" ")[0] + " …"


def said_by_operator(name: str, op: str) -> bool:
    """Whether a node's name says no more than its operator: "node_conv2d_3" for a Conv."""
    words = {re.sub(r"\d+d?$", "", w) for w in snake(name).split("_")}
    return words <= {"", snake(op).replace("_", ""), *snake(op).split("_"), *_UNINFORMATIVE}


def snake(op: str) -> str:
    """An operator's name as a variable's: "MaxPool" becomes "max_pool", "LSTM" "lstm"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()


def informative(name: str, op: str) -> bool:
    """Whether a value's name tells a reader more than its operator does."""
    if "/" in name or "::" in name or not re.match(r"[A-Za-z_]", name) or re.search(r"_output_\d+$|_out_?\d*$", name):
        return False
    base = re.sub(r"[\d_.]+$", "", re.sub(r"_?\d+d?(?=_|$)", "", name)).strip("_").lower()
    return len(base) > 1 and base not in _UNINFORMATIVE and base != snake(op) and base != op.lower()


def module_path(name: str) -> str:
    """The path of modules in an exporter's name: "/features/conv1/Conv_output_0" becomes "features.conv1"."""
    parts = [p for p in re.split(r"[/]", name) if p]
    return ".".join(parts[:-1]) if len(parts) > 1 else ""


def owner_of(name: str) -> str:
    """The module named by an initializer: "conv1" for "conv1.weight" and for "conv1_w_0"; "" if none."""
    if "/" in name or "::" in name:
        return ""
    if "." in name:
        return name.rpartition(".")[0]
    found = _PARAMETER.fullmatch(name)
    return found[1] if found and not re.fullmatch(r"\w?\d+", found[1]) else ""


class Names:
    """Hands out unique names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def unique(self, name: str) -> str:
        """`name`, or name_2, name_3, …"""
        candidate, n = name, 1
        while candidate in self._taken:
            n += 1
            candidate = f"{name.rstrip('_')}_{n}"
        self._taken.add(candidate)
        return candidate

    def __contains__(self, name: str) -> bool:
        return name in self._taken
