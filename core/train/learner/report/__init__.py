"""A page about a training, from what it left in its folder: `emberlet train-report`."""
