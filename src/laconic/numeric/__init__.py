"""Fast array computations: threads, kernels, bits, and the range of floats."""
