"""What slides a window over an input: convolution, pooling, patches, resampling, Fourier transforms."""
