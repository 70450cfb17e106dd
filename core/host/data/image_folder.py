"""ImageFolderDataset: pictures in folders. Needs Pillow and NumPy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...data.base import Dataset
from ...errors import ArgumentError, FormatError
from .. import listing
from ..extras import require

ENDS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


class ImageItem(NamedTuple):
    """image: uint8 (height, width, channels). label: the index of the class; with several labels uint8 (classes,), 1
    where a picture has a label."""

    image: Any
    label: Any


class ImageFolderDataset(Dataset):
    """Pictures that are decoded when they are read, as ImageItems. classes: the names that the labels are indices of.

    Reading an item raises FormatError for a file that is no picture, or too large a one (docs/security.md).
    """

    def __init__(self, items: Sequence[tuple[str, Any]], classes: Sequence[str], channels: int = 3) -> None:
        require("ImageFolderDataset", "numpy", "PIL")
        if channels not in (1, 3, 4):
            raise ArgumentError(f"channels is 1 (gray), 3 (RGB) or 4 (RGBA), found {channels}")
        self.items, self.classes, self.channels = list(items), list(classes), channels

    @classmethod
    def new_classification(cls, root: str | os.PathLike[str], channels: int = 3) -> ImageFolderDataset:
        """The pictures below `root/CLASS/`, at any depth. The classes are the names of these folders, sorted; names
        that begin with a point are left out, and links to folders are not followed. Raises FormatError if there is no
        picture, OSError."""
        folder = os.fspath(root)
        classes = sorted(e.name for e in os.scandir(folder) if e.is_dir() and not e.name.startswith("."))
        items = [(path, k) for k, name in enumerate(classes) for path in _pictures(os.path.join(folder, name))]
        if not items:
            raise FormatError(
                f"{folder}: no folder in it holds a picture; expected {os.path.join(folder, 'CLASS', 'FILE')}, "
                f"where the file ends in {' '.join(ENDS)}"
            )
        return cls(items, classes, channels)

    @classmethod
    def new_multilabel_classification_with_items(
        cls, items: Iterable[tuple[str | os.PathLike[str], Iterable[str]]], classes: Sequence[str], channels: int = 3
    ) -> ImageFolderDataset:
        """Pictures with any number of labels. items: (path, names of its classes). Raises ArgumentError for a name that
        is not in `classes`."""
        places = {name: k for k, name in enumerate(classes)}
        found = []
        for path, names in items:
            names = [names] if isinstance(names, str) else list(names)
            unknown = [name for name in names if name not in places]
            if unknown:
                raise ArgumentError(f"{os.fspath(path)}: {unknown[0]!r} is not one of {listing.names(list(classes))}")
            found.append((os.fspath(path), tuple(sorted({places[name] for name in names}))))
        return cls(found, classes, channels)

    def __len__(self) -> int:
        return len(self.items)

    def item(self, i: int) -> ImageItem:
        from ...batch.pictures import decode

        path, label = self.items[i]
        if isinstance(label, tuple):
            import numpy as np

            labels = np.zeros(len(self.classes), np.uint8)
            labels[list(label)] = 1
            return ImageItem(decode(path, self.channels), labels)
        return ImageItem(decode(path, self.channels), label)


def _pictures(folder: str) -> list[str]:
    found = []
    for where, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".")]
        found += [os.path.join(where, f) for f in files if f.lower().endswith(ENDS) and not f.startswith(".")]
    return sorted(found)
