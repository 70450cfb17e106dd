"""Decides which files may be overwritten: a generated module carries a digest of its text, which shows whether it was
edited."""

from __future__ import annotations

from pathlib import Path

from emberlet.errors import EmberletError

from .emit.module import HEADER
from .weights import as_generated

DIGEST = "# digest: "
TELLS = " (of the rest of this file: tells whether it was edited)"


class OverwriteError(EmberletError, FileExistsError):
    """A file with a user's work would be overwritten."""


def signed(source: str) -> str:
    """A module's source with the digest below its header."""
    lines = source.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(HEADER))
    return "\n".join([*lines[: at + 1], DIGEST + _digest(source) + TELLS, *lines[at + 1 :]])


def check_overwrite(module: Path, source: str, pack: Path | None = None) -> None:
    """Raise OverwriteError if `module` was edited, was generated from another model than `source`, or is not a
    generated module at all; also if `pack`, the burnpack beside it, no longer holds the generated weights, which may
    have been trained."""
    if not module.is_file():
        _check_pack(pack)
        return
    held = module.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
    digests = [line for line in held if line.startswith(DIGEST)]
    if not digests:
        raise OverwriteError(f"{module} exists and holds no digest of emberlet's; --force overwrites it")
    rest = "\n".join(line for line in held if line != digests[0])
    if digests[0] not in (DIGEST + found + TELLS for found in (_digest(rest), _digest_of_text(rest))):
        raise OverwriteError(f"{module} was edited after it was generated; --force overwrites it, --name keeps both")
    was, now = _origin(rest), _origin(source)
    if was != now:
        raise OverwriteError(
            f"{module} was generated from {was}, this is {now}; --name gives the new one another name, "
            "--force overwrites the old one"
        )
    _check_pack(pack)


def _check_pack(pack: Path | None) -> None:
    if pack is not None and pack.is_file() and not as_generated(pack):
        raise OverwriteError(
            f"{pack} no longer holds the weights that were generated, perhaps because they were trained; --name keeps "
            "both, --force overwrites them"
        )


def _digest(source: str) -> str:
    """A digest of the code without its layout: reformatting is not an edit."""
    import io
    import tokenize

    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NL:
                continue
            if token.string in (")", "]", "}") and words[-1] == "," and token.line.strip().startswith(token.string):
                words.pop()  # the trailing comma that a formatter adds
            words.append(" " if token.type in (tokenize.INDENT, tokenize.NEWLINE) else token.string)
            if token.type == tokenize.DEDENT:
                words.append("\n")
    except (tokenize.TokenError, SyntaxError):
        return _digest_of_text(source)
    return _digest_of_text("\0".join(words))


def _digest_of_text(text: str) -> str:
    """The digest of older modules."""
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:16]


def _origin(source: str) -> str:
    """The name of the file that a module was generated from."""
    header = next((line for line in source.split("\n") if line.startswith(HEADER)), HEADER + "an unknown file (")
    return header.removeprefix(HEADER).rpartition(" (opset")[0]
