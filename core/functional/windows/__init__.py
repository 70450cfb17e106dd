"""Functions of sliding windows: convolution, pooling, patches, resampling, Fourier transforms."""
