"""Error clumping: graphs of neighbours, the convex problem, its solvers, and the clump score."""
