"""Data sets, and the batches that a model is trained and validated on.

A data set is anything with `len` and `[i]`: a list, a NumPy array, a PyTorch map-style data set, a Hugging Face one.
The classes here read files, combine and split data sets; DataLoader makes batches of them. Every name is imported on
first use; what needs CPython lies in emberlet.host.data.
"""

from ..lazy import lazy

__getattr__, __dir__ = lazy(
    globals(),
    {
        "tensor_data": "TensorData",
        "data.base": "Dataset",
        "data.batcher": "StackBatcher",
        "data.errors": "DataError",
        "data.loader": "DataLoader Progress",
        "data.memory": "ArrayDataset InMemDataset",
        "data.sampling": "SamplerDataset ShuffledDataset split",
        "data.transforms": "ComposedDataset IndexedDataset MapperDataset PartialDataset WindowsDataset",
        "host.data.arrays": "MnistDataset MnistItem NpyDataset NpzDataset read_idx",
        "host.data.tables": "ArrowDataset DataframeDataset ParquetDataset",
        "host.data.sqlite": "SqliteDataset",
        "host.data.image_folder": "ImageFolderDataset ImageItem",
        "host.data.hugging_face": "HuggingfaceDatasetLoader",
    },
)
