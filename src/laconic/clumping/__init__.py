"""Error clumping: graphs of neighbours, the convex problem, its solvers, the clump score."""
