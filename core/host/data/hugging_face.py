"""HuggingfaceDatasetLoader: Hugging Face's data sets by its own library, where that is installed."""

from __future__ import annotations

from typing import Any

from ..extras import require


class HuggingfaceDatasetLoader:
    """`HuggingfaceDatasetLoader("dbpedia_14").dataset("train")`.

    name: as in `datasets.load_dataset`; subset: of a data set that has several. More options are passed on. The library
    downloads the data set, unless it has it already. Raises MissingLibraryError without the library.
    """

    def __init__(self, name: str, subset: str | None = None, **options: Any) -> None:
        require("HuggingfaceDatasetLoader", "datasets")
        self.name, self.subset, self.options = name, subset, options

    def dataset(self, split: str) -> Any:
        """A `datasets.Dataset`, whose items are dicts. Raises what the library raises."""
        from datasets import load_dataset

        return load_dataset(self.name, self.subset, split=split, **self.options)
