"""Arrays at the speed of the machine: threads, kernels, bits, ranges of floats."""
